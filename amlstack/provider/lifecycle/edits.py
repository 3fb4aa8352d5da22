"""Edits of a job: another run, another label, or nothing; the end of its run, and other active runs of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from amlstack.provider import run_lists
from amlstack.provider.arm import ArmError, InterruptedWaitError
from amlstack.provider.lifecycle.gates import follow
from amlstack.provider.resource import Call, Difference, Services, Values, same_arm_id, text_of
from amlstack.provider.run_lists import foreign
from amlstack.provider.runs import OnEdit, Record, Runs, WorkspaceMissingError, is_active
from amlstack.rpc import UNKNOWN, ErrorCode, ProviderError, changed_paths, unknown_paths
from amlstack.run_identity import KEPT_FOR, NO_JOB, owner_of, resource_of
from amlstack.snapshot import differences


def mark_kept(runs: Runs, workspace: str, run: str, successor: str) -> None:
    """Marks a run as kept.

    Args:
        runs: Job records.
        workspace: ARM id of the workspace.
        run: The run that goes on. One whose record is gone needs no mark.
        successor: The run that its job stands for from now on, or `amlstack.run_identity.NO_JOB`.

    Raises:
        ProviderError: It could not be marked. A later deployment would end it by mistake.
    """
    try:
        record = runs.get(workspace, run)
        if record is None or record.kept_for == successor:
            return
        if runs.edit(workspace, record, {"tags": {KEPT_FOR: successor}}):
            return
        reason = "the run history does not know it"
    except (ArmError, WorkspaceMissingError) as error:
        reason = str(error)
    raise ProviderError(
        f"run {run} could not be marked as kept ({reason}); nothing new was started, so that it is not "
        "cancelled by mistake. Try again"
    )


def release_mark(runs: Runs, workspace: str, record: Record) -> None:
    """Takes the mark off a run that a resource stands for again.

    Raises:
        ArmError: The service refused.
    """
    if not record.kept_for:
        return
    if not runs.remove_tags(workspace, record, [KEPT_FOR]):
        # Not every service removes tags; an empty one means the same.
        runs.edit(workspace, record, {"tags": {KEPT_FOR: ""}})


def end(services: Services, call: Call, workspace: str, record: Record) -> None:
    """Cancels an active run and waits for its end.

    Raises:
        ArmError: The service refused.
        InterruptedWaitError: The engine wants to end.
        WaitTimeoutError: The call's timeout has passed.
    """
    services.runs.cancel(workspace, record.job_id)
    try:
        # A run that has not begun is over as soon as it is cancelled.
        ended, what = (lambda now: not is_active(now.status)), "has ended"
        follow(services, call, workspace, record, until=ended, what=what, at_once=True)
    except InterruptedWaitError:
        raise InterruptedWaitError(f"the wait for the end of {record.job_id}", uncertain=True) from None


def goes_on(deployment: DeploymentMemory, call: Call, workspace: str, record: Record) -> bool:
    """True where an active run that is kept goes on although the resource that stood for it is deleted.

    A mark holds as long as the job is there. It is left over from an edit that never came to be when `Diff` has decided
    to end the run, and it holds nothing when the job itself is removed: no resource would stand for the run any more.
    """
    if not record.kept_for or _planned(deployment, call, record) is OnEdit.CANCEL:
        return False
    return (
        record.kept_for == NO_JOB
        or deployment.has(call.urn)
        or deployment.holder(workspace, record.kept_for) is not None
    )


def stays(deployment: DeploymentMemory, call: Call, workspace: str, run: str, inputs: Values) -> bool:
    """True where a run has a resource after this deletion: a forced replacement, or a copy pending deletion."""
    if any(plan.run == run and plan.mode is OnEdit.CANCEL for plan in deployment.plans(call.urn)):
        return False
    return deployment.holder(workspace, run) is not None or deployment.declares(call.urn, inputs)


def _planned(deployment: DeploymentMemory, call: Call, record: Record) -> OnEdit | None:
    return next((plan.mode for plan in deployment.plans(call.urn) if plan.run == record.job_id), None)


FRESH = 5.0
"""Seconds for which a list says whose a run is and whether it was kept; somebody else may change either."""


class Siblings:
    """Finds and settles them. Safe for use by several threads."""

    def __init__(self, services: Services, deployment: DeploymentMemory) -> None:
        self._services = services
        self._deployment = deployment
        self._lock = threading.Lock()
        # Listed once before what a deployment creates and once before what it removes: what is looked for is older.
        # Each find but a removed job's own run is looked at again.
        self._listed: dict[tuple[str, str, str, bool], tuple[float, dict[str, list[Record]]]] = {}

    def active_runs(
        self, call: Call, workspace: str, run: str, owner: str, values: Values, *, removed: bool = False
    ) -> list[Record]:
        """The active runs of the job but ``run``, as they are now.

        Args:
            call: Its URN tells runs of this resource from those of another one of the same name.
            workspace: ARM id of the workspace.
            run: The run to leave out.
            owner: ``project/stack``.
            values: Inputs or state of the job.
            removed: Whether the job itself is removed.

        Raises:
            ArmError: The workspace cannot be asked.
        """
        found: list[Record] = []
        for one in self._candidates(call, workspace, owner, values, removed=removed):
            if one.job_id == run:
                continue
            if self._deployment.holder(workspace, one.job_id) not in (None, call.urn):
                continue
            now = self._services.runs.get(workspace, one.job_id)
            if now is not None and is_active(now.status):
                found.append(now)
        return found

    def removed(self, call: Call, workspace: str, run: str, old: Values) -> Record | None:
        """The run of a job that is removed, as the stack's list of active runs has it; None when it is not there.

        One list serves the removals of `FRESH` seconds, which saves a request for each job: its owner and its mark are
        at most so old. Its status may have changed since: whether it has ended is for the look after the cancellation.

        Raises:
            ArmError: The workspace cannot be asked.
        """
        candidates = self._candidates(call, workspace, str(old.get("owner")), old, removed=True, age=FRESH)
        return next((one for one in candidates if one.job_id == run), None)

    def foretell(self, call: Call, workspace: str, run: str, state: Values) -> None:
        """Says at preview what `settle` will do.

        Raises:
            ProviderError: A run without a resource is active, and ``on_edit`` is refuse.
            ArmError: The workspace cannot be asked.
        """
        planned = {plan.run for plan in self._deployment.plans(call.urn)}
        orphans = [one for one in self._orphans(call, workspace, run, state) if one.job_id not in planned]
        if state.get("onEdit") is UNKNOWN:
            for one in orphans:
                self._services.host.info(f"{_seen(one)}; what becomes of it is not known yet (on_edit)", call.urn)
            return
        mode = _mode(state, orphans)
        for one in orphans:
            becomes = "goes on" if mode is OnEdit.KEEP else "is ended first"
            self._services.host.info(f"{_seen(one)}; it {becomes} (on_edit: {mode})", call.urn)

    def settle(self, call: Call, workspace: str, run: str, state: Values) -> None:
        """Before ``run`` begins or is adopted: what goes on is marked, what must end is ended.

        A crash at any later point then finds every other run of the job kept or ended.

        Raises:
            ProviderError: A run without a resource is active, and ``on_edit`` is refuse; or one cannot be marked.
            ArmError: The workspace cannot be asked.
        """
        for plan in self._deployment.plans(call.urn):
            if plan.mode is OnEdit.KEEP and plan.run != run:
                mark_kept(self._services.runs, plan.workspace, plan.run, run)
        orphans = self._orphans(call, workspace, run, state)
        mode = _mode(state, orphans)
        for one in orphans:
            if mode is OnEdit.KEEP:
                mark_kept(self._services.runs, workspace, one.job_id, run)
                self._services.host.info(f"{_seen(one)}; it goes on (on_edit: keep)", call.urn)
            else:
                self._services.host.info(f"{_seen(one)}; it is ended first (on_edit: cancel)", call.urn)
                end(self._services, call, workspace, one)

    def end_all(self, call: Call, workspace: str, run: str, old: Values) -> None:
        """End the job's other runs when the job itself is removed: no resource stands for them any more.

        Raises:
            ArmError: The workspace cannot be asked, or refused.
        """
        for one in self.left(call, workspace, run, old):
            self._services.host.info(f"run {one.job_id} is ended as well: its job is removed", call.urn)
            end(self._services, call, workspace, one)

    def left(self, call: Call, workspace: str, run: str, old: Values) -> list[Record]:
        """The other active runs that end with a job that is removed.

        Raises:
            ArmError: The workspace cannot be asked.
        """
        found = self.active_runs(call, workspace, run, str(old.get("owner")), old, removed=True)
        return [one for one in found if one.kept_for != NO_JOB]

    def _orphans(self, call: Call, workspace: str, run: str, state: Values) -> list[Record]:
        return [one for one in self.active_runs(call, workspace, run, owner_of(call.urn), state) if not one.kept_for]

    def _candidates(
        self, call: Call, workspace: str, owner: str, values: Values, *, removed: bool, age: float = math.inf
    ) -> Sequence[Record]:
        """The listed runs that a record names this job with, by a list of at most so many seconds."""
        key = (workspace.casefold(), owner, text_of(values, "stackId"), removed)
        with self._lock:
            if key not in self._listed or time.monotonic() - self._listed[key][0] >= age:
                start = time.monotonic()
                found: dict[str, list[Record]] = {}
                for one in run_lists.active_runs(self._services.arm, workspace, (owner,), key[2]):
                    found.setdefault(str(one.resource), []).append(one)
                self._listed[key] = start, found
            _, listed = self._listed[key]
        return listed.get(resource_of(call.urn), ())


def _seen(record: Record) -> str:
    return f"run {record.job_id} of this job is {record.status}, and no resource stands for it"


def _mode(state: Values, orphans: list[Record]) -> OnEdit:
    mode = OnEdit(state.get("onEdit") or OnEdit.REFUSE)
    if orphans and mode is OnEdit.REFUSE:
        raise ProviderError(
            f"{_seen(orphans[0])} (an interrupted deployment leaves such a run, or a lost state). A second one is not "
            "started beside it by surprise. Declare it again, wait for its end or cancel it, or say what becomes of "
            "it: `on_edit: cancel` ends it first, `on_edit: keep` lets it go on"
        )
    return mode


IDENTITY_INPUTS = ("name", "declaration", "codeHash", "rerun")
METADATA = ("displayName", "description", "tags")
_METADATA_PATHS = tuple(f"body.properties.{name}" for name in METADATA)


@dataclass(frozen=True, slots=True)
class Edit:
    """The changes between the recorded and the wanted inputs of a job.

    Attributes:
        identity: Property paths that make it another run.
        metadata: Property paths that are edited in place.
        derived: Property paths of the body that were derived anew; they change nothing.
        unknown: Whether part of what decides is not known yet.
        files: What changed in the code, file by file (``train.py changed``), as far as that was recorded.
    """

    identity: tuple[str, ...]
    metadata: tuple[str, ...]
    derived: tuple[str, ...]
    unknown: bool
    files: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The changes that make it another run, in words: files in place of the code's hash, where they are known."""
        others = tuple(path for path in self.identity if not self.files or path != "codeHash")
        return listed((*others, *self.files))


def edit_of(old_inputs: Values, old: Values, new: Values) -> Edit:
    """Sorts the changes.

    Args:
        old_inputs: The inputs of the last operation.
        old: The recorded state; its ``body`` is what the run was created with, its metadata as edited since.
        new: The wanted inputs.
    """
    before = old_inputs or old
    identity = identity_paths(before, new)
    if not same_arm_id(before.get("workspace"), new.get("workspace")):
        identity.append("workspace")
    body = [path for path in changed_paths(old.get("body"), new.get("body"), "body") if path]
    open_paths = set(unknown_paths(new.get("body"), "body"))
    metadata = tuple(path for path in body if path.startswith(_METADATA_PATHS))
    derived = tuple(path for path in body if path not in metadata and path not in open_paths)
    unknown = any(True for name in (*IDENTITY_INPUTS, "workspace") for _ in unknown_paths(new.get(name)))
    files = _changed_files(before, new) if "codeHash" in identity else ()
    return Edit(tuple(identity), metadata, derived, unknown, files)


def identity_paths(before: Values, new: Values) -> list[str]:
    """The property paths at which two jobs' inputs run something else, the workspace left out."""
    return [path for name in IDENTITY_INPUTS for path in changed_paths(before.get(name), new.get(name), name)]


def _changed_files(before: Values, new: Values) -> tuple[str, ...]:
    """The files that make the code another one, as far as they were recorded."""
    old, now = (values.get("codeFiles") for values in (before, new))
    return differences(old, now) if isinstance(old, dict) and isinstance(now, dict) else ()


def metadata_of(body: Any) -> dict[str, Any]:
    """Display name, description and tags of a job body; what is not given is ``None``, tags are ``{}``."""
    properties = (body or {}).get("properties") or {}
    return {name: properties.get(name) or ({} if name == "tags" else None) for name in METADATA}


def with_metadata(body: Values, other: Any) -> Any:
    """``body`` with the metadata of ``other``; not known when that is not, at preview."""
    theirs = other if other is UNKNOWN else other.get("properties")
    if theirs is UNKNOWN:
        return UNKNOWN
    properties = dict(body.get("properties") or {})
    theirs = theirs or {}
    for name in METADATA:
        properties.pop(name, None)
        if name in theirs:
            properties[name] = theirs[name]
    return {**body, "properties": properties}


def without_metadata(body: Values) -> Values:
    """``body`` without display name, description and tags: what was derived for the run."""
    stripped: Values = with_metadata(body, {})
    return stripped


def listed(paths: tuple[str, ...], most: int = 6) -> str:
    """``a, b and 3 more``."""
    shown = ", ".join(paths[:most])
    return f"{shown} and {len(paths) - most} more" if len(paths) > most else shown


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The decision of `Diff` about an active run: it is ended or goes on when its resource is replaced."""

    workspace: str
    run: str
    mode: OnEdit


class DeploymentMemory:
    """Memory of one deployment; the engine configures the provider anew for each. Safe for use by several threads.

    The engine checks every job that the program declares, and deletes last what it does not declare any more, copies
    that an earlier deployment left pending included. So a deletion of what was checked is no end of the job.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: dict[str, Values] = {}
        self._holders: dict[tuple[str, str], str] = {}
        self._plans: dict[str, list[RunPlan]] = {}

    def declare(self, urn: str, inputs: Values) -> None:
        """The program declares this job."""
        with self._lock:
            self._declared[urn] = inputs

    def has(self, urn: str) -> bool:
        """True where the program declares a job of this URN."""
        with self._lock:
            return urn in self._declared

    def declares(self, urn: str, inputs: Values) -> bool:
        """True where the program declares this very run, unknown values counting as others."""
        with self._lock:
            wanted = self._declared.get(urn)
        if wanted is None or any(
            True for name in (*IDENTITY_INPUTS, "workspace") for _ in unknown_paths(wanted.get(name))
        ):
            return False
        if str(wanted.get("workspace")).casefold() != str(inputs.get("workspace")).casefold():
            return False
        return not identity_paths(inputs, wanted)

    def stand(self, urn: str, workspace: str, run: str) -> None:
        """An unchanged resource stands for a run."""
        with self._lock:
            self._holders.setdefault((workspace.casefold(), run), urn)

    def hold(self, urn: str, workspace: str, run: str) -> None:
        """A new resource stands for a run.

        Raises:
            ProviderError: Another one does already.
        """
        with self._lock:
            holder = self._holders.setdefault((workspace.casefold(), run), urn)
        if holder != urn:
            raise ProviderError(
                f"{urn.rsplit('::', 1)[-1]} and {holder.rsplit('::', 1)[-1]} declare the same run {run}: same "
                "name, declaration, code and `rerun`. Give one of them another name"
            )

    def holder(self, workspace: str, run: str) -> str | None:
        """The URN of the resource that stands for a run, as far as it is known yet."""
        with self._lock:
            return self._holders.get((workspace.casefold(), run))

    def plan(self, urn: str, plan: RunPlan) -> None:
        """Remembers what becomes of a run when the resource is replaced."""
        with self._lock:
            self._plans.setdefault(urn, []).append(plan)

    def plans(self, urn: str) -> tuple[RunPlan, ...]:
        """The decisions about this resource's runs."""
        with self._lock:
            return tuple(self._plans.get(urn, ()))


_T = TypeVar("_T")


def mode_of(values: Values) -> OnEdit:
    """``on_edit``; refuse where it is not known yet."""
    given = values.get("onEdit")
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
        self._deployment.plan(call.urn, RunPlan(str(old.get("workspace")), run, mode))

    def _active(self, run: str, old: Values, new: Values) -> Record | None:
        """The run if it is active and ours."""
        status = str(old.get("status") or "")
        if old.get("gone") or (status and not is_active(status)):
            return None  # an end is an end: no need to ask
        workspace = str(old.get("workspace"))
        record = _asked(lambda: self._services.runs.get(workspace, run), f"run {run} is still active")
        active = record is not None and is_active(record.status) and not foreign(record, old, new)
        return record if active else None

    def _others_on(self, call: Call, lost: list[str], run: str, old: Values, new: Values) -> list[Record]:
        """Other active runs of this job that live on what is lost; one that does not say where it lives may.

        The engine also asks about a copy that an earlier deployment left pending deletion, after the job's resource.
        The run of that resource is then planned to end already: a resource stands for it, and ends it first.
        """
        workspace, owner = str(old.get("workspace")), str(old.get("owner"))
        stack = text_of(old, "stackId") or text_of(new, "stackId")
        found = _asked(
            lambda: run_lists.active_runs(self._services.arm, workspace, (owner,), stack),
            "other runs of this job are active",
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
    if _open(new, "workspace") and isinstance(before.get("workspace"), str):
        return [str(before["workspace"])]
    known, now = before.get("placedOn"), new.get("placedOn")
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
    return f"one of {names}" if len(ids) > 1 and not isinstance(new.get("placedOn"), list) else names


def _asked(ask: Callable[[], _T], what: str) -> _T | None:
    try:
        return ask()
    except WorkspaceMissingError:
        return None
    except ArmError as error:
        raise ProviderError(f"whether {what} cannot be asked: {error}", ErrorCode.UNAVAILABLE) from None
