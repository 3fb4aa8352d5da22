"""The jobs of the guides and the examples, written for SDK v1, become the bodies that their v2 versions have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

import jobs
from amlstack.base.paths import PROJECT
from amlstack.migrate.migration import migrate
from tests.support.migrate.guides import GUIDES, job, program
from tests.support.migrate.programs import HEAD, hands
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

ARGUMENTS = "['--epochs', {epochs}, '--world-size', {world_size}]"
LAUNCH = (
    "python -m torch.distributed.launch --nnodes 2 --nproc_per_node 2 --node_rank $NODE_RANK "
    "--master_addr $MASTER_ADDR --master_port $MASTER_PORT --use_env train.py --epochs 8 --world-size 4"
)
SINGLE = (
    "python -m torch.distributed.launch --use_env --standalone --nproc_per_node 2 train.py --epochs 8 --world-size 2"
)
PER_NODE = "python -m amlnode launch --nproc 2 train.py --epochs 6 --world-size 4"
FOUR = "distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2)"
V1 = {
    "ddp_per_process/job.yml": f"arguments={ARGUMENTS}, {FOUR}",
    "ddp_torchrun/job.py": f"command={LAUNCH!r}.split(), distributed_job_config=PyTorchConfiguration(node_count=2)",
    "single_node/job.py": f"command=[{SINGLE!r}]",
    "mpi_per_process/job.py": f"arguments={ARGUMENTS}, distributed_job_config=MpiConfiguration(2, 2)",
    "mpi_per_node/job.py": f"command={PER_NODE!r}, distributed_job_config=MpiConfiguration(node_count=2)",
    "horovod/job.py": f"arguments={ARGUMENTS}, distributed_job_config=MpiConfiguration(2, 2)",
    "deepspeed_pytorch/job.yml": "arguments=['--epochs', 4, '--world-size', 4, '--deepspeed', '--deepspeed_config',"
    " 'ds_config.json'], distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2)",
    "huggingface_per_process/job.yml": "arguments=['--steps', 60, '--world-size', 4],"
    " distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2)",
    "tensorflow_multiworker/job.py": f"arguments={ARGUMENTS}, distributed_job_config=TensorflowConfiguration(2, 0)",
}  # fmt: skip
"""Example → the rest of its ScriptRunConfig in SDK v1, as the guides write theirs."""
PARTS = (
    "command",
    "distribution",
    "codeId",
    "computeId",
    "environmentId",
    "experimentName",
    "environmentVariables",
    "limits",
)


def body_of(file: Path) -> dict[str, Any]:
    """The request that a job file makes, its literal inputs in their places; what the fabric adds is left out."""
    loaded = jobs.load(file)
    [job] = loaded.jobs
    assert [finding for finding in loaded.findings if finding.level == "error"] == []
    assert isinstance(job, jobs.Job)
    target = jobs.Target("Standard_ND96asr_v4", "a100", 2)
    properties = jobs.body(jobs.plan(job.model_copy(update={"enrich": False}), target, source=loaded.source).enriched)[
        "properties"
    ]
    command = properties["command"]
    for name, value in job.inputs.items():
        command = command.replace(f"${{{{inputs.{name}}}}}", str(value))
    found = {part: properties.get(part) for part in PARTS} | {"command": " ".join(command.split())}
    found["code"] = (file.parent / job.code.path).resolve().name if job.code else None
    found["nodes"] = properties.get("resources", {}).get("instanceCount", 1)
    found["limits"] = (properties.get("limits") or {}).get("timeout")
    found.pop("codeId")
    found["computeId"] = re.sub(r".*[:/]", "", str(found["computeId"]))
    return found


@for_each("example", V1)
def test_a_guides_job_in_v1_has_the_body_of_its_example(tmp_path: Path, example: str) -> None:
    file = PROJECT / "examples" / example
    [job] = jobs.load(file).jobs
    assert isinstance(job, jobs.Job)
    code = (file.parent / job.code.path).resolve() if job.code else tmp_path
    (tmp_path / code.name).mkdir()
    name, _, version = job.environment.split("/")[-3:] if isinstance(job.environment, str) else ("", "", "")
    environment = (
        f"Environment.from_docker_image('e', {job.environment.image!r})\nenv.python.user_managed_dependencies = True"
        if isinstance(job.environment, jobs.Environment)
        else f"Environment.get(ws, 'AzureML-{name}', version='{version}')"
    )
    program = (
        f"{HEAD}\nenv = {environment}\nenv.environment_variables = {job.environment_variables!r}\n"
        f"run = ScriptRunConfig({code.name!r}, {'' if 'command=' in V1[example] else repr('train.py') + ', '}"
        f"{V1[example].format(**job.inputs)}, compute_target=ComputeTarget(ws, 'a100'), environment=env,"
        f" max_run_duration_seconds=3600)\nExperiment(ws, 'examples').submit(run)\n"
    )
    (tmp_path / "submit.py").write_text(program, "utf-8")
    found = migrate([tmp_path / "submit.py"], tmp_path / "v2")
    (tmp_path / "v2").mkdir()
    (tmp_path / "v2" / "submit.yml").write_text(found.files["submit.yml"], "utf-8")
    assert body_of(tmp_path / "v2" / "submit.yml") == body_of(file)
    assert [item for item in found.items if item.state == "hand"] == []


@for_each("name", GUIDES)
def test_a_job_of_the_guides_has_the_body_of_its_v2_version(tmp_path: Path, name: str) -> None:
    guide = GUIDES[name]
    (tmp_path / "src").mkdir()
    (tmp_path / "v2").mkdir()
    (tmp_path / "submit.py").write_text(program(guide), "utf-8")
    found = migrate([tmp_path / "submit.py"], tmp_path / "v2")
    (tmp_path / "v2" / "submit.yml").write_text(found.files["submit.yml"], "utf-8")
    (tmp_path / "v2" / "expected.yml").write_text(yaml.safe_dump(job(guide)), "utf-8")
    assert body_of(tmp_path / "v2" / "submit.yml") == body_of(tmp_path / "v2" / "expected.yml")
    launcher = ["torch.distributed.launch"] if guide.command.startswith("python -m") else []
    assert sorted(hands(found)) == ["AzureML-PyTorch-1.6-GPU", *launcher]
