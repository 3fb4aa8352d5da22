"""azure-mgmt-machinelearningservices, azure-storage-blob and azureml-mlflow, led by the environment alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from tests.support.running import running_sandbox
from tests.support.sandbox import witness_record
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from collections.abc import Mapping

# Jobs run, one of them in an environment that may have to be built, and the clients may have to be installed.
pytestmark = [pytest.mark.training, pytest.mark.timeout(3600)]

CLIENTS = ("azure-mgmt-machinelearningservices=", "azure-storage-blob=", "azureml-mlflow=")
CAPABILITIES: Mapping[str, Any] = {
    "workspaces": ["space1"],
    "workspaces of a subscription": ["space1"],
    "a workspace": "azureml",
    "a workspace updated": "changed",
    "keys": False,
    "a workspace diagnosed": [],
    "keys resynced": None,
    "quota in use": ["Count"],
    "quotas": ["Count"],
    "sizes": True,
    "features": False,
    "operations": True,
    "connections": [],
    "a cluster": ["STANDARD_D4S_V5", ["gpu", "more"], [], ["gpu"]],
    "datastores": ["c", True, "AccountKey", False],
    "data": [True, "1", "2", ["1"]],
    "environments": ["tracked", "plain"],
    "components": ["1"],
    "models": ["1"],
    "a schedule": [["nightly"], []],
    "a job": "Completed",
    "jobs": [["first"], []],
    "a job cancelled": "Canceled",
    "an unknown job": [404, "UserError"],
    "blobs": ["words", ["a/b.txt"], 412, False],
    "the tracking address": "azureml",
    "a run from outside": [*("FINISHED", {"rate": "0.1", "layers": "2"}, [1.0, 0.5], "a", ["notes/note.txt"], "words")],
    "runs listed": ["laptop"],
    "a run from within a job": [
        *("Completed", "FINISHED", {"rate": "0.1"}, [1.0, 0.5, 0.33], "inside", ["notes/note.txt"])
    ],
    "a model registered": ["1", ["1"], "mlflow_model"],
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The findings of one session of the clients, in their own environment: azureml-mlflow caps what ours need."""
    support = PROJECT / "tests" / "support" / "sandbox"
    uv = [str(Path(sys.executable).with_name("uv")), "run", "--no-project", "--quiet", "--isolated"]
    asked = [*uv, "--python", sys.executable, "--with-requirements", str(support / "other_clients.txt")]
    with running_sandbox(tmp_path_factory.mktemp("home")) as sandbox:
        arm = Arm(sandbox.endpoint)
        arm.make_cluster(arm.make_workspace("space1", keys=True))
        # The package index is another host than the sandbox: what leads to the latter is for the script alone.
        led = [f"{name}={value}" for name, value in {**sandbox.environ, "PYTHONPATH": str(PROJECT)}.items()]
        requests = tmp_path_factory.mktemp("asked") / "requests.json"
        words = ["python", "-W", "ignore", str(support / "other_clients.py"), "space1", "westeurope", str(requests)]
        done = subprocess.run(
            [*asked, "env", *led, *words],
            env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.rsplit("\n", 2)[-2])
    return {"gives": found, "asks": json.loads(requests.read_text())}


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_the_client_gets_what_azure_would_give(seen: dict[str, Any], capability: str) -> None:
    assert seen["gives"][capability] == CAPABILITIES[capability]


def test_no_capability_is_left_out(seen: dict[str, Any]) -> None:
    assert set(seen["gives"]) == set(CAPABILITIES)


def test_the_page_of_the_sandbox_names_what_the_clients_ran_and_nothing_else(seen: dict[str, Any]) -> None:
    pinned = (PROJECT / "tests" / "support" / "sandbox" / "other_clients.txt").read_text().split()
    clients = ", ".join(line.replace("==", " ") for line in pinned if line.startswith(CLIENTS))
    witness_record.check(
        "other_clients.json", clients, "tests/sandbox/test_other_clients_of_microsoft.py", seen["asks"]
    )
