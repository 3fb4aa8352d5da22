"""``after``: what must have completed before a run is submitted, looked at once more just before that.

The engine creates a job only when those that it comes after have been created and waited for. It does not ask what
became of them where it leaves them out (``--target``), so the run itself does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amlstack.provider.states import COMPLETED, UNSUCCESSFUL
from amlstack.rpc import ErrorCode, ProviderError, bare

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Services, Values


_GONE = "gone from the workspace"


class Predecessor(NamedTuple):
    """Name, ARM id of the run and status of what comes before; empty where that is not known yet, at preview."""

    job: str
    run: str
    status: str


def require(services: Services, run: str, state: Values) -> None:
    """Refuses to submit a run before all that it comes after has completed.

    Raises:
        ProviderError: It names both, and the way out.
        ArmError: The workspace cannot be asked.
        WorkspaceMissingError: There is no such workspace.
    """
    for one in _given(state):
        status = one.status if one.status == COMPLETED or not one.run else _now(services, one.run)
        if status != COMPLETED:
            seen = f"whose run {one.run.rsplit('/', 1)[-1]} is {status}" if one.run else "which has not run"
            raise ProviderError(
                f"run {run} was not submitted: `{bare(state['name'])}` comes after `{one.job}` (`after`), {seen}. "
                f"{_remedy(one.job, status)}, or take `{one.job}` out of its `after`",
                ErrorCode.FAILED_PRECONDITION,
            )


def foretell(services: Services, call: Call, state: Values) -> None:
    """Says at preview what a run that will be submitted waits for."""
    names = [f"`{one.job}`" for one in _given(state) if one.status != COMPLETED]
    if names:
        has = "have" if len(names) > 1 else "has"
        services.host.info(f"submitted only once {', '.join(names)} {has} completed (`after`)", call.urn)


def _given(state: Values) -> list[Predecessor]:
    after = bare(state.get("after"))
    return [
        Predecessor(*(one if isinstance(one := each.get(name), str) else "" for name in ("job", "run", "status")))
        for each in (after if isinstance(after, list) else ())
        if isinstance(each, dict)
    ]


def _now(services: Services, run: str) -> str:
    workspace, _, name = run.rpartition("/jobs/")
    record = services.runs.get(workspace, name)
    return _GONE if record is None else record.status


def _remedy(job: str, status: str) -> str:
    if status in UNSUCCESSFUL or status == _GONE:
        return f"Set `rerun` of `{job}` to another word to run it again"
    return f"Deploy it together with `{job}`, which then is waited for"
