"""Waiting for a run, with its progress as engine status messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from amlstack.provider.arm import THROTTLED, ArmError, InterruptedWaitError, pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from amlstack.provider.resource import Call, Services
    from amlstack.provider.runs import Record

_FIRST_DELAY = 1.0
_GROWTH = 1.5
_LONGEST_DELAY = 10.0
_PATIENCE = 300.0
_LOCAL_PATIENCE = 15.0
"""A service on this machine that does not answer has ended, and will come back at another port."""


class WaitTimeoutError(Exception):
    """The person's own limit for the operation has passed."""


def follow(
    services: Services,
    call: Call,
    workspace: str,
    record: Record,
    *,
    until: Callable[[Record], bool],
    what: str,
    at_once: bool = False,
) -> Record | None:
    """Asks for the record until ``until`` holds.

    Args:
        services: Where to ask and where to report.
        call: Its timeout limits the wait.
        workspace: ARM id of the workspace.
        record: The run as last seen.
        until: What is waited for.
        what: Shown in the progress line, e.g. ``ends``.
        at_once: The record is older than what is waited for, so that the first look needs no pause.

    Returns:
        The record at the end; ``None`` when it vanished meanwhile.

    Raises:
        InterruptedWaitError: The engine wants to end.
        WaitTimeoutError: The call's timeout has passed.
        ArmError: The service refused, or has not answered for some time. Seconds that the service itself asked to wait
            do not count, and a service that throttles answers.
    """
    started = answered = time.monotonic()
    local = urlsplit(services.arm.endpoint).hostname in {"127.0.0.1", "::1", "localhost"}
    patience = _LOCAL_PATIENCE if local else _PATIENCE
    delay = _FIRST_DELAY
    current: Record | None = record
    asked = not at_once
    while current is not None and not until(current):
        if asked:
            seconds = time.monotonic() - started
            services.host.status(
                f"{current.job_id} is {current.status}; waiting until it {what} ({_clock(seconds)})", call.urn
            )
            if call.timeout is not None and seconds >= call.timeout:
                raise WaitTimeoutError(f"{current.job_id} is still {current.status} after {_clock(seconds)}")
            pause(current.delay or delay, services.cancelled)
            delay = min(delay * _GROWTH, _LONGEST_DELAY)
        asked = True
        try:
            current = services.runs.get(workspace, current.job_id)
            answered = time.monotonic()
        except ArmError as error:
            # A wait may last for days; the network and the service may fail for minutes.
            answered += error.waited
            silent = 0.0 if error.status == THROTTLED else time.monotonic() - answered
            if not _passing(error) or silent > patience:
                raise
            if error.status == THROTTLED:
                answered = time.monotonic()
            services.host.status(f"{error.message}; asking again", call.urn)
    return current


def interrupted_submission(error: InterruptedWaitError) -> str:
    """What is known of a run whose submission was interrupted."""
    if error.uncertain and error.request.startswith("PUT"):
        return (
            "interrupted; whether the run was accepted is not known: the next `up` looks for it first, and submits it "
            "only if it is not there"
        )
    return "interrupted; the run was not submitted, and the next `up` goes on"


def _passing(error: ArmError) -> bool:
    return error.code == "ConnectionFailed" or error.status == THROTTLED or error.status >= 500


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


__all__ = ["InterruptedWaitError", "WaitTimeoutError", "follow", "interrupted_submission"]
