"""Retries: the answers that lead to another request, the delay before it, and the message meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from amlstack.provider.arm.answers import ArmError, Response
from amlstack.provider.arm.interrupts import InterruptedWaitError, attended, pause

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

THROTTLED: Final = 429
REPEATED: Final = frozenset({408, THROTTLED, 500, 502, 503, 504})

FAULTS: Final = 5
"""How often a request is repeated after a fault: no connection, no answer, or a 5xx."""
BACKOFF: Final = (0.4, 0.8, 1.6, 3.2, 6.4)
"""Seconds before each repetition where the service names none."""
THROTTLED_SECONDS: Final = 3600.0
"""Seconds for which the service may put off one request (429) before it is given up."""
THROTTLED_PAUSE: Final = 10.0
"""Seconds before a throttled request is repeated where the service names none."""


@dataclass(slots=True)
class Attempts:
    """The repetitions of one request.

    All requests of this project may be repeated: a PUT carries the whole state, a POST or PATCH asks for an end or sets
    values. What a repetition finds done already is for the caller to recognise.

    Args:
        request: The request in words, e.g. ``PUT jobs/a``.
        changes: Whether it changes something.
        cancelled: Ends everything when it is set.
        announce: Takes progress messages.
    """

    request: str
    changes: bool
    cancelled: threading.Event | None
    announce: Callable[[str], None]
    faults: int = 0
    waited: float = 0.0
    throttled: float = 0.0
    uncertain: bool = False

    def run(self, once: Callable[[], tuple[Response, str]]) -> tuple[Response, str]:
        """The first answer that is none of a fault, else the last one.

        Raises:
            ArmError: No connection or no credential, also after repetitions.
            InterruptedWaitError: ``cancelled`` was set.
        """
        while True:
            failure: ArmError | None = None
            answer: tuple[Response, str] | None = None
            try:
                answer = attended(once, self.cancelled)
            except InterruptedWaitError:
                raise self._interrupted(in_flight=True) from None
            except ArmError as error:
                failure = error
                if error.code != "ConnectionFailed":
                    raise
            if answer is not None and answer[0].status not in REPEATED:
                return answer
            seconds = self._seconds(answer[0] if answer else None)
            if seconds is None:
                if failure is not None:
                    failure.waited = self.waited
                    raise failure
                assert answer is not None  # noqa: S101 - there is one where nothing failed
                return replace(answer[0], waited=self.waited), answer[1]
            self._report(answer[0] if answer else None, failure, seconds)
            try:
                pause(seconds, self.cancelled)
            except InterruptedWaitError:
                raise self._interrupted(in_flight=False) from None

    def _seconds(self, response: Response | None) -> float | None:
        """How long to wait before the next attempt; None when there is to be none."""
        asked = response.retry_after if response else None
        if response is not None and response.status == THROTTLED:
            seconds = asked or THROTTLED_PAUSE
            self.throttled += seconds
            self.waited += seconds
            return seconds if self.throttled <= THROTTLED_SECONDS else None
        # An answer of 5xx or none at all says nothing about whether the request took effect.
        self.uncertain |= self.changes
        if self.faults >= FAULTS:
            return None
        seconds = asked or BACKOFF[self.faults]
        self.faults += 1
        self.waited += asked or 0.0
        return seconds

    def _report(self, response: Response | None, failure: ArmError | None, seconds: float) -> None:
        if response is not None and response.status == THROTTLED:
            self.announce(f"the service asks to wait {_shown(seconds)} (429, too many requests): {self.request}")
        elif response is not None:
            self.announce(f"the service answered {response.status}; asking again in {_shown(seconds)}: {self.request}")
        elif failure is not None:
            self.announce(f"{failure.message}; asking again in {_shown(seconds)}")

    def _interrupted(self, *, in_flight: bool) -> InterruptedWaitError:
        uncertain = self.uncertain or (in_flight and self.changes)
        return InterruptedWaitError(self.request, uncertain=uncertain)


def _shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
