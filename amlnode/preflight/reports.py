"""The reports that came in at the first rank."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Answer = tuple[dict[str, Any], tuple[float, float] | None]

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
                message = "no result"
                raise ValueError(message)
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
