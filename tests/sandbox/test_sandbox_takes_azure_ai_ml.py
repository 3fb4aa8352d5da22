"""Microsoft's own client works against the sandbox, uploads included."""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox import processes
from amlstack.sandbox.protocol.entra import SUBSCRIPTION
from amlstack.sandbox.store.store import Store
from tests.support.azure_ai_ml import told
from tests.support.sandbox.sandbox_client import Arm, job

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Sandbox


PLACE = (
    f"azureml://subscriptions/{SUBSCRIPTION}/resourcegroups/space1/workspaces/space1/datastores/workspaceblobstore/"
    "paths/raw/2/"
)
OWN_STORES = ("workspaceartifactstore", "workspaceblobstore", "workspacefilestore", "workspaceworkingdirectory")


@pytest.mark.tools
def test_azure_ai_ml_makes_computes_environments_and_jobs(own_sandbox: Sandbox, tmp_path: Path) -> None:
    arm = Arm(own_sandbox.endpoint)
    workspace = arm.make_workspace("space1")
    compute = arm.make_cluster(workspace)
    (tmp_path / "train.py").write_text("print(1)")
    # Another job holds the whole cluster, so that nothing is ever run for this one.
    holder = subprocess.Popen(["sleep", "infinity"])
    with contextlib.closing(Store(own_sandbox.home)) as store, store.transaction():
        store.jobs.add(workspace, "holder", job(compute))
        store.jobs.move("holder", "Running")
        store.jobs.set_runner("holder", holder.pid, processes.started(holder.pid))
        for number in range(2):
            store.nodes.put(compute, number, "busy", "holder")

    try:
        seen = told("azure_ai_ml_session", "space1", tmp_path, environ=own_sandbox.environ)
    finally:
        holder.kill()
        holder.wait()

    assert str(seen.pop("container")).startswith("azureml-blobstore-")
    assert seen.pop("waits") in {"NotStarted", "Queued"}
    assert seen == {
        "size": "STANDARD_ND40RS_V2",
        "computes": ["gpu"],
        "version": "7",
        "assets": [*("1", "2"), "2", "1", ["1"], ["own"], ["counted"]],
        "data": [
            *("1", "2"),
            *("2", PLACE, "uri_folder"),
            *(["1"], PLACE),
            *(["1", "2"], [], [["raw", "2", "uri_folder"]], 409),
        ],
        "stores": [
            *("corpora", "corpora", False),
            [*("files", "shares"), *OWN_STORES],
        ],
        "described": ["ours", {"team": "a"}],
        "ended": "Canceled",
        "schedule": [True, ["weekly"], 200, False, []],
        "archived": [True],
    }
