"""Losses: the data and records that a deployment takes away, and the resources that the sandbox lost."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from amlstack.cli.progress import name_of
from amlstack.cli.stack_state import type_of
from amlstack.sandbox.contract.spec import RefusedError
from amlstack.sandbox.files.storage import Location, Storage
from amlstack.sandbox.store.holdings import listed
from amlstack.sandbox.store.store import Store, cluster_of, folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.cli.stack_state import State

WORKSPACE: Final = "azure-native:machinelearningservices:Workspace"
CLUSTER: Final = "azure-native:machinelearningservices:Compute"
HOLDS: Final = {
    "azure-native:resources:ResourceGroup": "everything in the resource group",
    "azure-native:storage:StorageAccount": "code, inputs, outputs and checkpoints of runs",
    "azure-native:storage:BlobContainer": "what jobs have written to its datastore",
    "azure-native:storage:FileShare": "what jobs have written to its datastore",
    "azure-native:keyvault:Vault": "secrets",
    "azure-native:containerregistry:Registry": "images",
    WORKSPACE: "registered assets and the history of runs",
    CLUSTER: "",
}
"""Type without its API version → what goes with a resource of it; a cluster counts only with its runs."""

DELETED: Final = {"delete": "deletes", "discard": "forgets"}
REPLACED: Final = frozenset({"replace", "create-replacement", "delete-replaced", "discard-replaced"})
CONVERGING: Final = (
    "azure-native:",
    "amlstack:code:",
    "amlstack:data:",
    "amlstack:environments:",
    "amlstack:components:",
    "amlstack:schedules:",
)
"""Types that `up` makes again. A run is none of them: one whose record is gone is not run again by itself."""


def losses_of(ops: Mapping[str, str], state: State, home: Path) -> tuple[str, ...]:
    """A line for each resource that holds something and would be deleted or replaced.

    Args:
        ops: URN → operation of a preview.
        state: What is recorded of the stack.
        home: The sandbox's home, whose records of runs are counted.
    """
    found = []
    runs = _runs(home)
    for one in state.resources:
        urn, kind = str(one["urn"]), type_of(one["type"])
        verb = DELETED.get(ops.get(urn, ""), "replaces" if ops.get(urn) in REPLACED else "")
        if not verb or kind not in HOLDS or one.get("retainOnDelete"):
            continue
        resource_id = str(one.get("id", "")).lower()
        names = [run for run, places in runs.items() if resource_id in places]
        if kind == CLUSTER and not names:
            continue
        records = f"{len(names)} run{'' if len(names) == 1 else 's'} ({listed(names)})" if names else ""
        holds = " and ".join(text for text in (HOLDS[kind], records) if text)
        found.append(f"{verb} {name_of(urn)} ({resource_id.rsplit('/', 1)[-1]}): {holds}")
    return tuple(found)


def _runs(home: Path) -> dict[str, tuple[str, ...]]:
    """Key of each run → ids of its workspace and its cluster, lower-cased."""
    if not (folder(home) / "state.db").is_file():
        return {}
    with contextlib.closing(Store(home)) as store:
        children = store.family.members()
        return {
            row.id: (row.workspace.lower(), cluster_of(row) or "")
            for row in store.jobs.list()
            if row.id not in children
        }


def missing(state: State, home: Path) -> tuple[str, ...]:
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
    with contextlib.closing(Store(home)) as store:
        return tuple(urn for urn, resource_id in wanted.items() if not _has(store, resource_id))


def _has(store: Store, resource_id: str) -> bool:
    """True where the sandbox has a resource; of data that were uploaded to a datastore, the files."""
    workspace, _, place = resource_id.partition("/datastores/")
    if "/" not in place:
        return store.resources.get(resource_id) is not None
    storage = Storage(store, workspace)
    try:
        found = storage.locate(f"azureml://datastores/{place}", "The data")
    except RefusedError:
        return False
    return isinstance(found, Location) and any(True for _ in storage.files(found))
