"""The planned hardware of a node, as the job's plan states it."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from amlnode.errors import NodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "AMLSTACK_PLAN"
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class PlannedNode:
    """One node as planned; None: not planned, so that it cannot be judged.

    Attributes:
        size: Name of the VM size, for the reader.
        gpus: GPUs of a node; 0 for a CPU size.
        infiniband: InfiniBand ports of a node that must be active; 0 for none.
        shm: Bytes of shared memory.
        disk: Bytes that must be free in the working folder.
    """

    size: str | None = None
    gpus: int | None = None
    infiniband: int | None = None
    shm: int | None = None
    disk: int | None = None


def read(given: str | None, environ: Mapping[str, str]) -> PlannedNode:
    """The plan from the command line (JSON, or a file of it), else from AMLSTACK_PLAN, else an empty one.

    Raises:
        NodeError: It is no JSON, or has unknown keys.
    """
    where = "--plan" if given else VARIABLE
    text = given or environ.get(VARIABLE) or "{}"
    names = [field.name for field in fields(PlannedNode)]
    rule = f"A plan is a JSON object of {', '.join(names)}"
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, ValueError):
            raise NodeError(f"{where} must be JSON or a file of it, got `{text}`", rule, "Correct it.") from None
    try:
        values = json.loads(text)
    except ValueError as error:
        raise NodeError(f"{where} cannot be read as JSON ({error})", rule, 'E.g. {"gpus": 8, "shm": "64g"}.') from None
    if not isinstance(values, dict):
        raise NodeError(f"{where} must be a JSON object, got `{text}`", rule, 'E.g. {"gpus": 8, "shm": "64g"}.')
    for name in values:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            raise NodeError(
                f"{where} has the unknown key `{name}`", rule, f"Did you mean `{near[0]}`?" if near else "Leave it out."
            )
    counts = {name: _amount(name, values[name]) for name in names if name != "size" and values.get(name) is not None}
    return PlannedNode(size=values.get("size") and str(values["size"]), **counts)


def amount(text: str) -> int:
    """Bytes from `64g`, `512M`, `1024`; binary units, any letter case, as Docker writes them.

    Raises:
        ValueError: It is no amount.
    """
    words = text.strip().lower()
    if words.endswith("ib"):
        words = words[:-2]
    number, unit = (words, "") if words[-1:].isdigit() else (words[:-1], words[-1:])
    return int(float(number) * UNITS[unit]) if unit in UNITS else int(number + "?")


def _amount(name: str, value: object) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError  # noqa: TRY004, TRY301 - one message for all that is no amount
        found = value if isinstance(value, int) else amount(value)
        if found < 0:
            raise ValueError  # noqa: TRY301
    except (ValueError, OverflowError):
        raise NodeError(
            f"The plan's {name} must be a number from 0, got {json.dumps(value)}",
            "It counts bytes and may have a unit, such as 64g" if name in ("shm", "disk") else "It is a count",
            "Correct it, or leave it out.",
        ) from None
    return found
