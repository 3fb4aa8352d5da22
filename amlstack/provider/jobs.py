"""``amlstack:jobs:Job``: a training run, exactly once."""

from __future__ import annotations

import threading
from typing import Any

from amlstack.identity import (
    DERIVED,
    IDENTITY,
    KEPT_FOR,
    NAME,
    ON_EDIT,
    OWNER,
    RESOURCE,
    STACK,
    digest,
    job_id,
    owner_of,
    resource_of,
    sha256,
)
from amlstack.provider import edits, labels, metadata
from amlstack.provider.arm import ArmError
from amlstack.provider.gates import Gates
from amlstack.provider.resource import NAME as NAME_FIELD
from amlstack.provider.resource import WORKSPACE_ID, Call, Difference, Field, Services, Shape, Values, known
from amlstack.provider.runs import Record, WorkspaceMissingError
from amlstack.provider.states import UNSUCCESSFUL, OnEdit, Wait, is_active
from amlstack.provider.waiting import InterruptedWaitError, WaitTimeoutError, follow
from amlstack.rpc import Code, Failures, ProviderError, bare

SHAPE = Shape(
    {
        "workspace": WORKSPACE_ID,
        "name": NAME_FIELD,
        "declaration": Field(object, required=True),
        "codeHash": Field(str, default=""),
        "formerCodeHashes": Field(list),
        "codeFiles": Field(dict),
        "rerun": Field(str, default=""),
        "body": Field(dict, required=True),
        "onEdit": Field(str, default=OnEdit.REFUSE.value, choices=tuple(OnEdit)),
        "wait": Field(str, default=Wait.NONE.value, choices=tuple(Wait)),
        "deleteHistory": Field(bool, default=False),
        "placedOn": Field(list),
        "stackId": Field(str),
    }
)
_OWN_WORDS: tuple[str, ...] = ("wait", "onEdit", "deleteHistory", "placedOn", "stackId")
"""Inputs that tell this provider how to treat the run."""


class Jobs:
    """Runs a job once for each identity; see `amlstack.identity` for what that is."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._host = services.host
        self._runs = services.runs
        self._gates = Gates(services)
        self._lock = threading.Lock()
        # Which resource of this deployment stands for which run: no two may, and a run that a forced replacement has
        # just adopted must survive the deletion of the old resource.
        self._held: dict[str, str] = {}
        # Runs that an edit leaves running (on_edit: keep), by the resource whose replacement comes next.
        self._kept: dict[str, tuple[str, str]] = {}

    # -- inputs ------------------------------------------------------------------------------------------------------

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:  # noqa: ARG002
        """Defaults and types."""
        result = SHAPE.check(inputs, failures)
        body = result.get("body")
        if isinstance(body, dict) and known(body):
            properties = bare(body.get("properties"))
            if not isinstance(properties, dict):
                failures.add("body", 'body must be an ARM job body, {"properties": {…}}')
            elif not properties.get("jobType"):
                failures.add("body.properties.jobType", "an ARM job body names its jobType, e.g. Command")
        return result

    # -- preview -----------------------------------------------------------------------------------------------------

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:
        """Another identity is another run; metadata is edited; what is derived changes nothing and is said."""
        edit = edits.edit_of(old_inputs, old, new)
        if edit.identity:
            return self._replacement(call, resource_id, old, new, edit)
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

    def _replacement(self, call: Call, resource_id: str, old: Values, new: Values, edit: edits.Edit) -> Difference:
        mode = OnEdit(bare(new.get("onEdit")) or OnEdit.REFUSE)
        workspace = str(bare(old.get("workspace")))
        record = self._running(workspace, resource_id, old)
        if edit.files and (record is None or mode is not OnEdit.REFUSE):
            self._host.info(f"another run than {resource_id}: {edit.summary}", call.urn)
        if record is None:
            return Difference(replaces=edit.identity)
        if edit.unknown:
            self._host.info(f"run {resource_id} is {record.status}; whether this edits it is not known yet", call.urn)
        elif mode is OnEdit.REFUSE:
            raise ProviderError(
                f"run {resource_id} is {record.status} and its declaration changed ({edit.summary}). "
                "An edit is a new run, and the active one is not ended by surprise. Wait for its end or cancel it, or "
                "say what becomes of it: `on_edit: cancel` ends it first, `on_edit: keep` lets it go on"
            )
        if mode is OnEdit.KEEP:
            with self._lock:
                self._kept[call.urn] = (workspace, resource_id)
            self._host.info(f"run {resource_id} is {record.status} and goes on (on_edit: keep)", call.urn)
        return Difference(replaces=edit.identity, delete_first=mode is OnEdit.CANCEL)

    def _running(self, workspace: str, resource_id: str, old: Values) -> Record | None:
        """The old run if it is active and ours."""
        status = str(old.get("status") or "")
        if old.get("gone") or (status and not is_active(status)):
            return None  # an end is an end: no need to ask
        try:
            record = self._runs.get(workspace, resource_id)
        except WorkspaceMissingError:
            return None
        except ArmError as error:
            raise ProviderError(
                f"whether run {resource_id} is still active cannot be asked: {error}", Code.UNAVAILABLE
            ) from None
        active = record is not None and is_active(record.status) and record.owner == old.get("owner")
        return record if active else None

    # -- create ------------------------------------------------------------------------------------------------------

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Adopts the record that a killed deployment left behind, refuses a foreign one, else submits once."""
        if not known(*(inputs.get(name) for name in (*edits.IDENTITY_INPUTS, "workspace"))):
            return "", dict(inputs)  # only at preview: the run's id will be known later
        workspace, owner = str(bare(inputs["workspace"])), owner_of(call.urn)
        run, identity, record = self._recorded(call, workspace, owner, inputs)
        state = {**inputs, "jobId": f"{workspace}/jobs/{run}", "owner": owner, "identity": identity, "gone": False}
        if call.preview:
            # A foreign record is refused already; whatever else is unclear is left to the deployment.
            if record is not None:
                _refuse_foreign(record, state)
            return "", state
        self._hold(call, run)
        if record is None:
            state["environmentId"] = labels.environment_of(self._services.arm, workspace, inputs["body"])
            self._mark_kept(call, run)
            record = self._submit(call, workspace, run, state)
            self._host.status(f"submitted {run}", call.urn)
        else:
            self._adopt(call, record, state)
            record = metadata.align(self._services, call, workspace, record, inputs["body"])
        state = self._observed(state, record)
        return run, self._gates.pass_(call, run, state, record)

    def _recorded(self, call: Call, workspace: str, owner: str, inputs: Values) -> tuple[str, str, Record | None]:
        """The run: its id, its identity, and its record if there is one, also by a former hash of the same code."""
        name, declaration, _, rerun = (bare(inputs.get(part)) for part in edits.IDENTITY_INPUTS)
        ids = [
            (job_id(name, declaration, code_hash, rerun, owner), digest(name, declaration, code_hash, rerun))
            for code_hash in edits.code_hashes(inputs)
        ]
        try:
            for run, identity in ids:
                if (record := self._runs.get(workspace, run)) is not None:
                    return run, identity, record
        except (ArmError, WorkspaceMissingError):
            if not call.preview:
                raise
        return *ids[0], None

    def _hold(self, call: Call, run: str) -> None:
        with self._lock:
            holder = self._held.setdefault(run, call.urn)
        if holder != call.urn:
            raise ProviderError(
                f"{call.urn.rsplit('::', 1)[-1]} and {holder.rsplit('::', 1)[-1]} declare the same run {run}: same "
                "name, declaration, code and `rerun`. Give one of them another name"
            )

    def _adopt(self, call: Call, record: Record, state: Values) -> None:
        _refuse_foreign(record, state)
        message = (
            f"adopted run {record.job_id}, which is {record.status}: it was submitted before and not recorded here"
        )
        if record.status in UNSUCCESSFUL:
            self._host.warning(f"{message}; to run it again, set `rerun` to another word", call.urn)
            return
        if record.derived and record.derived != _derived(state["body"]):
            message += "; what is derived has changed since and does not apply to it"
        self._host.info(message, call.urn)

    def _submit(self, call: Call, workspace: str, run: str, state: Values) -> Record:
        body: dict[str, Any] = bare(state["body"])
        properties = dict(body["properties"])
        marks = _marks(call, state)
        properties["properties"] = {**(properties.get("properties") or {}), **marks}
        if state.get("environmentId"):
            properties["environmentId"] = state["environmentId"]
        try:
            return self._runs.put(workspace, run, {**body, "properties": properties})
        except ArmError as error:
            # The answer may have been lost after the run was accepted: the record knows, and asking costs nothing.
            record = self._after_failure(workspace, run)
            if record is not None and (record.identity, record.owner) == (state["identity"], state["owner"]):
                return record
            raise ProviderError(f"run {run} was not accepted: {error}") from None

    def _after_failure(self, workspace: str, run: str) -> Record | None:
        try:
            return self._runs.get(workspace, run)
        except (ArmError, WorkspaceMissingError):
            return None

    def _mark_kept(self, call: Call, successor: str) -> None:
        """Before the new run begins, so that a crash at any later point finds the old one marked."""
        with self._lock:
            kept = self._kept.pop(call.urn, None)
        if kept is None:
            return
        workspace, old = kept
        try:
            record = self._runs.get(workspace, old)
            if record is not None:
                self._runs.edit(workspace, record, {"tags": {KEPT_FOR: successor}})
        except (ArmError, WorkspaceMissingError) as error:
            raise ProviderError(
                f"run {old} could not be marked as kept ({error}); nothing new was started, so that it is not "
                "cancelled by mistake. Try again"
            ) from None

    # -- read, update ------------------------------------------------------------------------------------------------

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:
        """The live record; only its own 404 means gone, and then it stays here, marked."""
        if not old.get("identity"):
            raise ProviderError(
                f"run {resource_id} cannot be imported: what it ran cannot be read back as a declaration. "
                "Declare it; an equal run of this stack is adopted"
            )
        workspace = str(bare(old["workspace"]))
        # Edits of these alone are no operation of ours: the inputs know them, the recorded state does not.
        said: Values = {name: inputs[name] for name in _OWN_WORDS if name in inputs}
        asked = {**old, **said}
        record = self._runs.get(workspace, resource_id)
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
        workspace = str(bare(old["workspace"]))
        record = self._runs.get(workspace, resource_id)
        if record is not None:
            wanted, had = edits.metadata_of(new["body"]), edits.metadata_of(old["body"])
            record = metadata.apply(self._services, call, workspace, record, wanted=wanted, had=had)
        if record is None:
            self._host.warning(f"the record of run {resource_id} is gone; nothing of it can be edited", call.urn)
            state = {**state, "gone": True}
            self._gates.judge(resource_id, state, new)
            return state
        return self._gates.pass_(call, resource_id, self._observed(state, record), record)

    # -- delete ------------------------------------------------------------------------------------------------------

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Cancels the run if it is active and ours, waits for its end, keeps its history."""
        workspace = str(bare(old["workspace"]))
        with self._lock:
            if self._held.get(resource_id) == call.urn:
                # A forced replacement has adopted the same run a moment ago: the old resource goes, the run stays.
                self._host.info(f"run {resource_id} stays: the new resource stands for the same run", call.urn)
                return
        try:
            record = self._runs.get(workspace, resource_id)
            if record is None or self._left_alone(call, workspace, record, old):
                return
            if is_active(record.status):
                self._host.status(f"cancelling {resource_id}, which is {record.status}", call.urn)
                self._runs.cancel(workspace, resource_id)
                self._ended(call, workspace, record)
            if (inputs or old).get("deleteHistory"):
                self._services.arm.finish(self._runs.delete(workspace, resource_id), self._services.cancelled)
        except WorkspaceMissingError:
            return
        except InterruptedWaitError:
            message = f"interrupted; run {resource_id} was asked to end, and the next `up` waits for it again"
            raise ProviderError(message, Code.ABORTED) from None
        except WaitTimeoutError as error:
            raise ProviderError(f"{error}; the next `up` waits for its end again", Code.DEADLINE_EXCEEDED) from None

    def _ended(self, call: Call, workspace: str, record: Record) -> None:
        follow(self._services, call, workspace, record, until=lambda now: not is_active(now.status), what="has ended")

    def _left_alone(self, call: Call, workspace: str, record: Record, old: Values) -> bool:
        if record.owner != old.get("owner"):
            owner = record.owner or "somebody else"
            self._host.info(f"run {record.job_id} belongs to {owner}; it is left as it is", call.urn)
            return True
        successor = record.tags.get(KEPT_FOR)
        # A mark without its successor is left over from an edit that never came to be.
        if successor and is_active(record.status) and self._runs.get(workspace, successor) is not None:
            self._host.info(f"run {record.job_id} goes on (on_edit: keep)", call.urn)
            return True
        return False

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


def _marks(call: Call, state: Values) -> dict[str, str]:
    """What the record says about where it comes from."""
    stack = str(bare(state.get("stackId")) or "")
    return {
        IDENTITY: state["identity"],
        OWNER: state["owner"],
        DERIVED: _derived(state["body"]),
        NAME: str(bare(state["name"])),
        RESOURCE: resource_of(call.urn),
        ON_EDIT: str(bare(state.get("onEdit")) or OnEdit.REFUSE),
        **({STACK: stack} if stack else {}),
    }


def _derived(body: Values) -> str:
    return sha256(bare(edits.without_metadata(body)))[:16]


def _refuse_foreign(record: Record, state: Values) -> None:
    if record.owner == state["owner"] and record.identity == state["identity"]:
        return
    if record.owner is None:
        seen = f"a run {record.job_id} exists that was not made here (it is {record.status})"
    elif record.owner != state["owner"]:
        seen = f"run {record.job_id} belongs to {record.owner}, not to {state['owner']} (it is {record.status})"
    else:
        seen = f"run {record.job_id} exists with another declaration (it is {record.status})"
    raise ProviderError(
        f"{seen}. A run is adopted only by the stack that made it. Give the job another name, or set `rerun`",
        Code.ALREADY_EXISTS,
    )
