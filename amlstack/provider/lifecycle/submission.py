"""The one PUT that starts a run, what it waits for, the adoption of a run that is there, and its editable metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from amlstack.provider.arm import ArmClient, ArmError
from amlstack.provider.lifecycle import edits
from amlstack.provider.resource import Call, Services, Values, known, text_of
from amlstack.provider.run_lists import is_ours, stack_ids
from amlstack.provider.runs import COMPLETED, UNSUCCESSFUL, OnEdit, Record, Runs, WorkspaceMissingError
from amlstack.rpc import UNKNOWN, ErrorCode, ProviderError
from amlstack.run_identity import DERIVED, IDENTITY, NAME, ON_EDIT, OWNER, RESOURCE, STACK, resource_of, sha256

_LATEST = re.compile(
    r"(?P<container>/subscriptions/.+/workspaces/[^/]+/environments/[^/]+)/labels/latest", re.IGNORECASE
)


def environment_of(arm: ArmClient, workspace: str, body: Values) -> str | None:
    """The environment id to submit: ``…/environments/x/labels/latest`` of a workspace becomes its newest version's id.

    A registry's labels are answered by the registry only; they are left to the service.

    Raises:
        ProviderError: The workspace has no version of that environment, or could not be asked.
        WorkspaceMissingError: There is no such workspace.
    """
    given = (body.get("properties") or {}).get("environmentId")
    match = _LATEST.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        return given if isinstance(given, str) else None
    container = match["container"]
    query = {"$orderBy": "createdtime desc", "$top": "1"}
    try:
        found = arm.get(f"{container}/versions", query=query, allow=(404,)).body.get("value") or []
    except ArmError as error:
        raise ProviderError(f"the label latest of {container} could not be resolved: {error}") from None
    if not found:
        if arm.get(workspace, allow=(404,)).status == 404:
            raise WorkspaceMissingError(workspace)
        name = container.rsplit("/", 1)[-1]
        raise ProviderError(f"the workspace {workspace.rsplit('/', 1)[-1]} has no version of an environment {name}")
    return str(found[0]["id"])


def apply_metadata(
    services: Services, call: Call, workspace: str, record: Record, *, wanted: Mapping[str, Any], had: Mapping[str, Any]
) -> Record | None:
    """Brings the metadata from ``had`` to ``wanted``, both as `edits.metadata_of` gives them.

    Only what differs between the two is touched: tags that others put on the run stay.

    Returns:
        The record as it is then; ``None`` when it is gone.

    Raises:
        ProviderError: The service refused.
    """
    changes: dict[str, Any] = {
        name: wanted[name] or "" for name in ("displayName", "description") if wanted[name] != had[name]
    }
    if changes.get("displayName") == "":
        del changes["displayName"]
        services.host.info("a display name cannot be removed, only changed: it stays", call.urn)
    tags = {name: value for name, value in wanted["tags"].items() if had["tags"].get(name) != value}
    if tags:
        changes["tags"] = tags
    removed = [name for name in had["tags"] if name not in wanted["tags"]]
    if not changes and not removed:
        return record
    try:
        if changes and not services.runs.edit(workspace, record, changes):
            return None
        if removed and not services.runs.remove_tags(workspace, record, removed):
            stay = f"the service does not remove tags of a run: {', '.join(removed)} stay on {record.job_id}"
            services.host.warning(stay, call.urn)
        return services.runs.get(workspace, record.job_id)
    except ArmError as error:
        raise ProviderError(f"the metadata of run {record.job_id} could not be edited: {error}") from None


def align_metadata(services: Services, call: Call, workspace: str, record: Record, body: Values) -> Record:
    """Gives an adopted run the metadata that is wanted now; what it has beyond that is left."""
    wanted = edits.metadata_of(body)
    found = {**edits.metadata_of({"properties": record.properties}), "tags": record.tags}
    had = {name: found[name] if wanted[name] else wanted[name] for name in wanted}
    had["tags"] = {name: value for name, value in record.tags.items() if name in wanted["tags"]}
    return apply_metadata(services, call, workspace, record, wanted=wanted, had=had) or record


def refuse_foreign(record: Record, state: Values) -> None:
    """Refuses a run that this stack may not adopt.

    Raises:
        ProviderError: It names whose the run is, and the way out.
    """
    owner, seen = str(state["owner"]), f"run {record.job_id}"
    remedy = "Give the job another name, or set `rerun`"
    if record.owner is None:
        seen = f"a run {record.job_id} exists that was not made here"
    elif record.owner != owner:
        seen = f"{seen} belongs to {record.owner}, not to {owner}"
    elif not is_ours(record, (owner,), *stack_ids(state)) and state.get("stackId") is not UNKNOWN:
        ours = text_of(state, "stackId") or "none"
        seen = f"{seen} belongs to another stack named {owner}: its id is {record.stack}, this stack's is {ours}"
        remedy = (
            "If it is this very stack and its state was lost, give it the id that it had: set `amlstack:stack_id` to "
            f"{record.stack}. Otherwise give the job another name, or set `rerun`"
        )
    elif record.identity != state["identity"]:
        seen = f"{seen} exists with another declaration"
    else:
        return
    raise ProviderError(
        f"{seen} (it is {record.status}). A run is adopted only by the stack that made it. {remedy}",
        ErrorCode.ALREADY_EXISTS,
    )


def announce_adoption(services: Services, call: Call, record: Record, derived: str) -> None:
    """Says that nothing is submitted, at preview and when it is done.

    Args:
        services: Where to say it.
        call: Its preview decides about the tense.
        record: The run.
        derived: Digest of what would be derived for it now; empty when that is not known.
    """
    done = "is adopted" if call.preview else "adopted"
    message = f"run {record.job_id}, which is {record.status}"
    message = f"{message}, {done}" if call.preview else f"{done} {message}"
    message += ": it runs exactly what is declared, and nothing is submitted"
    if record.derived and derived and record.derived != derived:
        message += "; what is derived has changed since and does not apply to it"
    if record.status == COMPLETED or record.status in UNSUCCESSFUL:
        message += "; to run it again, set `rerun` to another word"
    if record.status in UNSUCCESSFUL:
        services.host.warning(message, call.urn)
    else:
        services.host.info(message, call.urn)


_GONE = "gone from the workspace"


class Predecessor(NamedTuple):
    """Name, ARM id of the run and status of what comes before; empty where that is not known yet, at preview."""

    job: str
    run: str
    status: str


def require_predecessors(services: Services, run: str, state: Values) -> None:
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
                f"run {run} was not submitted: `{state['name']}` comes after `{one.job}` (`after`), {seen}. "
                f"{_remedy(one.job, status)}, or take `{one.job}` out of its `after`",
                ErrorCode.FAILED_PRECONDITION,
            )


def foretell_predecessors(services: Services, call: Call, state: Values) -> None:
    """Says at preview what a run that will be submitted waits for."""
    names = [f"`{one.job}`" for one in _given(state) if one.status != COMPLETED]
    if names:
        has = "have" if len(names) > 1 else "has"
        services.host.info(f"submitted only once {', '.join(names)} {has} completed (`after`)", call.urn)


def _given(state: Values) -> list[Predecessor]:
    after = state.get("after")
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


def submit(runs: Runs, call: Call, workspace: str, run: str, state: Values) -> Record:
    """Starts the run.

    Raises:
        ProviderError: The service did not accept it.
        WorkspaceMissingError: There is no such workspace.
    """
    body: dict[str, Any] = state["body"]
    properties = dict(body["properties"])
    properties["properties"] = {**(properties.get("properties") or {}), **_marks(call, state)}
    if state.get("environmentId"):
        properties["environmentId"] = state["environmentId"]
    try:
        return runs.put(workspace, run, {**body, "properties": properties})
    except ArmError as error:
        # The answer may have been lost after the run was accepted: the record knows, and asking costs nothing.
        record = _after_failure(runs, workspace, run)
        if record is not None and (record.identity, record.owner) == (state["identity"], state["owner"]):
            return record
        raise ProviderError(f"run {run} was not accepted: {error}") from None


def derived(call: Call, state: Values) -> str:
    """Digest of what was derived for a run, without metadata and secrets: who sees the record sees the digest.

    Empty when part of it is not known, at preview.
    """
    if not known(state["body"]):
        return ""
    return sha256(call.secrecy.parted(edits.without_metadata(state["body"]), ("body",))[0])[:16]


def _marks(call: Call, state: Values) -> dict[str, str]:
    """The marks of the record that state its origin."""
    stack = str(state.get("stackId") or "")
    return {
        IDENTITY: state["identity"],
        OWNER: state["owner"],
        DERIVED: derived(call, state),
        NAME: str(state["name"]),
        RESOURCE: resource_of(call.urn),
        ON_EDIT: str(state.get("onEdit") or OnEdit.REFUSE),
        **({STACK: stack} if stack else {}),
    }


def _after_failure(runs: Runs, workspace: str, run: str) -> Record | None:
    try:
        return runs.get(workspace, run)
    except ArmError:
        return None
