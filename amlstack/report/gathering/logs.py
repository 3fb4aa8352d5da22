"""A folder of logs: the verdict on them, the lines to show, the numbers in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.diagnose import Diagnosis, judge, read
from amlstack.diagnose.events import Origin
from amlstack.diagnose.signatures import EventRole
from amlstack.report.gathering import series
from amlstack.report.gathering.excerpts import budget, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from amlstack.base.findings import Finding
    from amlstack.diagnose.events import Log
    from amlstack.report.content import Excerpt, Series

_RUNNER = "runner.log"
MOST_LOGS = 128
MOST_SEARCHED = 8
"""Logs that are searched for numbers: rank 0's comes first."""


@dataclass(frozen=True, slots=True)
class FolderLogs:
    """What a folder of logs holds.

    Attributes:
        logs: As they were read.
        verdict: On all of them.
        excerpts: What is shown.
        series: The numbers that the first rank which prints any prints.
        findings: What could not be read.
        left_out: How many logs are not shown.
    """

    logs: tuple[Log, ...]
    verdict: Diagnosis
    excerpts: tuple[Excerpt, ...]
    series: tuple[Series, ...]
    findings: tuple[Finding, ...]
    left_out: int = 0


def gather(folder: Path) -> FolderLogs:
    """Reads all logs of a folder."""
    found = read([folder])
    verdict = judge(found)
    texts = sorted((log for log in found.logs if (folder / log.name).suffix != ".json"), key=_turn)
    shown = _shown(texts, verdict)
    size = budget(len(shown))
    excerpts = [made for log in shown if (made := _excerpt(folder, log, verdict, size)) is not None]
    numbers = _numbers(folder, texts)
    return FolderLogs(found.logs, verdict, tuple(excerpts), numbers, found.findings, len(texts) - len(shown))


def series_of(folder: Path) -> tuple[Series, ...]:
    """The numbers alone."""
    return _numbers(folder, sorted(read([folder]).logs, key=_turn))


def _numbers(folder: Path, logs: Iterable[Log]) -> tuple[Series, ...]:
    """Of the first rank that prints any; what the sandbox itself writes about the job are no numbers of it."""
    ranks = [log for log in logs if log.name != _RUNNER and (folder / log.name).suffix != ".json"]
    return next((each for log in ranks[:MOST_SEARCHED] if (each := _series(folder, log))), ())


def _turn(log: Log) -> tuple[int, int, bool, str]:
    """Ranks' own logs first, in their order; then launchers', the service's and the runner's."""
    kind = 2 if log.name.startswith("nodes/") else 1 if log.name == _RUNNER else 0
    own = not log.name.rpartition("/")[2].startswith("std_log_process")
    return (kind, -1 if log.rank is None else log.rank, own, log.name)


def _shown(texts: list[Log], verdict: Diagnosis) -> list[Log]:
    if len(texts) <= MOST_LOGS:
        return texts
    named = {verdict.file, *(victim.file for victim in verdict.victims[:8])}
    first = [log for log in texts if log.name in named]
    rest = [log for log in texts if log.name not in named]
    return sorted([*first, *rest][:MOST_LOGS], key=_turn)


def _excerpt(folder: Path, log: Log, verdict: Diagnosis, size: int) -> Excerpt | None:
    path = folder / log.name
    if path.suffix == ".gz":  # its lines are judged; its bytes are not for the eye
        return None
    try:
        return excerpt(path, log.name, rank=log.rank, node=log.node, marks=_marks(log, verdict), size=size)
    except OSError:
        return None


def _marks(log: Log, verdict: Diagnosis) -> dict[int, str]:
    """The line of the verdict, or the first line of this log that reports an end."""
    if verdict.found and verdict.file == log.name and verdict.line:
        return {verdict.line: "cause"}
    ended = [event for event in log.events if event.origin in (Origin.LINE, Origin.TRACEBACK)]
    first = min((event.line for event in ended if event.role in (EventRole.CULPRIT, EventRole.VICTIM)), default=None)
    return {} if first is None else {first: "victim"}


def _series(folder: Path, log: Log) -> tuple[Series, ...]:
    return series.from_log(folder / log.name, log.name, min(log.ranks) if log.ranks else None)
