"""Display name, description and tags of a run: the only things of it that can be edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.provider import edits
from amlstack.provider.arm import ArmError
from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.provider.resource import Call, Services, Values
    from amlstack.provider.runs import Record


def apply(
    services: Services,
    call: Call,
    workspace: str,
    record: Record,
    *,
    wanted: Mapping[str, Any],
    had: Mapping[str, Any],
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


def align(services: Services, call: Call, workspace: str, record: Record, body: Values) -> Record:
    """Gives an adopted run the metadata that is wanted now; what it has beyond that is left."""
    wanted = edits.metadata_of(body)
    found = {**edits.metadata_of({"properties": record.properties}), "tags": record.tags}
    had = {name: found[name] if wanted[name] else wanted[name] for name in wanted}
    had["tags"] = {name: value for name, value in record.tags.items() if name in wanted["tags"]}
    return apply(services, call, workspace, record, wanted=wanted, had=had) or record
