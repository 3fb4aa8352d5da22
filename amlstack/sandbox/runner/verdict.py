"""The rank that failed first: the one to name in the job's error.

A victim's end (its peer went away) must not be taken for the cause, whatever the order in which the ends were seen.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
