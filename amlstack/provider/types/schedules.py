"""``amlstack:schedules:Schedule``: what starts jobs again and again. Unlike a run it is edited in place."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

from amlstack.provider import resource, runs
from amlstack.provider.arm import ArmError
from amlstack.provider.lifecycle.edits import listed
from amlstack.provider.resource import Call, Difference, Resource, Services, Values
from amlstack.provider.runs import WorkspaceMissingError
from amlstack.rpc import ErrorCode, Failures, ProviderError, changed_paths
from amlstack.run_identity import OWNER, owner_of, sha256

_ID = re.compile(rf"(?P<workspace>{resource.WORKSPACE.pattern})/schedules/(?P<name>[^/]+)", re.IGNORECASE)
_READ_ONLY = ("provisioningState",)
_FILLED_IN = {"status": "NotStarted", "experimentName": "Default"}
"""The service writes these into a schedule's job that has none, and an import records them.

Source: azure-ai-ml's recordings of schedules, 2022 and 2023 (docs/maintain/recordings.md).
"""


@dataclass(frozen=True, slots=True)
class _Live:
    """A schedule as the workspace has it: its ARM ``properties``."""

    properties: dict[str, Any]

    @property
    def owner(self) -> str:
        """``project/stack`` that wrote it last; empty when it bears no mark."""
        return str((self.properties.get("properties") or {}).get(OWNER) or "")

    @property
    def enabled(self) -> bool:
        return self.properties.get("isEnabled") is not False


class Schedules(Resource):
    """Writes schedules whole, keeps them to their stack, and disables them before they are deleted."""

    shape = resource.shape_of(
        "amlstack:schedules:Schedule",
        {"workspace": resource.WORKSPACE_IN_ID, "name": resource.NAME},
        digests={"settled": ("body",)},
    )

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._lock = threading.Lock()
        # Which resource of this deployment stands for which schedule: no two may, and one that a forced replacement has
        # just written again must survive the deletion of the old resource.
        self._held: dict[str, str] = {}

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Types; a schedule has a trigger and an action."""
        result = super().check(call, inputs, failures)
        body = result.get("body")
        if isinstance(body, dict):
            properties = body.get("properties")
            if not resource.known(properties):
                return result
            if not isinstance(properties, dict):
                failures.add("body", 'body must be an ARM schedule body, {"properties": {…}}')
                return result
            for name, words in (("trigger", "a trigger"), ("action", "an action")):
                if not properties.get(name):
                    failures.add(f"body.properties.{name}", f"a schedule has {words}")
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another name or workspace is another schedule; all else, drift included, is written in place."""
        if replaces := resource.changed_inputs(("name",), old, new):
            # The old one goes first: two that start the same job would both do so.
            return Difference(replaces=replaces, delete_first=True)
        written, wanted = _without_empty(old.get("body")), _without_empty(new.get("body"))
        if _enabled(wanted) is None and _enabled(written) is True:
            # What says nothing leaves it as it is, and so it is enabled: as the import of an enabled one recorded it.
            written = {**written, "properties": {**written["properties"], "isEnabled": None}}
        job, asked = _job(written), _job(wanted)
        for key, value in _FILLED_IN.items():
            if job.get(key) == value and key not in asked:
                del job[key]
        updates = (*changed_paths(_without_empty(written), wanted, "body"), *(old.get("drifted") or ()))
        if not updates and old.get("enabled") is False and _enabled(new["body"]) is None:
            self._say_paused(call, new["name"])
        return Difference(updates=tuple(dict.fromkeys(updates)))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Takes up what a killed deployment of this stack left behind, refuses what is another's, else makes it."""
        if not resource.known(inputs.get("workspace"), inputs.get("name")):
            return "", dict(inputs)  # only at preview
        workspace, name = str(inputs["workspace"]), str(inputs["name"])
        schedule_id = f"{workspace}/schedules/{name}"
        state = {**inputs, "scheduleId": schedule_id, "owner": owner_of(call.urn)}
        if call.preview:
            self._foretell(workspace, schedule_id, state)
            return "", {**state, "enabled": _enabled(inputs["body"]) is not False, "drifted": []}
        self._hold(call, schedule_id)
        live = self._get(workspace, schedule_id)
        if live is not None:
            _refuse_foreign(name, live, state["owner"])
            self._host.info(f"schedule {name} exists already: it was made before and not recorded here", call.urn)
        return schedule_id, self._write(call, state, live, before=None)

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:
        """The live schedule against what was written last; one that is gone is made anew by the next ``up``."""
        found = _ID.fullmatch(resource_id)
        if found is None:
            raise ProviderError(
                f"{resource_id} is no id of a schedule, which look like "
                "/subscriptions/…/resourceGroups/…/providers/Microsoft.MachineLearningServices/workspaces/W/schedules/NAME"
            )
        workspace, name = found["workspace"], found["name"]
        live = self._get(workspace, resource_id)
        if live is None:
            if old:
                self._host.warning(
                    f"schedule {name} is gone from the workspace; the next `up` makes it anew. Without a start time "
                    "Azure ML starts its first job at once",
                    call.urn,
                )
            return "", {}
        if not old:
            return resource_id, self._imported(call, workspace, name, inputs, live)
        settled = old.get("settled") or {}
        changed = changed_paths(settled, _print(live.properties, _properties(old["body"])))
        drifted = list(dict.fromkeys(call.secrecy.cut(f"body.properties.{path}") for path in changed))
        if live.owner not in ("", old.get("owner")):
            self._host.warning(f"schedule {name} belongs to {live.owner} by now, not to {old.get('owner')}", call.urn)
        elif drifted:
            self._host.warning(
                f"schedule {name} was changed outside: {listed(tuple(drifted))}; the next `up` writes it as declared",
                call.urn,
            )
        elif not live.enabled and _enabled(old["body"]) is None:
            self._say_paused(call, name)
        return resource_id, {**old, "enabled": live.enabled, "drifted": drifted}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:
        """Writes the whole body again; one that was paused outside stays paused unless the body says otherwise."""
        kept: Values = {name: old[name] for name in ("scheduleId", "owner", "settled", "enabled") if name in old}
        state: Values = {**new, **kept, "drifted": []}
        if call.preview:
            return state if (enabled := _enabled(new["body"])) is None else {**state, "enabled": enabled}
        self._hold(call, resource_id)
        live = self._get(str(old["workspace"]), resource_id)
        if live is not None and live.owner not in ("", old.get("owner")):
            raise ProviderError(_foreign(new["name"], live.owner, str(old.get("owner"))), ErrorCode.ALREADY_EXISTS)
        return self._write(call, {**state, "owner": owner_of(call.urn)}, live, before=old)

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:  # noqa: ARG002
        """Disables it, which the service asks for, then deletes it; the jobs that it started are left alone."""
        workspace, name = str(old["workspace"]), str(old["name"])
        with self._lock:
            if self._held.get(resource_id.casefold()) == call.urn:
                self._host.info(f"schedule {name} stays: the new resource stands for the same one", call.urn)
                return
        try:
            live = self._get(workspace, resource_id)
        except WorkspaceMissingError:
            return
        if live is None:
            return
        if live.owner not in ("", old.get("owner")):
            self._host.warning(f"schedule {name} belongs to {live.owner}; it is left as it is", call.urn)
            return
        arm, cancelled = self._services.arm, self._services.cancelled
        if live.enabled:
            shown = {key: value for key, value in live.properties.items() if key not in _READ_ONLY}
            body = {"properties": {**shown, "isEnabled": False}}
            arm.finish(arm.put(resource_id, body, runs.version_for(body["properties"])), cancelled)
        arm.finish(arm.delete(resource_id, allow=(404,)), cancelled)

    # -- the workspace -----------------------------------------------------------------------------------------------

    def _get(self, workspace: str, schedule_id: str) -> _Live | None:
        response = self._services.arm.get(schedule_id, allow=(404,))
        if response.status == 404:
            # A missing group or workspace is a 404 as well, and says nothing about the schedule.
            self._services.runs.require_workspace(workspace)
            return None
        properties = response.body.get("properties") if isinstance(response.body, dict) else None
        return _Live(properties if isinstance(properties, dict) else {})

    def _write(self, call: Call, state: Values, live: _Live | None, *, before: Values | None) -> Values:
        name, schedule_id = str(state["name"]), str(state["scheduleId"])
        body: dict[str, Any] = state["body"]
        properties = {**body["properties"]}
        properties["properties"] = {**(properties.get("properties") or {}), OWNER: state["owner"]}
        if live is not None and not live.enabled and _enabled(state["body"]) is None and not _was_off(before):
            properties["isEnabled"] = False
            self._say_paused(call, name)
        arm = self._services.arm
        try:
            sent = arm.put(schedule_id, {**body, "properties": properties}, runs.version_for(properties))
            arm.finish(sent, self._services.cancelled)
            now = self._get(str(state["workspace"]), schedule_id)
        except ArmError as error:
            raise ProviderError(f"schedule {name} was not accepted: {error}") from None
        if now is None:
            raise ProviderError(f"schedule {name} was accepted and is not there; try again")
        if now.properties.get("provisioningState") == "Failed":
            raise ProviderError(
                f"schedule {name} was accepted and could not be set up; its page in the studio says why"
            )
        settled = _print(now.properties, body["properties"])
        return {**state, "enabled": now.enabled, "drifted": [], "settled": settled}

    def _imported(self, call: Call, workspace: str, name: str, inputs: Values, live: _Live) -> Values:
        if live.owner not in ("", owner_of(call.urn)):
            self._host.warning(
                f"schedule {name} belongs to {live.owner}, which will miss it once this stack has edited it", call.urn
            )
        # What the service fills in when nothing was declared is no part of a declaration.
        properties = {
            key: value
            for key, value in live.properties.items()
            if key not in (*_READ_ONLY, "properties") and value not in (None, {}, [])
        }
        given = {key: value for key, value in (live.properties.get("properties") or {}).items() if key != OWNER}
        if given:
            properties["properties"] = given
        inputs |= {"workspace": workspace, "name": name, "body": {"properties": properties}}
        schedule_id = f"{workspace}/schedules/{name}"
        seen = {"scheduleId": schedule_id, "owner": live.owner, "enabled": live.enabled, "drifted": []}
        return {**inputs, **seen, "settled": _print(live.properties, properties)}

    # -- what may be declared ----------------------------------------------------------------------------------------

    def _foretell(self, workspace: str, schedule_id: str, state: Values) -> None:
        """At preview a foreign schedule is refused already; whatever else is unclear is left to the deployment."""
        try:
            live = self._get(workspace, schedule_id)
        except (ArmError, WorkspaceMissingError):
            return
        if live is not None:
            _refuse_foreign(str(state["name"]), live, state["owner"])

    def _hold(self, call: Call, schedule_id: str) -> None:
        with self._lock:
            holder = self._held.setdefault(schedule_id.casefold(), call.urn)
        if holder != call.urn:
            raise ProviderError(
                f"{call.urn.rsplit('::', 1)[-1]} and {holder.rsplit('::', 1)[-1]} declare the same schedule "
                f"{schedule_id.rsplit('/', 1)[-1]}. Give one of them another name"
            )

    def _say_paused(self, call: Call, name: Any) -> None:
        self._host.info(
            f"schedule {name} is disabled in the workspace and stays so: say that it is enabled to resume it", call.urn
        )


def _properties(body: Any) -> dict[str, Any]:
    properties = body.get("properties") if isinstance(body, dict) else None
    return properties if isinstance(properties, dict) else {}


def _without_empty(body: Any) -> Any:
    """The body's meaning: the service treats empty values and absent ones alike, and leaves both out of answers."""
    if not isinstance(body, dict):
        return body
    kept = {key: _without_empty(value) for key, value in body.items()}
    return {key: value for key, value in kept.items() if value is not None and value not in ({}, [])}


def _enabled(body: Any) -> bool | None:
    """True where the body says that it is enabled; None when it says nothing."""
    enabled = _properties(body).get("isEnabled")
    return enabled if isinstance(enabled, bool) else None


def _job(body: Any) -> Values:
    """The job that the schedule of a body starts."""
    action = _properties(body).get("action")
    job = action.get("jobDefinition") if isinstance(action, dict) else None
    return job if isinstance(job, dict) else {}


def _was_off(before: Values | None) -> bool:
    """True where it was this stack that had disabled it: then a body that no longer says so enables it."""
    return before is not None and _enabled(before["body"]) is False


def _print(live: Any, sent: Any) -> Any:
    """Digests of the live values at the places that were sent: compared later, and never a value in the state.

    What the service adds or writes in another way does not look like an edit: prints are compared with prints.
    """
    if isinstance(sent, dict) and isinstance(live, dict):
        return {key: _print(live.get(key), value) for key, value in sent.items()}
    return sha256(live)[:12]


def _refuse_foreign(name: str, live: _Live, owner: str) -> None:
    if live.owner == owner:
        return
    if live.owner:
        raise ProviderError(_foreign(name, live.owner, owner), ErrorCode.ALREADY_EXISTS)
    raise ProviderError(
        f"a schedule {name} exists that was not made here. Give this one another name, or take that one over: "
        "`pulumi import amlstack:schedules:Schedule`",
        ErrorCode.ALREADY_EXISTS,
    )


def _foreign(name: Any, theirs: str, ours: str) -> str:
    return (
        f"schedule {name} belongs to {theirs}, not to {ours}. A schedule is edited only by the stack that made it; "
        "give this one another name, or remove it there first"
    )
