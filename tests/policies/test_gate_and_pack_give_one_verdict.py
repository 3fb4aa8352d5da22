"""The gate gives each rendered resource of a declaration the verdict that the pack gives it."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.findings import Finding, Level
from infra.declaration import declare
from infra.settings import parse
from policies import checks, config, gate
from policies.pack.server import Pack
from tests.support.examples import examples
from tests.support.policies.showing import TODAY, request, shown

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = {Level.ERROR: "mandatory", Level.WARNING: "advisory", Level.INFO: "advisory"}
SIZES = (
    "Standard_ND96isr_H100_v5", "Standard_ND40rs_v2", "Standard_NC96ads_A100_v4", "Standard_NC24rs_v3",
    "Standard_NC24r", "Standard_DS3_v2", "Standard_HC44rs", "Standard_ND96isr_H100", "Standard_ND96isr_MI300X_v5",
)  # fmt: skip
ENVIRONMENTS = (
    "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7",
    "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest",
    "azureml://registries/elsewhere/environments/a/versions/1",
    "azureml:mine:3",
    "azureml:mine@latest",
    {"image": "ghcr.io/a/b:latest"},
    {"image": "mcr.microsoft.com/a/b:1"},
)
STRICT: dict[str, Any] = {
    **dict.fromkeys((rule.code for rule in config.ALL if rule.level == "advisory"), "mandatory"),
    "managed-identity": "advisory",
    "subnet-present": "mandatory",
    "size-retiring": {"days": 400, "enforcementLevel": "mandatory"},
    "node-ceiling": {"nodes": 4},
    "cluster-budget": {"gpus": 32, "vcpus": 400},
    "cost-per-hour": {"usd": 500},
    "cost-per-job": {"usd": 5000},
    "region-approved": {"regions": ["westeurope"]},
    "tags-required": {"required": ["team"]},
    "environment-approved": {"registries": ["azureml"], "images": ["mcr.microsoft.com"]},
    "subnet-overlap": {"networks": {"wide": "172.16.0.0/12"}},
    "job-timeout": {"hours": 4, "enforcementLevel": "mandatory"},
}
LENIENT: dict[str, Any] = {**STRICT, "sriov-fabric": "advisory", "size-retired": "disabled",
                           "fabric-switched-off": "advisory", "processes-beyond-gpus": "disabled"}  # fmt: skip
EXCEPTED: dict[str, Any] = {**STRICT, "exception-expired": {"exceptions": [
    {"rule": rule, "resource": name, "owner": "o", "reason": "r", "expires": "2027-01-01"}
    for rule, name in (("sriov-fabric", "train"), ("job-timeout", "run*"), ("fabric-switched-off", "run"),
                       ("node-public-ip", "*::train"))
]}}  # fmt: skip
CONFIGS: tuple[dict[str, Any], ...] = ({}, STRICT, LENIENT, EXCEPTED)
PLACE = "team::amlstack"


def some_command(chance: random.Random, size: str) -> dict[str, Any]:
    nodes = chance.choice([1, 2, 2, 4])
    command = chance.choice(["python t.py", "python t.py", "NCCL_IB_DISABLE=1 python t.py", "import nebulaml"])
    resources: dict[str, Any] = {"instance_count": nodes}
    resources |= chance.choice([{}, {"shm_size": "950g"}, {"shm_size": "4g"}, {"docker_args": "--ipc=host"}])
    job: dict[str, Any] = {
        "command": command,
        "environment": chance.choice(ENVIRONMENTS),
        "environment_variables": chance.choice(
            [{}, {}, {"NCCL_NET": "Socket"}, {"NCCL_P2P_DISABLE": "1"}, {"API_KEY": "0a1b2c3d"}]
        ),
        "resources": resources,
    }
    if chance.random() < 0.5:
        job["compute"] = "azureml:train"
    else:
        resources["instance_type"] = size
        job |= chance.choice([{}, {"queue_settings": {"job_tier": "spot"}}])
    if chance.random() < 0.5:
        job["distribution"] = {"type": "pytorch", "process_count_per_instance": chance.choice([1, 4, 8, 16])}
    if chance.random() < 0.6:
        job["limits"] = {"timeout": chance.choice([3600, 86400])}
    job["outputs"] = chance.choice([{}, {"c": {"type": "uri_folder", "mode": "rw_mount"}}])
    return job


def some_job(chance: random.Random, size: str) -> dict[str, Any]:
    kind = chance.choice(["command", "command", "sweep", "pipeline"])
    inner = some_command(chance, size)
    if kind == "command":
        return {"type": "command", **inner}
    if kind == "pipeline":
        steps = {f"s{number}": {"type": "command", **some_command(chance, size)} for number in range(2)}
        return {"type": "pipeline", "jobs": steps}
    compute = {"compute": inner.pop("compute")} if "compute" in inner else {}
    limits = {"max_total_trials": 4, "max_concurrent_trials": 2, **inner.pop("limits", {})}
    resources = inner.pop("resources")
    inner.pop("outputs")
    queue = {"queue_settings": inner.pop("queue_settings")} if "queue_settings" in inner else {}
    return {
        "type": "sweep", **compute, **queue, "limits": limits, "resources": resources, "trial": inner,
        "sampling_algorithm": "random", "search_space": {"lr": {"type": "choice", "values": [1, 2]}},
        "objective": {"primary_metric": "loss", "goal": "minimize"},
    }  # fmt: skip


def some_settings(chance: random.Random, size: str) -> dict[str, Any]:
    cluster: dict[str, Any] = {
        "name": "train",
        "size": size,
        "nodes": {
            "min": chance.choice([0, 1]),
            "max": chance.choice([1, 2, 8]),
            "idle": chance.choice(["PT5M", "P1D"]),
        },
        "priority": chance.choice(["dedicated", "low_priority"]),
        "single_node_jobs": chance.random() < 0.3,
        "node_public_ip": chance.choice([None, True, False]),
        "tags": chance.choice([{}, {"team": "a"}]),
        "identity": chance.choice(["stack", "system", "none"]),
    }
    if chance.random() < 0.5:
        net = chance.choice(["wide", "other"])
        network = f"/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/{net}"
        cluster["subnet"] = f"{network}/subnets/n"
    return {
        "location": chance.choice(["westeurope", "eastus"]),
        "workspace": "w-team",
        "clusters": [{key: value for key, value in cluster.items() if value is not None}],
        "jobs": ["run.yml"],
        "policies": "rules.json",
        "tags": chance.choice([{}, {"team": "b"}]),
    }


@pytest.mark.parametrize("number", range(len(CONFIGS)), ids=["default", "strict", "lenient", "excepted"])
def test_gate_and_pack_give_one_verdict_on_generated_declarations(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, given = random.Random(20260801 + number), CONFIGS[number]
    (tmp_path / "rules.json").write_text(json.dumps(given))
    judged: list[tuple[str, str, Any, str, tuple[Finding, ...]]] = []
    judge = gate.Gate.judge

    def recorded(self: gate.Gate, token: str, name: str, props: Any, *, parent: str = "", **more: Any) -> Any:
        found = judge(self, token, name, props, parent=parent, **more)
        judged.append((token, name, props, f"urn:pulumi:{PLACE}::{parent}${token}::{name}", found))
        return found

    monkeypatch.setattr(gate.Gate, "judge", recorded)
    hits: set[str] = set()
    for _ in range(examples(1)):
        size = chance.choice(SIZES)
        values, job = some_settings(chance, size), some_job(chance, chance.choice(SIZES))
        (tmp_path / "run.yml").write_text(json.dumps(job))  # JSON is YAML, and quick to write
        judged.clear()

        declaration = declare(parse(values), on=TODAY, root=tmp_path, place=PLACE)

        pack = Pack("amlstack", "1.0.0", TODAY, given)
        for token, name, props, urn, found in judged:
            asked = request(token, json.loads(json.dumps(props, default=str)), name)
            asked.urn = urn
            there = shown(pack.Analyze(asked, None))
            assert [(LEVELS[one.level], one.code) for one in found] == [each[:2] for each in there], (values, job)
            assert all(one.where in message for one, (*_, message) in zip(found, there, strict=True))
            hits |= {one.code for one in found}
        shown_codes = {one.code for *_, found in judged for one in found} | {one.code for one in declaration.findings}
        assert shown_codes & config.CODES == {one.code for one in declaration.findings} & config.CODES, (values, job)

    rules = {rule.code for rule in checks.RULES if config.read(given).enabled(rule.code)}
    if given is STRICT:
        # No setting opens SSH or local authentication; the stack's budget is judged once for the whole.
        assert rules - hits == {"stack-budget", "ssh-closed", "local-auth-off"}


def test_the_gate_writes_into_nothing_that_it_is_given_when_steps_name_components_of_the_stack() -> None:
    """A pipeline component is judged first, then the one that its step names, then the job that names the pipeline."""
    step = {"type": "command", "componentId": "azureml:inner:1"}
    specs: dict[str, dict[str, Any]] = {
        "outer": {"type": "pipeline", "jobs": {"a": step}},
        "inner": {"type": "command", "command": "python train.py"},
    }
    named = [
        ("amlstack:components:Version", {"name": name, "version": "1", "body": {"componentSpec": spec}})
        for name, spec in specs.items()
    ]
    job = {"jobType": "Pipeline", "jobs": {"o": {"type": "pipeline", "componentId": "azureml:outer:1"}}}
    given = [*named, ("amlstack:jobs:Job", {"name": "j", "body": {"properties": job}})]
    before = json.dumps(given)
    one = gate.Gate(gate.read(None)[0], TODAY)
    for token, props in given:
        one.judge(token, str(props["name"]), props)
    assert json.dumps(given) == before
