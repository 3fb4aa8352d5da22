"""The rank that failed first: the one to name in the job's error.

A victim's end (its peer went away) must not be taken for the cause, whatever the order in which the ends were seen.

``report.json`` in the job's folder: what ran where, for how long, and how it ended.
"""

from __future__ import annotations

import json
import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from amlstack.sandbox.contract.launch import RankPlace
    from amlstack.sandbox.contract.spec import Spec
    from amlstack.sandbox.contract.torchrun import Worker
    from amlstack.sandbox.runner.nodes import RankEnd
    from amlstack.sandbox.store.store import JobRow

_VICTIM = re.compile(
    r"connection (was )?(closed|reset) by (remote )?peer|connection reset|broken pipe|socket (was )?closed"
    r"|horovod has been shut down|failed to recv|communicator was aborted|remote process exited"
    r"|DistNetworkError|DistStoreError|SignalException|received \d+ death signal",
    re.IGNORECASE,
)
_RAISED = re.compile(
    r"^(?:\[rank ?\d+\]:\s?)*((?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Warning)\b.*)$", re.MULTILINE
)
TAIL = 16 * 1024


@dataclass(frozen=True, slots=True)
class End:
    """How one failed rank ended.

    Attributes:
        rank, node, local_rank: Where it stood.
        code: Exit code; negative for a signal.
        at: When, in seconds since the epoch: its exit, or the last line it wrote.
        log: Its log, relative to the job's folder.
        words: The end of that log.
        stopped: It ended after it was asked to stop.
    """

    rank: int
    node: int
    local_rank: int
    code: int
    at: float
    log: str
    words: str
    stopped: bool = False

    @property
    def victim(self) -> bool:
        """Its last words blame a peer."""
        return bool(_VICTIM.search(self.words))


def first(ends: Iterable[End]) -> End | None:
    """The first true cause among failed ranks: no victim, not stopped, the earliest."""
    return min(ends, key=lambda end: (end.stopped, end.victim, end.at, end.rank), default=None)


def sentence(end: End, ranks: int) -> str:
    """One sentence for the job's error: rank, node, code or signal, the exception's line, the log."""
    how = f"exited with code {end.code}" if end.code >= 0 else f"was killed by {_signal(-end.code)}"
    raised = _RAISED.findall(end.words)
    reason = f": {raised[-1].strip()[:300]}" if raised and end.code > 0 else ""
    place = f"node {end.node}, local rank {end.local_rank}"
    return f"Execution failed: rank {end.rank} of {ranks} ({place}) {how}{reason}. Its log: {end.log}"


def tail(path: Path, size: int = TAIL) -> str:
    """The last bytes of a text file; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


METRICS = "metrics.json"
"""What a training script may write into ``outputs/``: its last metrics, shown with the run."""


def ranks(
    places: Sequence[RankPlace], ends: Sequence[RankEnd], workers: Sequence[Worker], logs: str, failed: dict[int, int]
) -> list[dict[str, Any]]:
    """One entry per training process: those that torchrun started, else those that the service started.

    Args:
        places: The service's processes.
        ends: Their ends.
        workers: The ranks that torchrun started.
        logs: Name of the log folder.
        failed: Exit codes of the workers that failed, by rank.
    """
    by_rank = {end.rank: end for end in ends}
    if workers:
        entries = []
        for worker in workers:
            parent = by_rank.get(_parent(places, worker.node))
            code = failed.get(worker.rank, 0 if parent is not None and parent.code == 0 else None)
            end = {"rank": worker.rank, "node": worker.node, "local_rank": worker.local_rank, "code": code}
            files = [f"{logs}/{path.name}" for path in (worker.stdout, worker.stderr)]
            entries.append({**end, **_times(parent), "logs": files})
        return entries
    entries = []
    for place in places:
        ended = by_rank.get(place.rank)
        end = {"rank": place.rank, "node": place.node, "local_rank": place.local_rank}
        code = None if ended is None else ended.code
        entries.append({**end, "code": code, **_times(ended), "logs": [f"{logs}/{place.log}"]})
    return entries


def metrics(folder: Path) -> Any:
    """The content of ``outputs/metrics.json``; None when there is none or it is no JSON."""
    try:
        return json.loads((folder / "outputs" / METRICS).read_text())
    except (OSError, ValueError):
        return None


def write(folder: Path, job: JobRow, spec: Spec | None, **rest: Any) -> None:
    """Writes the report whole or not at all.

    Args:
        folder: The job's folder.
        job: Its row after the end.
        spec: What it asked for; None when that could not be read.
        rest: Further entries.
    """
    data = {
        "job": job.name,
        "workspace": job.workspace,
        "status": job.status,
        "error": None if job.error is None else {"code": job.error.code, "message": job.error.message},
        "created": job.created,
        "started": job.started,
        "ended": job.ended,
        "command": None if spec is None else spec.command,
        "nodes": None if spec is None else spec.nodes,
        **rest,
    }
    write_whole(folder / "report.json", json.dumps(data, indent=1) + "\n")


def _parent(places: Sequence[RankPlace], node: int) -> int:
    return next(place.rank for place in places if place.node == node)


def _times(ended: RankEnd | None) -> dict[str, float | None]:
    if ended is None or ended.started is None or ended.ended is None:
        return {"started": None, "ended": None, "seconds": None}
    return {"started": ended.started, "ended": ended.ended, "seconds": round(ended.ended - ended.started, 3)}
