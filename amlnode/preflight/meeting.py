"""All ranks of a job meet at the first rank: clocks are compared, reports collected, and all receive the result."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from amlnode.rank import NodeError, RankInfo

if TYPE_CHECKING:
    Report = dict[str, Any]
    Answer = tuple[Report, tuple[float, float] | None]

FAREWELL = 10.0
"""Seconds that a rank which hangs now may hold up the end of the meeting."""


@dataclass
class Reports:
    """The reports that came in at the first rank, and who has the result.

    Attributes:
        job: Name of the run, so that two jobs that share a port never mix.
        expected: How many ranks there are.
        reports: By rank: a node's report and (its clock's lead in seconds, how sure: half the round trip).
        present: Ranks that have handed in all they have.
        informed: Ranks that have the result.
        final: The result, once the first rank has announced it.
    """

    job: str
    expected: int
    reports: dict[int, Answer] = field(default_factory=dict)
    present: set[int] = field(default_factory=set)
    informed: set[int] = field(default_factory=set)
    final: dict[str, Any] | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def enter(self, rank: int, answer: Answer | None) -> None:
        """Note a rank that has handed in all it has."""
        with self.changed:
            self.present.add(rank)
            if answer is not None:
                self.reports[rank] = answer
            self.changed.notify_all()

    def full(self, until: float) -> bool:
        """Wait for all ranks until that time of the monotonic clock; whether all came."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.present) >= self.expected, max(0.0, until - time.monotonic()))

    def publish(self, result: dict[str, Any]) -> None:
        """Give the result to the others."""
        with self.changed:
            self.final = result
            self.changed.notify_all()

    def outcome(self, until: float) -> dict[str, Any]:
        """Wait for the result.

        Raises:
            ValueError: There was none by then.
        """
        with self.changed:
            if not self.changed.wait_for(lambda: self.final is not None, max(0.0, until - time.monotonic())):
                raise ValueError("no result")
            return self.final or {}

    def inform(self, rank: int) -> None:
        """Note a rank that has the result."""
        with self.changed:
            self.informed.add(rank)
            self.changed.notify_all()

    def wait_until_informed(self) -> None:
        """Wait until all who came have the result; a connection that hangs now is not worth more than some seconds."""
        with self.changed:
            self.changed.wait_for(lambda: self.informed >= self.present, FAREWELL)

    def result(self) -> dict[str, Any]:
        """All reports in the order of ranks, and who is missing."""
        with self.changed:
            return {
                "reports": [
                    {**report, "skew": skew and skew[0], "skew_error": skew and skew[1]}
                    for _, (report, skew) in sorted(self.reports.items())
                ],
                "missing": sorted(set(range(self.expected)) - self.present),
            }


ROUNDS = 8
LONGEST = 1 << 26
PAUSE = 0.2
"""Seconds between two attempts to reach the first rank, which may start later."""


def meet(
    info: RankInfo,
    report: Report | None,
    *,
    job: str,
    port: int,
    wait: float,
    clock: Callable[[], float] = time.time,
    announce: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Hand in a node's report and learn those of all.

    Args:
        info: This rank's place.
        report: The node's report, from its first rank; None from the others.
        job: Name of the run.
        port: Where the first rank listens.
        wait: Seconds that ranks may come apart.
        clock: The wall clock.
        announce: Called at the first rank with the result, before the others learn it: a bad one may end them, and
            they this rank.

    Raises:
        NodeError: The first rank cannot be reached, or its port is taken.
    """
    if info.world_size == 1:
        reports = Reports(job, 1)
        reports.enter(0, None if report is None else (report, None))
        announce(reports.result())
        return reports.result()
    if info.rank == 0:
        return _host(info, report, job=job, port=port, wait=wait, clock=clock, announce=announce)
    return _visit(info, report, job=job, port=port, wait=wait, clock=clock)


def _host(
    info: RankInfo,
    report: Report | None,
    *,
    job: str,
    port: int,
    wait: float,
    clock: Callable[[], float],
    announce: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    until = time.monotonic() + wait
    reports = Reports(job, info.world_size)
    reports.enter(0, None if report is None else (report, (0.0, 0.0)))
    reports.inform(0)
    with listening(info.master_addr, port) as server:
        ended = threading.Event()

        def accept() -> None:
            while not ended.is_set():
                with contextlib.suppress(socket.timeout):
                    connection, _ = server.accept()
                    threading.Thread(target=_serve, args=(connection, reports, until, clock), daemon=True).start()

        server.settimeout(PAUSE)
        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        reports.full(until)
        ended.set()
        acceptor.join()
        result = reports.result()
        announce(result)
        reports.publish(result)
        reports.wait_until_informed()
    return result


@contextlib.contextmanager
def listening(address: str, port: int) -> Iterator[socket.socket]:
    """A server at a port of the first node's address.

    Raises:
        NodeError: The port is taken.
    """
    server = None
    # At the master's own address alone where that is one of this machine's; behind a translation, at all of them.
    for place in (address, ""):
        with contextlib.suppress(OSError):
            family, _, _, _, where = socket.getaddrinfo(place or None, port, type=socket.SOCK_STREAM, flags=1)[0]
            server = socket.socket(family, socket.SOCK_STREAM)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                server.bind(where)
                server.listen(1024)
                break
            except OSError as error:
                server.close()
                server = None
                if error.errno == errno.EADDRINUSE:
                    break
    if server is None:
        raise NodeError(
            f"Port {port} of {address} cannot be listened on",
            "The other ranks connect to the first rank there",
            "Name a free port with --port, the same on all nodes.",
        )
    with server:
        yield server


def _serve(connection: socket.socket, reports: Reports, until: float, clock: Callable[[], float]) -> None:
    """One connection at the first rank; another protocol is ignored."""
    with connection, contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        connection.settimeout(max(1.0, until - time.monotonic()))
        with connection.makefile("rw", encoding="utf-8") as line:
            hello = _receive(line)
            _send(line, {"job": reports.job})
            if hello["job"] != reports.job or hello["world"] != reports.expected:
                return
            rank = int(hello["rank"])
            answer: Answer | None = None
            while True:
                message = _receive(line)
                if "ping" in message:
                    _send(line, {"received": clock(), "sent": clock()})
                    continue
                if message["report"] is not None:
                    answer = (message["report"], (float(message["lead"]), float(message["error"])))
                break
            reports.enter(rank, answer)
            try:
                _send(line, reports.outcome(until + FAREWELL))
            finally:
                reports.inform(rank)


def _visit(
    info: RankInfo, report: Report | None, *, job: str, port: int, wait: float, clock: Callable[[], float]
) -> dict[str, Any]:
    until = time.monotonic() + wait
    reason: object = "no answer"
    while time.monotonic() < until:
        try:
            with socket.create_connection((info.master_addr, port), timeout=max(1.0, until - time.monotonic())) as link:
                # The host answers when its own wait is over, which may have begun later than this one.
                link.settimeout(wait + 5)
                with link.makefile("rw", encoding="utf-8") as line:
                    return _converse(line, info, report, job, clock)
        except (OSError, ValueError, KeyError, TypeError) as error:  # noqa: PERF203 - the next attempt follows
            reason = error
            time.sleep(PAUSE)
    raise NodeError(
        f"Rank {info.rank} could not reach rank 0 at {info.master_addr}:{port} within {wait:g} s ({reason})",
        "All ranks of a job meet before the training",
        "See rank 0's log: it may have failed, or started later than --wait; else a network rule closes the port.",
    )


def _converse(
    line: IO[str], info: RankInfo, report: Report | None, job: str, clock: Callable[[], float]
) -> dict[str, Any]:
    _send(line, {"job": job, "rank": info.rank, "world": info.world_size})
    if _receive(line)["job"] != job:
        raise ValueError("another job listens there")
    best = (float("inf"), 0.0)
    for _ in range(ROUNDS if report is not None else 0):
        sent = clock()
        _send(line, {"ping": sent})
        answer = _receive(line)
        back = clock()
        trip = (back - sent) - (answer["sent"] - answer["received"])
        best = min(best, (trip, ((sent - answer["received"]) + (back - answer["sent"])) / 2))
    handed_in: dict[str, Any] = {"report": report}
    if report is not None:
        handed_in.update(lead=best[1], error=max(0.0, best[0]) / 2)
    _send(line, handed_in)
    return _receive(line)


def _send(line: IO[str], what: dict[str, Any]) -> None:
    line.write(json.dumps(what) + "\n")
    line.flush()


def _receive(line: IO[str]) -> dict[str, Any]:
    message = json.loads(line.readline(LONGEST) or "null")
    if not isinstance(message, dict):
        error = "the other side hung up"
        raise ValueError(error)  # noqa: TRY004 - as json raises for what it cannot read
    return message
