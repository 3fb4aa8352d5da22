"""The stack's record, the guard of its active runs, and its keeper: what the engine asks before anything goes.

``amlstack:stack:Record`` is a random id by which a stack knows its runs, whatever it is called.

``amlstack:runs:Guard``: no active run of a stack is ended by surprise when a cluster, a job or the workspace goes.
A job's own resource judges edits of the job. The guard judges what no such resource can see: jobs that are no longer
declared, clusters that are, and runs that an edit let go on. It depends by a property on the workspace and on each
cluster. So the engine asks it what a replacement means before it deletes any of them, with and without a preview.
No list of the stack's own runs shows clusters whose nodes work for runs that the stack did not start. The list of jobs
cannot be asked by cluster or by status, and a workspace has thousands; the cluster itself says how many of its nodes
are at work (``nodeStateCounts``). What waits in its queue without a node is not seen.

``amlstack:stack:Keeper`` depends on every resource of the stack. So the engine deletes it before all others, and stops
there when it is protected or refuses. It refuses to let a resource group or a workspace go while these hold what the
stack does not own.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amlstack.provider import resource, run_lists
from amlstack.provider.arm import ArmClient, ArmError
from amlstack.provider.lifecycle import edits
from amlstack.provider.lifecycle.edits import end
from amlstack.provider.lifecycle.gates import WaitTimeoutError
from amlstack.provider.resource import Call, Difference, InputField, Resource, Services, Values
from amlstack.provider.runs import OnEdit, Record
from amlstack.provider.stacks import foreign
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError
from amlstack.run_identity import NO_JOB, owner_of

_REMEDY = "Wait for its end or cancel it"
_FIRST = "let a first `up` record it and change nothing else"


@dataclass(frozen=True, slots=True)
class Going:
    """The things that an `up` takes away.

    Attributes:
        jobs: ``on_edit`` of the jobs that are no longer declared, by name; None where only the run's record knows it.
        clusters: What happens to each cluster that goes, ``replaced`` or ``removed``, by its ARM id in lower case.
        workspace: The workspace, or what it stands on, is replaced.
        reached_by: An identity or the network that runs reach their data by is replaced.
        every_other: Any job that is not in ``declared`` counts as no longer declared.
        declared: ``on_edit`` of the jobs that are declared, by name.
    """

    jobs: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    workspace: bool = False
    reached_by: bool = False
    every_other: bool = False
    declared: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.jobs or self.clusters or self.workspace or self.reached_by or self.every_other)


@dataclass(frozen=True, slots=True)
class GuardVerdict:
    """The verdict: things that are refused, announced and kept.

    Attributes:
        refused: One sentence for each run that stands against it.
        announced: One sentence for each run that ends or goes on.
        kept: Ids of runs that go on although their job goes.
    """

    refused: tuple[str, ...]
    announced: tuple[str, ...]
    kept: tuple[str, ...]


def judge(records: Iterable[Record], going: Going) -> GuardVerdict:
    """The verdict on the active runs of a stack."""
    refused, announced, kept = [], [], []
    for record in records:
        seen = f"run {record.job_id} is {record.status}"
        if place := _place(record.computes, going):
            if record.kept_for:
                refused.append(f"{seen} by an earlier `on_edit: keep`, and {place}. {_REMEDY}")
            elif (mode := _mode(record, going)) is OnEdit.CANCEL:
                announced.append(f"{seen} and is ended first (on_edit: cancel): {place}")
            else:
                why = "`on_edit: keep` cannot hold there. " if mode is OnEdit.KEEP else ""
                # What is replaced is judged by the recorded words of its jobs, before the new ones are registered.
                first = "" if "removed" in place else f": {_FIRST}"
                refused.append(f"{seen}, and {place}. {why}{_REMEDY}, or end it by `on_edit: cancel`{first}")
            continue
        if record.name not in going.jobs and not (going.every_other and _unknown(record, going)):
            continue
        job = f"job {record.name} is no longer declared"
        match _mode(record, going):
            case OnEdit.CANCEL:
                announced.append(f"{seen} and is ended (on_edit: cancel): {job}")
            case OnEdit.KEEP:
                announced.append(f"{seen} and goes on (on_edit: keep), though {job}")
                kept.append(record.job_id)
            case _:
                refused.append(
                    f"{seen}, and {job}. {_REMEDY}; or declare the job again with `on_edit: cancel` (it is ended) or "
                    f"`on_edit: keep` (it goes on), and {_FIRST}"
                )
    return GuardVerdict(tuple(refused), tuple(announced), tuple(kept))


def _place(computes: Collection[str], going: Going) -> str:
    """The place of a run that is about to go, in words; empty when none is."""
    if going.workspace:
        return "its workspace, or what that stands on, would be replaced"
    for place in sorted(computes):
        if place in going.clusters:
            return f"its cluster {place.rsplit('/', 1)[-1]} would be {going.clusters[place]}"
    if going.reached_by:
        return "the identity or the network that it reaches its data by would be replaced"
    return ""


def _unknown(record: Record, going: Going) -> bool:
    """True where nothing speaks for a run: a kept one was promised to go on."""
    return record.name not in going.declared and not record.kept_for


def _mode(record: Record, going: Going) -> OnEdit:
    on_edit = going.declared.get(record.name) or going.jobs.get(record.name) or record.on_edit
    return OnEdit(on_edit) if on_edit in tuple(OnEdit) else OnEdit.REFUSE


def busy_clusters(arm: ArmClient, going: Mapping[str, str], active: Iterable[Record]) -> tuple[str, ...]:
    """One sentence for each cluster that goes while its nodes work for somebody else.

    Args:
        arm: Azure Resource Manager.
        going: What happens to each cluster, by its ARM id in lower case.
        active: The stack's own active runs; a cluster with one of these is judged by it.

    Raises:
        ArmError: A cluster could not be asked.
    """
    own = {compute.lower() for record in active for compute in record.computes}
    found = []
    for cluster in sorted(set(going) - own):
        if count := _at_work(arm, cluster):
            nodes = "1 node is" if count == 1 else f"{count} nodes are"
            found.append(
                f"{nodes} at work on cluster {cluster.rsplit('/', 1)[-1]} for a run that this stack did not start, and "
                f"the cluster would be {going[cluster]}. Wait for its end or cancel it; `az ml job list` shows all runs"
            )
    return tuple(found)


def _at_work(arm: ArmClient, cluster: str) -> int:
    response = arm.get(cluster, allow=(404,))
    if response.status == 404 or not isinstance(response.body, dict):
        return 0
    properties = (response.body.get("properties") or {}).get("properties") or {}
    count = (properties.get("nodeStateCounts") or {}).get("runningNodeCount")
    return count if isinstance(count, int) else 0


CLUSTER = "cluster:"
"""A property of this prefix and a cluster's name has the cluster's id: the engine knows dependencies by property."""


class Guards(Resource):
    """Asks for the stack's active runs when something goes, and only then."""

    shape = resource.shape_of("amlstack:runs:Guard", {"workspace": resource.WORKSPACE_ID})
    refused_import = "a guard of runs is not imported: declare it"

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._lock = threading.Lock()
        self._declared: set[str] = set()
        self._announced: set[str] = set()
        # Runs that go on without their job: decided by Diff, marked by Update.
        self._kept: dict[str, tuple[str, ...]] = {}

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Types; each cluster is a property of its own."""
        clusters = {name: value for name, value in inputs.items() if name.startswith(CLUSTER)}
        for name, value in clusters.items():
            if value is not UNKNOWN and not isinstance(value, str):
                failures.add(name, f"{name} must be the id of a cluster")
        rest = {name: value for name, value in inputs.items() if name not in clusters}
        self._declared.add(call.urn)
        return {**self.shape.check(rest, failures), **clusters}

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Nothing of it is ever replaced; what goes is judged by the runs that are active."""
        before = old_inputs or old
        going = _going(before, new)
        if not going:
            return Difference()
        workspace = str(before.get("workspace"))
        owners = (resource.text_of(old, "owner"), owner_of(call.urn))
        verdict = self._judged(call, workspace, owners, before, going)
        self._kept[call.urn] = verdict.kept
        return Difference(updates=("jobs",) if verdict.kept else ())

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Judge runs that the state does not know: each is declared, or judged like a job that was removed."""
        state = {**inputs, "owner": owner_of(call.urn)}
        workspace, jobs = inputs.get("workspace"), inputs.get("jobs")
        if isinstance(workspace, str) and isinstance(jobs, dict):
            replaced = [name for name, value in inputs.items() if name.startswith(CLUSTER) and value is UNKNOWN]
            clusters = {f"{workspace}/computes/{name.removeprefix(CLUSTER)}".lower(): "replaced" for name in replaced}
            going = Going(clusters=clusters, every_other=True, declared=_words(jobs))
            try:
                verdict = self._judged(call, workspace, (state["owner"],), inputs, going)
            except ArmError as error:
                self._host.warning(f"whether runs are active cannot be asked: {error}", call.urn)
            else:
                if not call.preview:
                    self._mark(workspace, verdict.kept)
        return ("" if call.preview else "runs"), state

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Marks the runs that go on without their job, before the job's own resource would end them."""
        if not call.preview:
            self._mark(str(new["workspace"]), self._kept.pop(call.urn, ()))
        return {**new, "owner": old.get("owner") or owner_of(call.urn)}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:  # noqa: ARG002
        """At the stack's end: whatever of it still runs is ended before its cluster goes."""
        if call.urn in self._declared:
            return  # replaced by command: the stack goes on
        asked = inputs or old
        workspace = str(asked["workspace"])
        owners = (resource.text_of(old, "owner"), owner_of(call.urn))
        for record in run_lists.active_runs(self._services.arm, workspace, owners, resource.text_of(asked, "stackId")):
            self._host.info(f"run {record.job_id} is {record.status} and is ended: its stack is destroyed", call.urn)
            try:
                end(self._services, call, workspace, record)
            except WaitTimeoutError as error:
                raise ProviderError(f"{error}; the next `destroy` waits again", ErrorCode.DEADLINE_EXCEEDED) from None

    def _judged(self, call: Call, workspace: str, owners: tuple[str, ...], asked: Values, going: Going) -> GuardVerdict:
        """The verdict, announced.

        Raises:
            ProviderError: An active run stands against it.
            ArmError: At a first creation: the runs could not be asked.
        """
        try:
            records = run_lists.active_runs(self._services.arm, workspace, owners, resource.text_of(asked, "stackId"))
            foreign = busy_clusters(self._services.arm, going.clusters, records)
        except ArmError as error:
            if going.every_other:
                raise
            raise ProviderError(f"whether runs are active cannot be asked: {error}", ErrorCode.UNAVAILABLE) from None
        verdict = judge(records, going)
        if refused := (*verdict.refused, *foreign):
            raise ProviderError("; ".join(refused), ErrorCode.FAILED_PRECONDITION)
        with self._lock:
            self._services.course.left_out |= going.jobs.keys()
            self._services.course.every_other |= going.every_other
        for words in verdict.announced:
            with self._lock:
                if words in self._announced:
                    continue
                self._announced.add(words)
            self._host.info(words, call.urn)
        return verdict

    def _mark(self, workspace: str, kept: tuple[str, ...]) -> None:
        for run in kept:
            edits.mark_kept(self._services.runs, workspace, run, NO_JOB)


def _going(before: Values, new: Values) -> Going:
    """The entries that are no longer there, or no longer known: the engine asks so about what it replaces."""
    clusters: dict[str, str] = {}
    for name, value in before.items():
        if name.startswith(CLUSTER) and isinstance(value, str):
            if name not in new:
                clusters[value.lower()] = "removed"
            elif new[name] is UNKNOWN:
                clusters[value.lower()] = "replaced"
    had, has = before.get("jobs"), new.get("jobs")
    jobs: dict[str, str] = {}
    if isinstance(had, dict) and isinstance(has, dict):
        jobs = {name: mode for name, mode in _words(had).items() if name not in has}
    workspace, reached_by = (_replaced(name, before, new) for name in ("workspace", "reachedBy"))
    return Going(jobs, clusters, workspace, reached_by, declared=_words(has) if isinstance(has, dict) else {})


def _replaced(name: str, before: Values, new: Values) -> bool:
    return new.get(name) is UNKNOWN and isinstance(before.get(name), str)


def _words(jobs: dict[str, Any]) -> dict[str, str]:
    return {name: mode for name, mode in jobs.items() if isinstance(mode, str)}


_RULE = (
    re.compile(r"[A-Za-z0-9-]{8,64}"),
    "8 to 64 letters, digits and '-', as a run's property amlstack.stack has it",
)


class Records(Resource):
    """Makes the id once. It lives in the stack's state; Azure knows it from the runs that bear it.

    An id may be given, to take over the runs of a state that was lost.
    """

    shape = resource.shape_of("amlstack:stack:Record", {"stackId": InputField(pattern=_RULE, in_id=True)})
    refused_import = (
        "a stack's id is not imported: set amlstack:stack_id to the value that the runs have in amlstack.stack"
    )

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another id that is given takes the place of the one there is; one that is no longer given stays."""
        wanted = new.get("stackId")
        return Difference(replaces=("stackId",)) if wanted not in (None, old.get("stackId")) else Difference()

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """The given id, or a random one; at preview a random one is not known yet."""
        given: Any = inputs.get("stackId")
        if call.preview:
            return "", {"stackId": UNKNOWN if given is None else given}
        stack_id = given if given is not None else secrets.token_hex(16)
        return str(stack_id), {"stackId": stack_id}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """The id stays."""
        return dict(old)


PLACES = {"group": "resource group", "workspace": "workspace"}


class Keepers(Resource):
    """Asks what lies in the group and the workspace of a stack when these go, and only then."""

    shape = resource.shape_of(
        "amlstack:stack:Keeper",
        {
            "group": InputField(
                pattern=(
                    re.compile(r"/subscriptions/[^/]+/resourceGroups/[^/]+", re.IGNORECASE),
                    "an ARM id, /subscriptions/…/resourceGroups/NAME",
                )
            ),
            "workspace": resource.WORKSPACE_ID,
        },
        inputs_alone=frozenset({"owned"}),
    )
    refused_import = "a stack's keeper is not imported: declare it"

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._declared: set[str] = set()

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Types."""
        self._declared.add(call.urn)
        return super().check(call, inputs, failures)

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Nothing of it is ever replaced; a group or workspace that is known and will not be any more goes."""
        before = old_inputs or old
        going = {
            place: resource.text_of(before, place)
            for place in PLACES
            if resource.text_of(before, place) and not resource.same_arm_id(before[place], new.get(place))
        }
        if (group := going.get("group")) and resource.text_of(new, "workspace").lower().startswith(f"{group.lower()}/"):
            # The group was the stack's and exists for others now: the engine would delete it around the workspace.
            name = group.rsplit("/", 1)[-1]
            raise ProviderError(
                f"resource group {name} would be deleted, as the settings say no more that it is this stack's, and the "
                "workspace stays in it. A group that a stack has made remains its own: give it as "
                f"`amlstack:resource_group: {name}`",
                ErrorCode.FAILED_PRECONDITION,
            )
        if going:
            self._refuse(call, going, before, old)
        changed = tuple(name for name in ("group", "workspace") if (name in before) != (name in new))
        return Difference(updates=changed)

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Nothing is made in Azure."""
        return ("" if call.preview else "keeper"), {**inputs, "owner": owner_of(call.urn)}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Records what the stack owns."""
        return {**new, "owner": old.get("owner") or owner_of(call.urn)}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:  # noqa: ARG002
        """At the stack's end, before anything else goes."""
        if call.urn in self._declared:
            return  # replaced by command: the stack goes on
        asked = inputs or old
        places = {place: resource.text_of(asked, place) for place in PLACES if resource.text_of(asked, place)}
        if "workspace" not in places:
            self._refuse_clusters_at_work(call, asked, old)
        self._refuse(call, places, asked, old)
        self._services.course.stack_ends = True

    def _refuse_clusters_at_work(self, call: Call, asked: Values, old: Values) -> None:
        """Refuses the end of clusters on a workspace of others while their nodes work for somebody else.

        Raises:
            ProviderError: They do; or they could not be asked.
        """
        clusters = {one.lower(): "deleted" for one in _owned(asked) if "/computes/" in one.lower()}
        try:
            owners = (resource.text_of(old, "owner"), owner_of(call.urn))
            records = [
                record
                for workspace in sorted({one.partition("/computes/")[0] for one in clusters})
                for record in run_lists.active_runs(
                    self._services.arm, workspace, owners, resource.text_of(asked, "stackId")
                )
            ]
            at_work = busy_clusters(self._services.arm, clusters, records)
        except ArmError as error:
            raise ProviderError(f"whether others have something in it cannot be asked: {error}") from None
        if at_work:
            raise ProviderError(f"{'; '.join(at_work)}. Nothing was deleted", ErrorCode.FAILED_PRECONDITION)

    def _refuse(self, call: Call, going: Mapping[str, str], asked: Values, old: Values) -> None:
        """Refuses the end of places that hold something of others.

        Raises:
            ProviderError: They do, and nobody has named it; or they could not be asked.
        """
        owners = (resource.text_of(old, "owner"), owner_of(call.urn))
        try:
            found = held(self._services.arm, going, asked, owners)
        except ArmError as error:
            raise ProviderError(f"whether others have something in it cannot be asked: {error}") from None
        if runs := [one.active for one in found if one.active]:
            raise ProviderError(
                f"{'; '.join(runs)} on this stack's workspace, which would go with the stack. Nothing was deleted. "
                "Destroy that stack first, or wait for the end of its runs or cancel them",
                ErrorCode.FAILED_PRECONDITION,
            )
        if left := foreign.unnamed(found):
            raise ProviderError(refusal(going, left), ErrorCode.FAILED_PRECONDITION)


def held(arm: ArmClient, places: Mapping[str, str], asked: Values, owners: tuple[str, ...]) -> list[foreign.Foreign]:
    """The resources of others in a stack's group and workspace.

    Args:
        arm: Azure Resource Manager.
        places: ARM ids by ``group`` and ``workspace``.
        asked: The keeper's inputs.
        owners: What the stack is called, now and formerly.

    Raises:
        ArmError: The service could not be asked.
    """
    own = _owned(asked)
    found = foreign.in_group(arm, places["group"], own) if "group" in places else []
    if "workspace" in places:
        found += foreign.in_workspace(arm, places["workspace"], own, owners, resource.text_of(asked, "stackId"))
    return list({one.id.lower(): one for one in found}.values())


def _owned(asked: Values) -> list[str]:
    given = asked.get("owned")
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def refusal(going: Mapping[str, str], found: list[foreign.Foreign]) -> str:
    """The sentence on what would go with a group or workspace."""
    places = " and ".join(f"{PLACES[place]} {name.rsplit('/', 1)[-1]}" for place, name in going.items())
    return (
        f"{places} would go, and with {'it' if len(going) == 1 else 'them'} what this stack does not own: "
        f"{foreign.listed(found)}. Nothing was deleted. Move or delete it first, or name each that may go: `amlstack "
        f"down --stack NAME --delete-foreign {found[0]}`, for plain Pulumi {foreign.VARIABLE}={found[0]} with commas "
        "between several; jobs/* names all jobs"
    )
