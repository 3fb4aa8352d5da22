"""The result of a check of a node."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

GOOD, WARNING, BAD, UNJUDGED = "good", "warning", "bad", "not judged"


@dataclass(frozen=True)
class Check:
    """One check's answer.

    Attributes:
        name: What was checked, in a word.
        state: good, warning, bad (the job must not go on) or not judged.
        seen: What was seen; for `not judged`, why it was not.
        remedy: What to do; empty when good.
    """

    name: str
    state: str
    seen: str
    remedy: str = ""


def size(count: float) -> str:
    """Bytes for a reader: 64 MiB, 1.5 TiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def publish(result: Mapping[str, Any], rows: Sequence[str], options: argparse.Namespace) -> None:
    """Prints a result, as rows or as JSON (``--json``), and writes it to ``--output`` where that is possible."""
    text = json.dumps(result, indent=1)
    print(text if options.json else "\n".join(rows), flush=True)
    with contextlib.suppress(OSError):
        path = Path(options.output)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
