"""Logs of ranks → the first true cause.

`read` streams files into events, `judge` weighs them, `diagnose` does both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.diagnose.diagnosis import Diagnosis
from amlstack.diagnose.judgement.culprit import first_cause
from amlstack.diagnose.judgement.no_culprit import with_stand_in
from amlstack.diagnose.reading.files import LogFiles, read

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Diagnosis", "LogFiles", "diagnose", "judge", "read", "with_stand_in"]


def diagnose(paths: Iterable[Path]) -> Diagnosis:
    """Reads files and folders of logs and names the first true cause."""
    folders = list(paths)
    return with_stand_in(judge(read(folders)), folders)


def judge(found: LogFiles) -> Diagnosis:
    """The verdict on what was read."""
    verdict = first_cause(found.logs)
    return replace(verdict, files=len(found.logs), lines=sum(log.lines for log in found.logs))
