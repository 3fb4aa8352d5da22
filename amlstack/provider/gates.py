"""``wait``: a run that others depend on. It lets through, waits, or fails and stays failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.provider.arm import ArmError
from amlstack.provider.runs import WorkspaceMissingError
from amlstack.provider.states import RunVerdict, Wait, verdict
from amlstack.provider.waiting import InterruptedWaitError, WaitTimeoutError, follow
from amlstack.rpc import UNKNOWN, InitFailedError, bare

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Services, Values
    from amlstack.provider.runs import Record

_MOST = 6
"""Names in a message."""


class Gates:
    """Judges runs under their ``wait``."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @staticmethod
    def open_question(old: Values, new: Values) -> bool:
        """Whether the recorded status does not satisfy the wanted ``wait``: then the resource needs an update.

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
        own, out = f" of `{bare(state.get('name'))}`", ", or take it out of their `after`"
    return (
        f"run {run} ended {status}{reason}, and {waiting} {wait}. It is not run again by itself: set `rerun`{own} to "
        f"another word to run it again{out}"
    )


def _awaited_by(state: Values) -> str:
    """The jobs that come after this one; empty for none."""
    names = bare(state.get("awaitedBy"))
    shown = [f"`{name}`" for name in names] if isinstance(names, list) else []
    return ", ".join(shown if len(shown) <= _MOST else [*shown[:_MOST], f"{len(shown) - _MOST} more"])
