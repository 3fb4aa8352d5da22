"""The program itself, run by the real engine against a sandbox: what it plans, refuses and leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from tests.support.harness import STAND_IN, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.running import Engine, MakeStack, Sandbox

pytestmark = pytest.mark.engine

JOB = """\
from jobs import Job, TorchRun

job = Job(
    name="{name}",
    command="train.py --job_id ${{{{inputs.job_id}}}}",
    code="src",
    inputs={{"job_id": 7}},
    environment="acpt-pytorch-2.8-cuda12.6",
    compute="a100",
    nodes=2,
    launcher=TorchRun(),
)
"""


OWN_ENVIRONMENT = """\
name: ddp-yaml
command: python train.py
code: src
environment: azureml:mine
compute: azureml:a100
"""


def files(folder: Path) -> Path:
    """A job file and its code."""
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("print('trained')\n")
    path = folder / "ddp.py"
    path.write_text(JOB.format(name="ddp"))
    return path


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    return files(tmp_path)


def declared(one: Stack, workspace: str, *jobs: Path, size: str = "Standard_ND96asr_v4") -> Stack:
    one.set("amlstack:location", "westeurope").set("amlstack:workspace", workspace)
    one.set("amlstack:clusters", [{"name": "a100", "size": size, "nodes": {"max": 2}}])
    one.set("amlstack:environments", ["acpt-pytorch-2.8-cuda12.6"])
    return one.set("amlstack:jobs", [str(job) for job in jobs])


@pytest.fixture(scope="module")
def planned(engine: Engine, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    """The plan of two jobs in a team's stack."""
    job_file = files(tmp_path_factory.mktemp("jobs"))
    other, conda = job_file.with_name("ddp.yml"), job_file.with_name("conda.yml")
    other.write_text(OWN_ENVIRONMENT)
    conda.write_text("dependencies: [python=3.11]\n")
    mine = {"name": "mine", "image": "ubuntu:24.04", "conda": str(conda)}
    folder = tmp_path_factory.mktemp("stack")
    one = Stack.of_project(folder, engine.folders, name="team", env=sandbox.environ, path=(STAND_IN,))
    yield declared(one, "ws-team", job_file, other).set("amlstack:environments[1]", mine).preview().ok()
    one.close()


def test_everything_is_planned_before_anything_exists(planned: Result, sandbox: Sandbox) -> None:
    kinds = {step.type for step in planned.planned}
    assert kinds >= {
        "azure-native:resources:ResourceGroup",
        "azure-native:storage:StorageAccount",
        "azure-native:keyvault:Vault",
        "azure-native:operationalinsights:Workspace",
        "azure-native:applicationinsights:Component",
        "azure-native:containerregistry:Registry",
        "azure-native:machinelearningservices:Workspace",
        "azure-native:machinelearningservices:Compute",
        "amlstack:code:Snapshot",
        "amlstack:jobs:Job",
    }
    (job,) = planned.steps("ddp", "jobs:Job")
    properties = job.new["inputs"]["body"]["properties"]
    workspace = f"{sandbox.endpoint.subscription}/resourceGroups/rg-amlstack-team"
    assert properties["computeId"].startswith(f"/subscriptions/{workspace}/")
    assert properties["codeId"].endswith("/versions/1")
    # Names of inputs are the person's: no translation of property names may touch them.
    assert properties["inputs"] == {"job_id": {"jobInputType": "literal", "value": "7"}}
    assert job.new["inputs"]["declaration"]["inputs"] == {"job_id": 7}


def test_jobs_share_their_code_and_an_own_environment_has_its_id_at_preview(planned: Result) -> None:
    assert len([step for step in planned.planned if step.type == "amlstack:code:Snapshot"]) == 1
    (version,) = (step for step in planned.done if step.type == "amlstack:environments:Version")
    (job,) = planned.steps("ddp-yaml", "jobs:Job")
    environment_id = job.new["inputs"]["body"]["properties"]["environmentId"]
    assert environment_id == version.new["outputs"]["environmentId"]
    assert "/workspaces/ws-team/environments/mine/versions/" in environment_id


@pytest.mark.training
def test_a_cluster_of_another_size_runs_nothing_again_and_the_difference_is_shown(
    stack: MakeStack, sandbox: Sandbox, job_file: Path
) -> None:
    text = JOB.format(name="ddp").replace("TorchRun()", "TorchRun(processes_per_node=1)")
    # torchrun itself would import torch.
    job_file.write_text(text.replace("TorchRun", "PerProcess").replace('"train.py', '"python train.py'))
    one = declared(stack(PROJECT, sandbox=sandbox, name="sandbox"), "ws-resized", job_file)
    one.set("amlstack:jobs", [{"file": str(job_file), "wait": "completed"}]).up().ok()
    before = one.outputs()["jobs"]["ddp"]
    assert before["status"] == "Completed"
    assert not [each for each in one.resources().values() if each.get("protect")], "nothing of the sandbox is protected"
    # Nor has it what makes a workspace secure.
    kinds = [each["type"].rpartition(":")[2] for each in one.resources().values()]
    assert {*kinds}.isdisjoint({"ManagementLockByScope", "DiagnosticSetting", "BlobServiceProperties", "Key"})
    assert kinds.count("RoleAssignment") == 3

    one.set("amlstack:clusters[0].size", "Standard_ND96isr_H100_v5")
    resized = one.up().ok()
    assert resized.op("a100", "Compute") == "replace"
    assert resized.op("ddp", "jobs:Job") == "same"
    assert any("what is derived changed" in each.message for each in resized.diagnostics)
    after = one.outputs()["jobs"]["ddp"]
    assert (after["jobId"], after["status"]) == (before["jobId"], "Completed")


REACHING = """import os
assert os.environ.get("PULUMI_CONFIG") is None
os.system("touch STARTED")
"""
"""Code that a pull request could put into a job file, to have it run by the preview."""


def test_every_mistake_is_shown_in_one_run_and_nothing_is_registered(
    stack: MakeStack, sandbox: Sandbox, job_file: Path
) -> None:
    job_file.write_text(JOB.format(name="ddp").replace("inputs.job_id", "inputs.jobid").replace('"src"', '"scr"'))
    started = job_file.with_name("started")
    reaching = job_file.with_name("reaching.py")
    reaching.write_text(REACHING.replace("STARTED", str(started)) + JOB.format(name="reaching"))
    one = declared(stack(PROJECT, sandbox=sandbox), "ws-faulty", job_file, reaching, size="Standard_ND96asr_v5")
    one.set("amlstack:clusters[0].nodes", {"mx": 2})
    one.env["PWD"] = str(one.folder)  # as a shell has it
    refused = one.preview().failed()
    result = "\n".join(refused.errors)
    for words in (
        "amlstack:clusters[0].nodes.mx: Unknown key `mx`",
        "has no size 'Standard_ND96asr_v5'",
        "`scr` is not there",
        "jobid",
        "reaching.py:2: While it was read, the file tried to see the variable `PULUMI_CONFIG`",
        "reaching.py:3: While it was read, the file tried to start the process `touch`",
        "6 things are wrong with this stack",
    ):
        assert words in result
    assert not started.exists()
    assert "Pulumi.test.yaml:" in result
    assert {step.type for step in refused.planned} <= {"pulumi:pulumi:Stack"}


HOLDS_DATA = {"ResourceGroup", "StorageAccount", "Vault", "Component", "Registry", "Workspace"}


def test_what_holds_data_is_protected(planned: Result) -> None:
    kept = {step.type.rsplit(":", 1)[-1] for step in planned.planned if step.new.get("protect")}
    # The keeper is deleted before all of it: the engine stops there, and has deleted nothing.
    assert kept == {*HOLDS_DATA, "Keeper"}
