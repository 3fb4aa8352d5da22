"""What the stack's state records and the sandbox has not: after a reset, or when somebody deleted it by other ways."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from amlstack.sandbox.store.places import folder

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.cli.stack.state import State
    from amlstack.sandbox.store.store import Store

CONVERGING = (
    "azure-native:",
    "amlstack:code:",
    "amlstack:data:",
    "amlstack:environments:",
    "amlstack:components:",
    "amlstack:schedules:",
)
"""Types that `up` makes again. A run is none of them: one whose record is gone is not run again by itself."""


def lost(state: State, home: Path) -> tuple[str, ...]:
    """URNs of resources of the state that the sandbox of a home does not have."""
    wanted = {
        str(one["urn"]): str(one["id"])
        for one in state.resources
        if str(one["type"]).startswith(CONVERGING) and str(one.get("id", "")).startswith("/subscriptions/")
    }
    if not wanted:
        return ()
    if not (folder(home) / "state.db").is_file():
        return tuple(wanted)
    from amlstack.sandbox.store.store import Store

    with contextlib.closing(Store(home)) as store:
        return tuple(urn for urn, resource_id in wanted.items() if not _has(store, resource_id))


def _has(store: Store, resource_id: str) -> bool:
    """Whether the sandbox has a resource; of data that were uploaded to a datastore, the files."""
    workspace, _, place = resource_id.partition("/datastores/")
    if "/" not in place:
        return store.resources.get(resource_id) is not None
    from amlstack.sandbox.runner.contract.spec import RefusedError
    from amlstack.sandbox.runner.files.storage import Location, Storage

    storage = Storage(store, workspace)
    try:
        found = storage.locate(f"azureml://datastores/{place}", "The data")
    except RefusedError:
        return False
    return isinstance(found, Location) and any(True for _ in storage.files(found))
