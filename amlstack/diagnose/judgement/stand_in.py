"""A missing module in a rehearsal: the stand-in may lack what the image has, and then the code is not to blame."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from amlstack.diagnose.diagnosis import Diagnosis

FILE = "stand-in.json"
"""In a job's folder: what the environment that it ran in lacks of the image."""
CAUSE = "stand-in-lacks-module"
_MODULE = re.compile(r"No module named '?(?P<name>[\w.]+)")


def with_stand_in(verdict: Diagnosis, folders: Iterable[Path]) -> Diagnosis:
    """A verdict that knows what the stand-in lacks, where the folders are those of rehearsed jobs.

    Args:
        verdict: By the logs alone.
        folders: What was read.
    """
    found = _MODULE.search(verdict.text or "") if verdict.cause == "missing-module" else None
    if found is None:
        return verdict
    for folder in folders:
        if (known := _read(folder / FILE)) is not None:
            return _judged(verdict, found["name"], known)
    return verdict


def _judged(verdict: Diagnosis, name: str, known: dict[str, Any]) -> Diagnosis:
    why = next((why for module, why in known["absent"].items() if _covers(module, name)), None)
    remedy = f"Write what is missing into rehearsal.toml: {known['remedy']}"
    if why is not None:
        means = f"the stand-in lacks `{name}`, which the environment has; the code is not to blame"
        return replace(verdict, cause=CAUSE, means=f"{means} ({why})", advice=remedy)
    if not known["partial"]:
        return verdict
    means = (
        f"`{name}` is neither in the stand-in nor in the code; the image has more than is known here, so that the job "
        "may well find it on Azure"
    )
    reason = f"{verdict.reason}, but not all that the image holds is known"
    advice = f"If the image has it: {remedy[0].lower()}{remedy[1:]} If not: {verdict.advice}"
    return replace(verdict, cause=CAUSE, means=means, advice=advice, confidence="low", reason=reason)


def _covers(module: str, name: str) -> bool:
    """Whether an import of a name fails for want of a module: the module, one below it, or a package above it."""
    return name == module or name.startswith(f"{module}.") or module.startswith(f"{name}.")


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text())
        return {"absent": dict(found["absent"]), "partial": bool(found["partial"]), "remedy": str(found["remedy"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
