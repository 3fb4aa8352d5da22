"""``amlstack:jobs:Job``: a training run, exactly once; `amlstack.provider.lifecycle` decides what becomes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from amlstack.provider import run_lists
from amlstack.provider.arm import ArmError, InterruptedWaitError
from amlstack.provider.lifecycle import edits, submission
from amlstack.provider.lifecycle.edits import DeploymentMemory, Edited, Siblings, mode_of
from amlstack.provider.lifecycle.gates import Gates, WaitTimeoutError, interrupted_submission
from amlstack.provider.resource import (
    NAME,
    WORKSPACE_ID,
    Call,
    Difference,
    InputField,
    Resource,
    Services,
    Values,
    known,
    shape_of,
)
from amlstack.provider.run_lists import SharedList
from amlstack.provider.runs import Record, Wait, WorkspaceMissingError, is_active
from amlstack.provider.stacks.guard import Going, judge
from amlstack.rpc import ErrorCode, Failures, ProviderError
from amlstack.run_identity import NO_JOB, digest, job_id, owner_of

_OWN_WORDS: tuple[str, ...] = ("wait", "onEdit", "deleteHistory", "placedOn", "stackId", "after", "awaitedBy")
"""Inputs that tell this provider how to treat the run."""
_IN_PART = (
    "This update leaves the guard of the stack's runs out (`--target`, `--exclude`): the whole stack's `up` asks it"
)


class JobRuns(Resource):
    """Runs a job once for each identity; see `amlstack.run_identity` for what that is."""

    shape = shape_of(
        "amlstack:jobs:Job",
        {"workspace": WORKSPACE_ID, "name": NAME, "codeHash": InputField(default=""), "rerun": InputField(default="")},
        digests={"identity": edits.IDENTITY_INPUTS},
        inputs_alone=frozenset({"declaration", "codeFiles", "after", "awaitedBy"}),
    )

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._runs = services.runs
        self._gates = Gates(services)
        self._deployment = DeploymentMemory()
        self._siblings = Siblings(services, self._deployment)
        self._edited = Edited(services, self._deployment)
        self._list = SharedList(services.arm, services.runs)

    # -- inputs ------------------------------------------------------------------------------------------------------

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Defaults and types."""
        result = super().check(call, inputs, failures)
        body = result.get("body")
        if isinstance(body, dict) and known(body):
            properties = body.get("properties")
            if not isinstance(properties, dict):
                failures.add("body", 'body must be an ARM job body, {"properties": {…}}')
            elif not properties.get("jobType"):
                failures.add("body.properties.jobType", "an ARM job body names its jobType, e.g. Command")
        self._deployment.declare(call.urn, result)
        return result

    # -- preview -----------------------------------------------------------------------------------------------------

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:
        """Another identity is another run; metadata is edited; what is derived changes nothing and is announced."""
        edit = edits.edit_of(old_inputs, old, new)
        if not edit.identity or edit.unknown:
            moved = self._edited.ground(call, resource_id, old_inputs, old, new)
            if moved is not None:
                return moved
        if edit.identity:
            return self._edited.declaration(call, resource_id, old, new, edit)
        if self._deployment.has(call.urn):
            self._deployment.stand(call.urn, str(old.get("workspace")), resource_id)
        if old.get("gone"):
            message = (
                f"the record of run {resource_id} is gone from the workspace; it is not run again by itself: "
                "set `rerun` to another word to run it again"
            )
            self._host.info(message, call.urn)
        elif edit.derived:
            message = (
                f"what is derived changed: {edits.listed(edit.derived)}; the recorded run {resource_id} keeps what it "
                "was created with: set `rerun` to another word to run again with it"
            )
            self._host.info(message, call.urn)
        updates = () if old.get("gone") else edit.metadata
        if self._gates.open_question(old, new):
            updates = (*updates, "wait")
        return Difference(updates=updates)

    # -- create ------------------------------------------------------------------------------------------------------

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Adopts the record that a killed deployment left behind, refuses a foreign one, else submits once."""
        try:
            return self._create(call, inputs)
        except InterruptedWaitError as error:
            raise ProviderError(interrupted_submission(error), ErrorCode.ABORTED) from None

    def _create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        if not known(*(inputs.get(name) for name in (*edits.IDENTITY_INPUTS, "workspace"))):
            return "", dict(inputs)  # only at preview: the run's id will be known later
        workspace, owner = str(inputs["workspace"]), owner_of(call.urn)
        run, identity, record = self._recorded(call, workspace, owner, inputs)
        state = {**inputs, "jobId": f"{workspace}/jobs/{run}", "owner": owner, "identity": identity, "gone": False}
        if call.preview:
            self._foretell(call, workspace, run, state, record)
            return "", state
        self._deployment.hold(call.urn, workspace, run)
        if record is not None:
            submission.refuse_foreign(record, state)
        else:
            state["environmentId"] = submission.environment_of(self._services.arm, workspace, inputs["body"])
        if record is None:
            submission.require_predecessors(self._services, run, state)
        with _ends(f"run {run} was not started"):
            self._siblings.settle(call, workspace, run, state)
        if record is None:
            record = submission.submit(self._runs, call, workspace, run, state)
            self._host.status(f"submitted {run}", call.urn)
        else:
            edits.release_mark(self._runs, workspace, record)
            submission.announce_adoption(self._services, call, record, submission.derived(call, state))
            record = submission.align_metadata(self._services, call, workspace, record, inputs["body"])
        state = self._observed(state, record)
        return run, self._gates.pass_(call, run, state, record)

    def _recorded(self, call: Call, workspace: str, owner: str, inputs: Values) -> tuple[str, str, Record | None]:
        """The run: its id, its identity, and its record if there is one."""
        name = str(inputs["name"])
        declaration, code, rerun = (call.hashable(inputs, part) for part in ("declaration", "codeHash", "rerun"))
        run, record = job_id(name, declaration, code, rerun, owner), None
        try:
            # A missing workspace is seen when the run is submitted: asking for it here doubles what is asked.
            record = self._runs.find(workspace, run)
        except ArmError:
            if not call.preview:
                raise
        return run, digest(name, declaration, code, rerun), record

    def _foretell(self, call: Call, workspace: str, run: str, state: Values, record: Record | None) -> None:
        """At preview what is refused is refused already; whatever else is unclear is left to the deployment."""
        if record is not None:
            submission.refuse_foreign(record, state)
        try:
            self._siblings.foretell(call, workspace, run, state)
        except (ArmError, WorkspaceMissingError):
            return
        if record is not None:
            submission.announce_adoption(self._services, call, record, submission.derived(call, state))
        else:
            submission.foretell_predecessors(self._services, call, state)

    # -- read, update ------------------------------------------------------------------------------------------------

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:
        """The live record; only its own 404 means gone, and then it stays here, marked."""
        if not old.get("identity"):
            raise ProviderError(
                f"run {resource_id} cannot be imported: what it ran cannot be read back as a declaration. "
                "Declare it; an equal run of this stack is adopted"
            )
        workspace = str(old["workspace"])
        # Edits of these alone are no operation of ours: the inputs know them, the recorded state does not.
        given: Values = {name: inputs[name] for name in _OWN_WORDS if name in inputs}
        asked = {**old, **given}
        # What depends on how far a run has come is judged by the run's own record.
        source = self._list if Wait(asked.get("wait") or Wait.NONE) is Wait.NONE else self._runs
        record = source.get(workspace, resource_id)
        if record is None:
            if not old.get("gone"):
                self._host.warning(
                    f"the record of run {resource_id} is gone from the workspace; it stays in this state, marked, and "
                    "is not run again",
                    call.urn,
                )
            state = {**asked, "gone": True}
        else:
            state = self._observed(asked, record)
        self._gates.judge(resource_id, state, inputs)
        return resource_id, state

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:
        """Edits the metadata and waits where a gate is still open."""
        state = {**old, **new, "body": edits.with_metadata(old["body"], new["body"])}
        if call.preview:
            return state
        workspace = str(old["workspace"])
        record = self._runs.get(workspace, resource_id)
        if record is not None:
            wanted, had = edits.metadata_of(new["body"]), edits.metadata_of(old["body"])
            record = submission.apply_metadata(self._services, call, workspace, record, wanted=wanted, had=had)
        if record is None:
            self._host.warning(f"the record of run {resource_id} is gone; nothing of it can be edited", call.urn)
            state = {**state, "gone": True}
            self._gates.judge(resource_id, state, new)
            return state
        return self._gates.pass_(call, resource_id, self._observed(state, record), record)

    # -- delete ------------------------------------------------------------------------------------------------------

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Ends the run unless something stands for it or it is kept; its history stays.

        When the job itself is removed, its other runs are ended as well: no resource would stand for them any more.
        """
        workspace, asked = str(old["workspace"]), inputs or old
        if edits.stays(self._deployment, call, workspace, resource_id, asked):
            # The old resource goes, the run stays: a forced replacement, or a copy that was pending deletion.
            self._host.info(f"run {resource_id} stays: a resource stands for it", call.urn)
            return
        try:
            with _ends(f"run {resource_id} was asked to end", f"run {resource_id} goes on"):
                self._end(call, workspace, resource_id, asked, old)
        except WorkspaceMissingError:
            return

    def _end(self, call: Call, workspace: str, run: str, asked: Values, old: Values) -> None:
        removed = not self._deployment.has(call.urn) and not self._deployment.plans(call.urn)
        record = self._siblings.removed(call, workspace, run, {**old, **asked}) if removed else None
        if record is None:
            record = self._runs.get(workspace, run)
        if record is not None and (owner := run_lists.foreign(record, old, asked)):
            self._host.info(f"run {run} belongs to {owner}; it is left as it is", call.urn)
            return
        if removed and self._services.course.unasked(str(asked.get("name"))):
            self._judge_unasked(call, workspace, run, {**old, **asked}, record)
        if record is not None and is_active(record.status):
            if edits.goes_on(self._deployment, call, workspace, record):
                self._host.info(f"run {run} goes on (on_edit: keep)", call.urn)
                return
            edits.end(self._services, call, workspace, record)
        if removed:
            self._siblings.end_all(call, workspace, run, {**old, **asked})
        if record is not None and asked.get("deleteHistory"):
            self._services.arm.finish(self._runs.delete(workspace, run), self._services.cancelled)

    def _judge_unasked(self, call: Call, workspace: str, run: str, values: Values, record: Record | None) -> None:
        """The guard's verdict on a removed job, for an update of some resources that left the guard out.

        Raises:
            ProviderError: A run of the job is active, and `on_edit` is not cancel.
        """
        there = [record] if record is not None and is_active(record.status) and record.kept_for != NO_JOB else []
        there += self._siblings.left(call, workspace, run, values)
        verdict = judge(there, Going(jobs={one.name: str(mode_of(values)) for one in there}))
        kept = tuple(f"{one}, and which cluster it needs is not looked at" for one in verdict.announced if verdict.kept)
        if refused := (*verdict.refused, *kept):
            raise ProviderError(f"{'; '.join(refused)}. {_IN_PART}", ErrorCode.FAILED_PRECONDITION)
        for words in verdict.announced:
            self._host.info(words, call.urn)

    # -- state -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _observed(state: Values, record: Record) -> Values:
        seen = {
            "status": record.status,
            "gone": False,
            "experimentName": record.experiment,
            "services": record.services,
        }
        return {**state, **seen}


@contextlib.contextmanager
def _ends(what: str, untouched: str = "") -> Iterator[None]:
    """Turn an interruption of the wait for a run's end into an answer in words; the next ``up`` waits again.

    Args:
        what: What is true then.
        untouched: What is true when nothing was asked to end yet; the same when not given.
    """
    try:
        yield
    except InterruptedWaitError as error:
        seen = what if error.uncertain else untouched or what
        message = f"interrupted at {error.request}; {seen}, and the next `up` ends it and waits for its end"
        raise ProviderError(message, ErrorCode.ABORTED) from None
    except WaitTimeoutError as error:
        raise ProviderError(f"{error}; the next `up` waits for its end again", ErrorCode.DEADLINE_EXCEEDED) from None
