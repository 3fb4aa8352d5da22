"""azure-ai-ml, unmodified and led by the environment alone, against the sandbox: what each capability gives."""

from __future__ import annotations

import json
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.azure_ai_ml import told
from tests.support.running import running_sandbox
from tests.support.sandbox import witness_record
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from collections.abc import Mapping

# The jobs of the session run, and the first may have to build an environment.
pytestmark = [pytest.mark.training, pytest.mark.timeout(3600)]

LOG = "artifacts/user_logs/std_log_process_00.txt"
CAPABILITIES: Mapping[str, Any] = {
    "workspaces of a subscription": ["space1"],
    "a workspace's keys": None,
    "a workspace updated": "changed",
    "a workspace made": "made",
    "a workspace deleted": ["space1"],
    "a workspace diagnosed": [],
    "keys of a workspace resynced": None,
    "registries of a group": [],
    "connections of a workspace": [],
    "nodes of a cluster": [],
    "quota in use": ["Count"],
    "sizes": True,
    "a cluster with every property, updated": ["low_priority", 300, "me", 2, {"team": "b"}, ["gpu"]],
    "a curated environment by label": "acpt-pytorch-2.8-cuda12.6",
    "a curated environment by version": "7",
    "a curated environment in a workspace": "AzureML-acpt-pytorch-2.8-cuda12.6",
    "its version in a workspace": "space1/environments/AzureML-acpt-pytorch-2.8-cuda12.6/versions/3",
    "curated environments": True,
    "a datastore made": "stelsewhere",
    "a datastore with its secrets": "workspaceblobstore",
    "environments": [],
    "a data lake made": "f",
    "a datastore deleted": [
        *("mine", "workspaceworkingdirectory", "workspaceartifactstore", "workspacefilestore", "workspaceblobstore")
    ],
    "a build context uploaded": "1",
    "a folder uploaded": "1",
    "a file uploaded": "/x.txt",
    "a folder uploaded to a data lake": "/datastores/own_lake",
    "data by label": "1",
    "data archived": [],
    "data restored": 1,
    "a model uploaded": "1",
    "models": ["1", ["model"]],
    "a model downloaded": ["model/data/x.txt"],
    "components": ["2", "2"],
    "components listed and archived": [["2"], ["1"], ["1", "2"], ["echo"]],
    "a job": "Completed",
    "all of a job downloaded": ["artifacts/outputs/a.txt", LOG, "named-outputs/out/o.txt"],
    "an output downloaded": ["named-outputs/out/o.txt"],
    "logs downloaded": ["artifacts/outputs/a.txt", LOG],
    "services of a job": None,
    "a model from a job's files": [
        "workspaceartifactstore/paths/ExperimentRun/dcid.JOB/outputs/",
        ["kept/outputs/a.txt"],
    ],
    "a job with inputs and outputs of every origin, and a priority": {
        "status": "Completed",
        "read": ["words", "words", "words", "named", "kept"],
        "an output with a name": "uri_folder",
        "a model": "1",
        "queue": ["high", ["westeurope"]],
    },
    "a parallel step": ["parallel", "Completed", ["Completed", "Completed"], ["scored words\n"]],
    "a schedule triggered": "Completed",
    "a pipeline's output downloaded": ["named-outputs/last/y.txt"],
    "a schedule switched off, on and deleted": [False, True, ["daily"], []],
    "a job cancelled": "Canceled",
    "jobs listed and archived": [False, True, True, True],
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The findings of one session of the client; the SDK takes seconds to import, so that there is only one."""
    folder = tmp_path_factory.mktemp("capabilities")
    with running_sandbox(tmp_path_factory.mktemp("home")) as sandbox:
        arm = Arm(sandbox.endpoint)
        arm.make_cluster(arm.make_workspace("space1", keys=True))
        found = told("azure_ai_ml_capabilities", "space1", folder, environ=sandbox.environ)
    return {"gives": found, "asks": json.loads((folder / "requests.json").read_text())}


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_the_client_gets_what_azure_would_give(seen: dict[str, Any], capability: str) -> None:
    assert seen["gives"][capability] == CAPABILITIES[capability]


def test_no_capability_is_left_out(seen: dict[str, Any]) -> None:
    assert set(seen["gives"]) == set(CAPABILITIES)


def test_the_page_of_the_sandbox_names_what_the_client_ran_and_nothing_else(seen: dict[str, Any]) -> None:
    client = f"azure-ai-ml {metadata.version('azure-ai-ml')}"
    witness_record.check("clients.json", client, "tests/sandbox/test_azure_ai_ml_capabilities.py", seen["asks"])
