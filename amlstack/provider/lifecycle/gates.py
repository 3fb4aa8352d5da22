"""Waiting for a run, with its progress as engine status messages; ``wait`` lets through, waits, or fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from amlstack.provider.arm import THROTTLED, ArmError, InterruptedWaitError, pause
from amlstack.provider.runs import Record, RunVerdict, Wait, WorkspaceMissingError, verdict
from amlstack.rpc import UNKNOWN, InitFailedError

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Services, Values

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
    """The facts that are known of a run whose submission was interrupted."""
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


_MOST = 6
"""Names in a message."""


class Gates:
    """Judges runs under their ``wait``."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @staticmethod
    def open_question(old: Values, new: Values) -> bool:
        """True where the recorded status does not satisfy the wanted ``wait``: then the resource needs an update.

        The engine remembers a failed initialisation by itself, but forgets it when a state is edited or repaired.
        """
        if new.get("wait") is UNKNOWN:
            return True  # at preview: it may turn out to be any
        return verdict(_wait(new), str(old.get("status") or "Unknown")) is not RunVerdict.SATISFIED

    def judge(self, run: str, state: Values, inputs: Values) -> None:
        """Says without waiting whether the gate is open.

        Raises:
            InitFailedError: It is not. A refresh then warns and keeps the failure for the next ``up``.
        """
        wait, status = _wait(state), str(state.get("status") or "Unknown")
        result = verdict(wait, status)
        if result is RunVerdict.SATISFIED:
            return
        if result is RunVerdict.FAILED:
            reason = _failed(run, wait, status, self._why(run, state), state)
        elif state.get("gone"):
            reason = (
                f"the record of run {run} is gone, and it was last seen {status} (wait: {wait}). "
                "It is not run again by itself: set `rerun` to another word"
            )
        else:
            reason = f"run {run} is {status} (wait: {wait}); the next `up` goes on waiting"
        raise InitFailedError(run, state, [reason], inputs)

    def pass_(self, call: Call, run: str, state: Values, record: Record) -> Values:
        """Waits as long as the gate asks for.

        Returns:
            The state, with the status at the end.

        Raises:
            InitFailedError: The run did not do what is waited for; its id and state are kept.
        """
        wait = _wait(state)
        what = "has started" if wait is Wait.STARTED else "has completed"
        try:
            last = follow(
                self._services,
                call,
                str(state["workspace"]),
                record,
                until=lambda now: verdict(wait, now.status) is not RunVerdict.PENDING,
                what=what,
            )
        except InterruptedWaitError:
            reason = f"interrupted (wait: {wait}); run {run} goes on, and the next `up` waits for it again"
            raise InitFailedError(run, state, [reason]) from None
        except (WaitTimeoutError, ArmError, WorkspaceMissingError) as error:
            reason = f"{error} (wait: {wait}); the run goes on, and the next `up` waits again"
            raise InitFailedError(run, state, [reason]) from None
        if last is None:
            state = {**state, "gone": True}
        else:
            state = {**state, "status": last.status, "services": last.services or state.get("services") or {}}
        self.judge(run, state, {})
        return state

    def _why(self, run: str, state: Values) -> str:
        """The service's reason; a run history that does not answer only makes the message poorer."""
        try:
            return self._services.runs.why(str(state["workspace"]), run)
        except (ArmError, InterruptedWaitError):
            return ""


def _wait(values: Values) -> Wait:
    return Wait(values.get("wait") or Wait.NONE)


def _failed(run: str, wait: Wait, status: str, why: str, state: Values) -> str:
    reason = f" ({why.rstrip('.')})" if why else ""
    waiting, own, out = "what depends on it waits until it has", "", ""
    if names := _awaited_by(state):
        waiting = f"what comes after it ({names}) is submitted only once it has"
        own, out = f" of `{state.get('name')}`", ", or take it out of their `after`"
    return (
        f"run {run} ended {status}{reason}, and {waiting} {wait}. It is not run again by itself: set `rerun`{own} to "
        f"another word to run it again{out}"
    )


def _awaited_by(state: Values) -> str:
    """The jobs that come after this one; empty for none."""
    names = state.get("awaitedBy")
    shown = [f"`{name}`" for name in names] if isinstance(names, list) else []
    return ", ".join(shown if len(shown) <= _MOST else [*shown[:_MOST], f"{len(shown) - _MOST} more"])
