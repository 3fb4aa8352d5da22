"""Where a stand-in lacks what the image has, or has another version of it, the code may not be to blame."""

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
"""In a job's folder: what the environment that it ran in lacks of the image, and has in other versions."""
CAUSE = "stand-in-lacks-module"
DIFFERS = "stand-in-differs"
_OF_CODE = ("python-exception", "library-mismatch")
"""Causes that another version of a package may have."""
_MODULE = re.compile(r"No module named '?(?P<name>[\w.]+)")
_FROM = re.compile(r"cannot import name '\w+' from '(?P<name>\w+)|module '(?P<module>\w+)[\w.]*' has no attribute")
_INTERFACE = re.compile(
    r"cannot import name|module '[\w.]+' has no attribute|type object '\w+' has no attribute"
    r"|unexpected keyword argument|positional arguments? but|required (?:positional|keyword-only) argument"
)
"""What Python says when code was written for another version of what it calls."""


def with_stand_in(verdict: Diagnosis, folders: Iterable[Path]) -> Diagnosis:
    """A verdict that knows what the stand-in lacks, where the folders are those of rehearsed jobs.

    Args:
        verdict: By the logs alone.
        folders: What was read.
    """
    missing = _MODULE.search(verdict.text or "") if verdict.cause == "missing-module" else None
    packages = _packages(verdict) if verdict.cause in _OF_CODE else ()
    if missing is None and not packages:
        return verdict
    for folder in sorted(folders, key=lambda each: not (verdict.file or "").startswith(f"{each}/")):
        if (known := _read(folder / FILE)) is not None:
            return _compared(verdict, packages, known) if missing is None else _judged(verdict, missing["name"], known)
    return verdict


def _packages(verdict: Diagnosis) -> tuple[str, ...]:
    """The package that an exception's message names, and those that it came through, the innermost first."""
    named = _FROM.search(verdict.text or "")
    through = verdict.events[0].facts.get("packages", ()) if verdict.events else ()
    return through if named is None else (named["name"] or named["module"], *through)


def _compared(verdict: Diagnosis, packages: tuple[str, ...], known: dict[str, Any]) -> Diagnosis:
    module = next((each for each in packages if each in known["differs"]), None)
    if module is None:
        return verdict
    name, real, got = known["differs"][module]
    text = verdict.text or ""
    differs = f"`{name}` is {got} in the stand-in and {real} in the image"
    if not (_INTERFACE.search(text) or text.startswith(f"{module}.") or verdict.cause == "library-mismatch"):
        return replace(verdict, reason=f"{verdict.reason}; it was raised in `{module}`: {differs}")
    named = json.dumps(known["named"])
    advice = (
        f"Rehearse with the image's version. Write into rehearsal.toml: `[stand_in.{named}]`, below it "
        f'`like = {named}` and `requirements = ["{name}=={real}"]`. If it fails with that too: {verdict.advice}'
    )
    means = f"the exception comes from `{module}`, and {differs}: with the image's the code may well run"
    reason = f"{verdict.reason}, but not with the image's version"
    return replace(verdict, cause=DIFFERS, means=means, advice=advice, confidence="medium", reason=reason)


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
        differs = {module: tuple(map(str, triple)) for module, triple in found.get("differs", {}).items()}
        return {
            "absent": dict(found["absent"]),
            "partial": bool(found["partial"]),
            "remedy": str(found["remedy"]),
            "differs": {module: triple for module, triple in differs.items() if len(triple) == 3},
            "named": str(found.get("named", "")),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
