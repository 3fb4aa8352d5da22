"""The one PUT that starts a run, and the marks that its record then bears."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.provider import edits
from amlstack.provider.arm import ArmError
from amlstack.provider.resource import known
from amlstack.provider.states import OnEdit
from amlstack.rpc import ProviderError, bare
from amlstack.run_identity import DERIVED, IDENTITY, NAME, ON_EDIT, OWNER, RESOURCE, STACK, resource_of, sha256

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Values
    from amlstack.provider.runs import Record, Runs


def submit(runs: Runs, call: Call, workspace: str, run: str, state: Values) -> Record:
    """Starts the run.

    Raises:
        ProviderError: The service did not accept it.
        WorkspaceMissingError: There is no such workspace.
    """
    body: dict[str, Any] = bare(state["body"])
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
    """What the record says about where it comes from."""
    stack = str(bare(state.get("stackId")) or "")
    return {
        IDENTITY: state["identity"],
        OWNER: state["owner"],
        DERIVED: derived(call, state),
        NAME: str(bare(state["name"])),
        RESOURCE: resource_of(call.urn),
        ON_EDIT: str(bare(state.get("onEdit")) or OnEdit.REFUSE),
        **({STACK: stack} if stack else {}),
    }


def _after_failure(runs: Runs, workspace: str, run: str) -> Record | None:
    try:
        return runs.get(workspace, run)
    except ArmError:
        return None
