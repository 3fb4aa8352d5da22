"""Planning: ranks are counted, launchers lowered, sizes honoured, and all faults found together."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from amlstack.base.findings import Level
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

A100 = jobs.Target("Standard_ND96asr_v4", "a100", 4)
H100 = jobs.Target("Standard_ND96isr_H100_v5", "h100", 4)
CPU = jobs.Target("Standard_HB120rs_v3", "cpu", 4)
BLIND = jobs.Target(cluster="somewhere")


def job(**fields: Any) -> jobs.Job:
    return jobs.Job(
        **{"command": "python train.py", "environment": "acpt-pytorch-2.8-cuda12.6", "compute": "a100"} | fields
    )


def codes(plan: jobs.Plan) -> list[str]:
    return [finding.code for finding in plan.findings]


@for_each("fields, target, expected", [
        ({}, A100, []),
        ({"nodes": 5}, A100, ["nodes-beyond-cluster"]),
        ({"name": "my job"}, A100, ["name-form"]),
        ({"name": "my-job_1"}, A100, []),
        ({"launcher": jobs.TorchRun(processes_per_node=16)}, A100, ["processes-beyond-gpus"]),
        ({"launcher": jobs.TorchRun(processes_per_node=16)}, CPU, []),
        ({"launcher": jobs.TorchRun(processes_per_node=16)}, BLIND, []),
        ({"launcher": jobs.TorchRun(), "compute": None}, None, ["target-unknown"]),
        ({"launcher": jobs.TorchRun(), "command": "torchrun train.py"}, A100, ["launcher-in-command"]),
        ({"launcher": jobs.TorchRun(), "command": "bash run.sh"}, A100, ["command-not-python"]),
        ({"launcher": jobs.TorchRun(), "command": ""}, A100, ["command-not-python"]),
        ({"launcher": jobs.PerProcess(), "command": "torchrun train.py"}, A100, ["launcher-in-command"]),
        ({"launcher": jobs.TorchRun(max_restarts=1, rdzv="static"), "nodes": 2}, A100, ["torchrun-restarts"]),
        ({"launcher": jobs.TorchRun(max_restarts=1), "nodes": 2}, A100, []),
        ({"launcher": jobs.TorchRun(), "environment_variables": {"RANK": "0"}}, A100, ["variable-reserved"]),
        ({"environment_variables": {"RANK": "0"}}, A100, []),
        ({"environment_variables": {"A": ["x"]}}, A100, ["variable-not-text"]),
        ({"command": "python t.py ${{inputs.epoch}}", "inputs": {"epochs": 1}}, A100, ["input-undefined"]),
        ({"command": "python t.py ${{ outputs.model }}"}, A100, ["output-undefined"]),
        ({"command": "python t.py ${{input.a}}", "inputs": {"a": 1}}, A100, ["binding-unknown"]),
        ({"command": "echo $[[--a ${{inputs.a}}]]"}, A100, []),
        ({"command": "echo ${{search_space.lr}}"}, A100, []),
        ({"inputs": {"1a": 1}}, A100, ["binding-name"]),
        ({"inputs": {"a": {"path": "data"}}}, A100, ["input-path-missing"]),
        ({"inputs": {"a": {"path": "azureml://datastores/d/paths/x"}}}, A100, []),
        ({"code": "nowhere"}, A100, ["code-missing"]),
        ({"code": "azureml:c:1"}, A100, []),
        ({"environment": "acpt-pytorch-2.8-cuda12.7"}, A100, ["environment-unknown"]),
        ({"environment": "azureml:mine:1"}, A100, []),
        ({"environment": "azureml:AzureML-sklearn-1.0-ubuntu20.04-py38-cpu:33"}, A100, ["environment-retired"]),
        ({"environment": "azureml:AzureML-sklearn-1.1@latest"}, A100, ["environment-retired"]),
        ({"environment": {}}, A100, ["environment-incomplete"]),
        ({"environment": {"image": "x", "build": {"path": "https://example.org/x"}}}, A100, ["environment-twice"]),
        ({"environment": {"build": {"path": "nowhere"}}}, A100, ["build-missing"]),
        ({"environment": {"image": "x", "conda_file": "nowhere.yml"}}, A100, ["conda-missing"]),
        ({"docker_args": ["a"], "locations": ["eastus"]}, A100, ["lost-in-rendering"]),
])  # fmt: skip
def test_what_is_wrong_is_found(fields: dict[str, Any], target: jobs.Target | None, expected: list[str]) -> None:
    assert codes(jobs.plan(job(**fields), target)) == expected


def test_all_faults_come_together() -> None:
    plan = jobs.plan(
        job(command="python t.py ${{inputs.epoch}}", inputs={"epochs": 1}, code="nowhere", nodes=9,
            environment="acpt-pytorch-2.8", launcher=jobs.TorchRun(processes_per_node=9)),
        A100,
    )  # fmt: skip
    assert codes(plan) == [
        "environment-unknown",
        "input-undefined",
        "code-missing",
        "nodes-beyond-cluster",
        "processes-beyond-gpus",
    ]
    assert not plan.ok


def test_what_azure_itself_takes_is_only_warned_of_in_its_own_words() -> None:
    fields = {"command": "python t.py", "environment_variables": {"RANK": 0}}
    own = jobs.Custom(distribution={"type": "pytorch"})
    assert {finding.level for finding in jobs.plan(job(launcher=own, **fields), A100).findings} == {"warning"}
    typed = jobs.plan(job(launcher=jobs.PerProcess(), **fields), A100)
    assert {finding.level for finding in typed.findings} == {"error"}


def test_near_misses_are_named() -> None:
    plan = jobs.plan(job(command="python t.py ${{inputs.epoch}}", inputs={"epochs": 1}), A100)
    assert "Did you mean `epochs`?" in plan.findings[0].message


def test_a_total_process_count_is_explained() -> None:
    plan = jobs.plan(job(nodes=2, launcher=jobs.TorchRun(processes_per_node=16)), A100)
    assert "16 is 2 nodes of 8: a total" in plan.findings[0].message


@for_each(
    "launcher, target, nodes, ranks, world",
    [
        (jobs.TorchRun(), A100, 2, 8, 16),
        (jobs.TorchRun(processes_per_node=2), A100, 2, 2, 4),
        (jobs.TorchRun(), CPU, 2, 1, 2),
        (jobs.TorchRun(), BLIND, 2, None, None),
        (jobs.PerProcess(), H100, 4, 8, 32),
        (jobs.PerProcess(), CPU, None, 1, 1),
        (jobs.Custom(), A100, 2, 1, 2),
        (jobs.Custom(distribution={"type": "mpi", "process_count_per_instance": 4}), A100, 2, 4, 8),
        (jobs.Custom(distribution={"type": "ray"}), A100, 2, None, None),
    ],
)
def test_ranks_are_counted(
    launcher: Any, target: jobs.Target, nodes: int | None, ranks: int | None, world: int | None
) -> None:
    plan = jobs.plan(job(launcher=launcher, nodes=nodes), target)
    assert (plan.processes_per_node, plan.world_size) == (ranks, world)


C10D = "--rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT --rdzv_id ${AZUREML_RUN_ID:-job}"
TORCHRUN = "--node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"


@for_each("command, launcher, expected", [
        ("python train.py", {}, f"torchrun --nnodes 2 --nproc_per_node 8 {TORCHRUN} train.py"),
        ("python3 -u train.py --lr 1", {}, f"torchrun --nnodes 2 --nproc_per_node 8 {TORCHRUN} train.py --lr 1"),
        ("train.py", {"processes_per_node": 2}, f"torchrun --nnodes 2 --nproc_per_node 2 {TORCHRUN} train.py"),
        ("python -m pkg.train", {}, f"torchrun --nnodes 2 --nproc_per_node 8 {TORCHRUN} -m pkg.train"),
        (
            "pip install 'a;b && c' && python train.py --x \"a && b\"",
            {},
            f"pip install 'a;b && c' && torchrun --nnodes 2 --nproc_per_node 8 {TORCHRUN} train.py --x \"a && b\"",
        ),
        ("export A=1\npython train.py\n", {},
         f"export A=1\ntorchrun --nnodes 2 --nproc_per_node 8 {TORCHRUN} train.py"),
        (
            "python train.py",
            {"max_restarts": 3},
            f"torchrun --nnodes 2 --nproc_per_node 8 {C10D} --max_restarts 3 train.py",
        ),
        ("python train.py", {"program": "launch"},
         f"python -m torch.distributed.launch --use_env --nnodes 2 --nproc_per_node 8 {TORCHRUN} train.py"),
])  # fmt: skip
def test_torchrun_is_put_before_the_training_process(command: str, launcher: dict[str, Any], expected: str) -> None:
    plan = jobs.plan(job(command=command, launcher=jobs.TorchRun(**launcher), nodes=2), A100)
    assert [each.code for each in plan.findings if each.code != "gpus-idle"] == []
    assert plan.enriched.command == expected
    assert jobs.body(plan.enriched)["properties"]["distribution"] == {
        "distributionType": "PyTorch",
        "processCountPerInstance": 1,
    }


def test_what_is_added_is_listed_with_its_reason() -> None:
    plan = jobs.plan(job(launcher=jobs.TorchRun(), nodes=2), H100)
    added = {each.what: each for each in plan.added}
    assert set(added) == {
        "command",
        "distribution",
        "environment_variables.NCCL_IB_PCI_RELAXED_ORDERING",
        "environment_variables.UCX_IB_PCI_RELAXED_ORDERING",
        "environment_variables.CUDA_DEVICE_ORDER",
        "environment_variables.NCCL_SOCKET_IFNAME",
        "environment_variables.NCCL_IGNORE_CPU_AFFINITY",
        "shm_size",
        "docker_args",
    }
    assert all(each.why and each.by for each in plan.added)
    assert added["command"].instead_of == "python train.py"
    body = jobs.body(plan.enriched)["properties"]
    for what, each in added.items():
        if what.startswith("environment_variables."):
            assert body["environmentVariables"][what.partition(".")[2]] == each.value


def test_the_persons_own_value_wins() -> None:
    plan = jobs.plan(
        job(
            launcher=jobs.TorchRun(),
            environment_variables={"NCCL_SOCKET_IFNAME": "eth1"},
            shm_size="4g",
            docker_args="--ulimit memlock=-1",
        ),
        H100,
    )
    assert plan.enriched.environment_variables["NCCL_SOCKET_IFNAME"] == "eth1"
    assert (plan.enriched.shm_size, plan.enriched.docker_args) == ("4g", "--ulimit memlock=-1")
    assert not {"shm_size", "docker_args", "environment_variables.NCCL_SOCKET_IFNAME"} & {e.what for e in plan.added}


def test_azures_own_words_are_enriched_only_when_asked() -> None:
    plain = job(launcher=jobs.Custom(distribution={"type": "pytorch", "process_count_per_instance": 8}))
    assert jobs.plan(plain, A100).added == ()
    assert jobs.plan(plain, A100).enriched == plain
    asked = jobs.plan(plain.model_copy(update={"enrich": True}), A100)
    assert "environment_variables.NCCL_SOCKET_IFNAME" in {each.what for each in asked.added}


def test_blocks_of_the_fabric_are_added_to_any_launcher_that_asks() -> None:
    plain = job(launcher=jobs.Custom(distribution={"type": "pytorch", "process_count_per_instance": 8}))
    plan = jobs.plan(plain.model_copy(update={"fabric": ("azure-tuned", "sharp")}), H100)

    given = plan.enriched.environment_variables
    assert (given["NCCL_MIN_NCHANNELS"], given["NCCL_COLLNET_ENABLE"], given["NCCL_SOCKET_IFNAME"]) == (
        "32",
        "1",
        "eth0",
    )
    assert codes(plan) == []
    assert job(fabric="sharp").fabric == ("sharp",)
    assert "NCCL_MIN_NCHANNELS" not in jobs.plan(job(launcher=jobs.TorchRun()), H100).enriched.environment_variables
    mine = job(launcher=jobs.TorchRun(), fabric=["sharp"], environment_variables={"NCCL_COLLNET_ENABLE": "0"})
    assert jobs.plan(mine, H100).enriched.environment_variables["NCCL_COLLNET_ENABLE"] == "0"


@for_each(
    "target, fields, says",
    [
        (A100, {"fabric": ["sharp", "topology"]}, "There is no block `sharp` for Standard_ND96asr_v4"),
        (A100, {"fabric": ["sharp"]}, "Of that size there is `topology`"),
        (jobs.Target("Standard_ND96isr_MI300X_v5"), {"fabric": "sharp"}, "Leave `fabric` out"),
        (CPU, {"fabric": "sharp"}, "gloo carries its collectives on Standard_HB120rs_v3"),
        (H100, {"fabric": "sharp", "enrich": False}, "says `enrich=False`"),
        (BLIND, {"fabric": "sharp"}, None),
        (H100, {"fabric": ["sharp", "topology"]}, None),
        (H100, {}, None),
        (A100, {"enrich": False}, None),
    ],
)
def test_a_block_that_would_not_be_added_is_a_finding(
    target: jobs.Target, fields: dict[str, Any], says: str | None
) -> None:
    plan = jobs.plan(job(launcher=jobs.TorchRun(), **fields), target)

    found = [finding for finding in plan.findings if finding.code == "fabric-block"]
    assert [says] == [says for finding in found if says in str(finding)] if says else found == []


def test_a_typed_launcher_may_refuse_to_be_enriched() -> None:
    plan = jobs.plan(job(launcher=jobs.TorchRun(), enrich=False), A100)
    assert {each.what for each in plan.added} == {"command", "distribution"}


def test_cpu_and_gloo_jobs_get_no_nccl_variables() -> None:
    for target, launcher in ((CPU, jobs.TorchRun()), (A100, jobs.TorchRun(backend="gloo"))):
        assert jobs.plan(job(launcher=launcher), target).enriched.environment_variables == {}


def test_the_body_refuses_a_launcher_that_is_not_lowered() -> None:
    with pytest.raises(TypeError, match="not lowered"):
        jobs.body(job(launcher=jobs.TorchRun()))


def test_the_declaration_is_what_the_person_wrote(tmp_path: Path) -> None:
    (tmp_path / "conda.yml").write_text("dependencies: [a]\n")
    source = jobs.Source(base=tmp_path)
    declared = job(launcher=jobs.TorchRun(processes_per_node=2), nodes=2, inputs={"a": jobs.Input(path="azureml:x:1")},
                   environment={"image": "x", "conda_file": "conda.yml"}, code="src")  # fmt: skip
    result = jobs.plan(declared, A100, source=source).declaration
    assert result == {
        "command": "python train.py",
        "environment": {"image": "x", "conda_file": "dependencies: [a]\n"},
        "inputs": {"a": {"path": "azureml:x:1"}},
        "launcher": {"type": "torchrun", "processes_per_node": 2},
        "nodes": 2,
        "compute": "a100",
    }
    assert json.loads(json.dumps(result)) == result


@for_each(
    "change",
    [
        {"display_name": "x"},
        {"description": "x"},
        {"tags": {"a": "b"}},
        {"wait": "completed"},
        {"on_edit": "cancel"},
        {"delete_history": True},
    ],
)
def test_what_may_change_later_is_no_part_of_the_declaration(change: dict[str, Any]) -> None:
    declared = job(launcher=jobs.TorchRun())
    changed = declared.model_copy(update=change)
    assert jobs.plan(declared, A100).declaration == jobs.plan(changed, A100).declaration


def test_what_is_derived_is_no_part_of_the_declaration() -> None:
    declared = job(launcher=jobs.TorchRun())
    assert jobs.plan(declared, A100).declaration == jobs.plan(declared, H100).declaration
    assert jobs.plan(declared, A100).enriched != jobs.plan(declared, H100).enriched


@for_each(
    "launcher, nodes, named",
    [
        (jobs.Custom(), 2, True),
        (jobs.Custom(), 1, False),
        (jobs.TorchRun(), 2, False),
        (jobs.Mpi(), 2, False),
        (jobs.TensorFlow(), 2, False),
    ],
)
def test_services_of_several_nodes_need_a_distribution_that_azure_ml_starts_them_in(
    launcher: Any, nodes: int, named: bool
) -> None:
    declared = job(launcher=launcher, nodes=nodes, services={"code": jobs.Service(type="vs_code")})
    found = [each for each in jobs.plan(declared, BLIND).findings if each.code == "service-distribution"]
    assert [(each.where, each.level) for each in found] == [("services.code", Level.WARNING)] * named


def test_a_value_that_looks_like_a_data_asset_is_told_to_be_text() -> None:
    inputs: dict[str, Any] = {"a": "azureml:words:1", "b": jobs.Input(path="azureml:words:1"), "c": "words", "d": 1}
    found = [each for each in jobs.plan(job(inputs=inputs), BLIND).findings if each.code == "input-is-text"]
    assert [(each.where, each.level) for each in found] == [("inputs.a", Level.WARNING)]


def test_a_service_that_nobody_could_use_is_named() -> None:
    services = {
        "in": jobs.Service(type="ssh"),
        "key": jobs.Service(type="ssh", ssh_public_keys="ssh-rsa AAAA"),
        "wire": jobs.Service(type="ssh", properties={"sshPublicKeys": "ssh-rsa AAAA"}),
        "board": jobs.Service(type="tensor_board"),
        "lab": jobs.Service(type="jupyter_lab"),
    }
    found = [each for each in jobs.plan(job(services=services), BLIND).findings if each.code == "service-incomplete"]
    assert [each.where for each in found] == ["services.in.ssh_public_keys", "services.board.log_dir"]
    assert {each.level for each in found} == {Level.WARNING}
