"""Logs of ranks → the first true cause.

`read` streams files into events, `judged` weighs them, `diagnose` does both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.diagnose.diagnosis import Diagnosis
from amlstack.diagnose.judge import judge as _judge
from amlstack.diagnose.sources import Read, read

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Diagnosis", "Read", "diagnose", "judged", "read"]


def diagnose(paths: Iterable[Path]) -> Diagnosis:
    """Reads files and folders of logs and names the first true cause."""
    return judged(read(paths))


def judged(found: Read) -> Diagnosis:
    """The verdict on what was read."""
    verdict = _judge(found.logs)
    return replace(verdict, files=len(found.logs), lines=sum(log.lines for log in found.logs))
