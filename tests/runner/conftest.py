from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox import processes
from amlstack.sandbox.store.store import Store
from tests.support.runner.runner_lab import GROUP, ML, PLAIN, WORKSPACE, Lab
from tests.support.running import ended_with_us

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A sandbox of its own with a cluster of at most two nodes; nothing of it may outlive the test."""
    home = tmp_path / "home"
    store = Store(home)
    monkeypatch.setenv("AMLSTACK_HOME", str(home))
    store.resources.put(WORKSPACE, f"{ML}/workspaces", GROUP, {"properties": {}})
    store.resources.put(
        *(PLAIN, f"{ML}/workspaces/environments/versions", PLAIN.rsplit("/", 2)[0]),
        {"properties": {"image": "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"}},
    )
    for name, container in (("workspaceblobstore", "container"), ("workspaceartifactstore", "azureml")):
        store.resources.put(
            *(f"{WORKSPACE}/datastores/{name}", f"{ML}/workspaces/datastores", WORKSPACE),
            {"properties": {"datastoreType": "AzureBlob", "accountName": "account", "containerName": container}},
        )
    made = Lab(home, store)
    made.cluster()
    with ended_with_us(home):
        yield made
        made.rest()
        left = processes.end_marked(home)
    store.close()
    assert left == 0, "processes of a job were left behind"
