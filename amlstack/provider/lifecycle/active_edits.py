"""Effects of an edit on the run of a resource, decided at ``Diff`` before anything ends or begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from amlstack.provider import owned
from amlstack.provider.arm import ArmError
from amlstack.provider.lifecycle.edits import RunPlan
from amlstack.provider.owned import foreign, stack_ids
from amlstack.provider.resource import Difference
from amlstack.provider.runs import WorkspaceMissingError
from amlstack.provider.states import OnEdit, is_active
from amlstack.rpc import UNKNOWN, ErrorCode, ProviderError, bare, unknown_paths
from amlstack.run_identity import resource_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from amlstack.provider.lifecycle.edits import DeploymentMemory, Edit
    from amlstack.provider.resource import Call, Services, Values
    from amlstack.provider.runs import Record

_T = TypeVar("_T")


def mode_of(values: Values) -> OnEdit:
    """``on_edit``; refuse where it is not known yet."""
    given = bare(values.get("onEdit"))
    return OnEdit.REFUSE if given is UNKNOWN else OnEdit(given or OnEdit.REFUSE)


class Edited:
    """Judges edits of active runs."""

    def __init__(self, services: Services, deployment: DeploymentMemory) -> None:
        self._services = services
        self._deployment = deployment

    def declaration(self, call: Call, run: str, old: Values, new: Values, edit: Edit) -> Difference:
        """Another identity: another run. What becomes of an active one is the person's choice.

        Raises:
            ProviderError: It is active, and the choice is to refuse.
        """
        record = self._active(run, old, new)
        mode = mode_of(new)
        if edit.files and (record is None or mode is not OnEdit.REFUSE):
            self._services.host.info(f"another run than {run}: {edit.summary}", call.urn)
        if record is None:
            return Difference(replaces=edit.identity)
        if edit.unknown:
            # The engine also asks so about what depends on something that it is about to delete, and would delete the
            # job with it. It asks again with the values once they are known.
            self._services.host.info(
                f"run {run} is {record.status}; whether this edits it is not known yet (on_edit: {mode})", call.urn
            )
            return Difference()
        if new.get("onEdit") is UNKNOWN:
            self._services.host.info(
                f"run {run} is {record.status} and its declaration changed ({edit.summary}); what becomes of it is not "
                "known yet (on_edit)",
                call.urn,
            )
            return Difference()
        if mode is OnEdit.REFUSE:
            raise ProviderError(
                f"run {run} is {record.status} and its declaration changed ({edit.summary}). "
                "An edit is a new run, and the active one is not ended by surprise. Wait for its end or cancel it, or "
                "say what becomes of it: `on_edit: cancel` ends it first, `on_edit: keep` lets it go on"
            )
        if mode is OnEdit.KEEP:
            self._services.host.info(f"run {run} is {record.status} and goes on (on_edit: keep)", call.urn)
        self._plan(call, run, old, mode)
        return Difference(replaces=edit.identity, delete_first=mode is OnEdit.CANCEL)

    def ground(self, call: Call, run: str, old_inputs: Values, old: Values, new: Values) -> Difference | None:
        """Judge an edit that replaces the ground of a run: its id was known and is not known any more.

        The engine asks so before it deletes a thing whose id is an input here, and whenever that is being replaced at
        preview. In the first case it asks with the recorded inputs: an `on_edit` of the same edit is not in force yet.

        Returns:
            None when that ends no active run.

        Raises:
            ProviderError: It would, and ``on_edit`` is not cancel; or another run of the job would end.
        """
        lost = _lost(old_inputs or old, new)
        if not lost:
            return None
        places = _named(lost, new)
        for other in self._others_on(call, lost, run, old, new):
            why = "goes on by an earlier `on_edit: keep`" if other.kept_for else "no resource stands for it"
            raise ProviderError(
                f"run {other.job_id} of this job is {other.status} and {why}, but what it lives on is replaced "
                f"({places}). Wait for its end or cancel it, and then replace"
            )
        record = self._active(run, old, new)
        if record is None:
            return None
        mode = mode_of(new)
        if mode is not OnEdit.CANCEL:
            beside = "; `on_edit: keep` cannot hold there" if mode is OnEdit.KEEP else ""
            raise ProviderError(
                f"run {run} is {record.status}, and what it lives on is replaced ({places}). That would end it, "
                f"and an active run is not ended by surprise{beside}. Wait for its end or cancel it; or let a first "
                "`up` record `on_edit: cancel` for its job and nothing else, then this one ends it first"
            )
        self._services.host.info(
            f"run {run} is {record.status} and is ended first (on_edit: cancel): what it lives on is replaced "
            f"({places}). To run it again afterwards, set `rerun` to another word",
            call.urn,
        )
        self._plan(call, run, old, mode)
        return Difference(replaces=("workspace" if _open(new, "workspace") else "placedOn",), delete_first=True)

    def _plan(self, call: Call, run: str, old: Values, mode: OnEdit) -> None:
        self._deployment.plan(call.urn, RunPlan(str(bare(old.get("workspace"))), run, mode))

    def _active(self, run: str, old: Values, new: Values) -> Record | None:
        """The run if it is active and ours."""
        status = str(old.get("status") or "")
        if old.get("gone") or (status and not is_active(status)):
            return None  # an end is an end: no need to ask
        workspace = str(bare(old.get("workspace")))
        record = _asked(lambda: self._services.runs.get(workspace, run), f"run {run} is still active")
        active = record is not None and is_active(record.status) and not foreign(record, old, new)
        return record if active else None

    def _others_on(self, call: Call, lost: list[str], run: str, old: Values, new: Values) -> list[Record]:
        """Other active runs of this job that live on what is lost; one that does not say where it lives may.

        The engine also asks about a copy that an earlier deployment left pending deletion, after the job's resource.
        The run of that resource is then planned to end already: a resource stands for it, and ends it first.
        """
        workspace, owner = str(bare(old.get("workspace"))), str(old.get("owner"))
        stack = next(iter(stack_ids(old, new)), "")
        found = _asked(
            lambda: owned.active(self._services.arm, workspace, owner, stack), "other runs of this job are active"
        )
        places = {one.lower() for one in lost}
        ending = {plan.run for plan in self._deployment.plans(call.urn) if plan.mode is OnEdit.CANCEL}
        return [
            one
            for one in found or ()
            if one.job_id not in {run, *ending}
            and one.resource == resource_of(call.urn)
            and (not one.computes or one.computes & places)
        ]


def _lost(before: Values, new: Values) -> list[str]:
    """The known ids that are not known any more; all of them where the whole list is not.

    A program may pass the workspace's id as an output: that is ground as well. Where the declaration is edited at the
    same time, the new list is the ground of the new run and says nothing about the old one.
    """
    if _open(new, "workspace") and isinstance(bare(before.get("workspace")), str):
        return [str(bare(before["workspace"]))]
    known, now = bare(before.get("placedOn")), bare(new.get("placedOn"))
    if not isinstance(known, list) or not _open(new, "placedOn"):
        return []
    if isinstance(now, list) and len(now) == len(known):
        return [str(one) for one, other in zip(known, now, strict=True) if other is UNKNOWN and one is not UNKNOWN]
    return [str(one) for one in known]


def _open(values: Values, name: str) -> bool:
    return any(True for _ in unknown_paths(values.get(name)))


def _named(ids: list[str], new: Values) -> str:
    """``computes/a100``; ``one of computes/a100, workspaces/w`` where the engine does not say which of a list."""
    names = ", ".join("/".join(one.split("/")[-2:]) for one in ids)
    return f"one of {names}" if len(ids) > 1 and not isinstance(bare(new.get("placedOn")), list) else names


def _asked(ask: Callable[[], _T], what: str) -> _T | None:
    try:
        return ask()
    except WorkspaceMissingError:
        return None
    except ArmError as error:
        raise ProviderError(f"whether {what} cannot be asked: {error}", ErrorCode.UNAVAILABLE) from None
