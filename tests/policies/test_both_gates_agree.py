"""What the declaration gate says of a declaration, the pack says of the resources that it becomes."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import jobs
from amlstack.base.findings import Level
from infra import cluster, ruling
from infra.declare import declare
from infra.names import Names
from infra.settings import parse
from policies import checks, config, gate
from policies.pack.server import Pack
from tests.support.policies.showing import TODAY, request, shown

if TYPE_CHECKING:
    from pathlib import Path

    from infra.declare import Declaration

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
SIZES = (
    "Standard_ND96isr_H100_v5", "Standard_ND40rs_v2", "Standard_NC96ads_A100_v4", "Standard_NC24rs_v3",
    "Standard_NC24r", "Standard_DS3_v2", "Standard_HC44rs", "Standard_ND96isr_H100",
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
    command = chance.choice(["python t.py", "python t.py", "NCCL_IB_DISABLE=1 python t.py"])
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


def of_the_pack(pack: Pack, declaration: Declaration, values: dict[str, Any]) -> set[tuple[str, str]]:
    """Codes and levels that the pack gives to what the program registers, in the program's order."""
    reading = parse(values)
    assert reading.partial is not None
    settings = reading.partial
    names = Names.of(settings, project="amlstack", stack="team", subscription="s")
    asked: list[tuple[str, str, dict[str, Any]]] = []
    around = {"location": settings.location, "tags": settings.tags}
    asked += [(token, name, around) for name, token in ruling._LOCATED.items()]
    compute = cluster.properties(
        settings.clusters[0],
        location=settings.location,
        tags=settings.tags,
        stack_identity=ruling.STACK_IDENTITY,
    )
    asked.append((ruling.COMPUTE, "train", {"computeName": "train", **compute}))
    (run,) = declaration.runs
    parts = jobs.parts(run.plan)
    refs: dict[str, jobs.Refs] = {}
    for place, part in parts.items():
        own = part.enriched.environment
        inline = isinstance(own, jobs.Environment)
        if isinstance(own, jobs.Environment):
            asked.append((ruling.ENVIRONMENT, "environment", {"body": {"image": own.image}}))
        registered = f"{names.workspace_id}/environments/e/versions/1" if inline else None
        refs[place.removeprefix("jobs.")] = jobs.Refs(names.workspace_id, None, registered)
    whole = refs.get("", refs.get("trial", jobs.Refs(names.workspace_id)))
    if isinstance(run.plan, jobs.PipelinePlan):
        for body in jobs.components(run.plan.enriched, whole, refs).values():
            *_, name, _, version = jobs.component_id(body, whole).split("/")
            asked.append((ruling.COMPONENT, name, {"name": name, "version": version, "body": body["properties"]}))
    body = jobs.render(run.plan.enriched, whole, refs)
    asked.append((ruling.JOB, run.name, {"workspace": names.workspace_id, "name": run.name, "body": body}))
    return {
        (code, level)
        for token, name, props in asked
        for level, code, _ in shown(pack.Analyze(request(token, props, name), None))
    }


@pytest.mark.parametrize("number", range(len(CONFIGS)), ids=["default", "strict", "lenient", "excepted"])
def test_both_gates_agree_on_generated_declarations(number: int, tmp_path: Path) -> None:
    chance, said = random.Random(20260801 + number), CONFIGS[number]
    (tmp_path / "rules.json").write_text(json.dumps(said))
    hits: set[str] = set()
    for _ in range(500):
        size = chance.choice(SIZES)
        values, job = some_settings(chance, size), some_job(chance, chance.choice(SIZES))
        (tmp_path / "run.yml").write_text(yaml.safe_dump(job))

        declaration = declare(parse(values), on=TODAY, root=tmp_path, place=PLACE)

        here = {
            (one.code, {Level.ERROR: "mandatory"}.get(one.level, "advisory"))
            for one in declaration.findings
            if one.code in config.CODES
            # A job's own judgement of the cluster that it names; the pack judges that cluster itself.
            and not (one.where.endswith("compute") and one.code in {rule.code for rule in checks.SIZE_RULES})
        }
        there = of_the_pack(Pack("amlstack", "1.0.0", TODAY, said), declaration, values)
        if ("size-unknown", "advisory") in here:  # a job of one node, see gate.OTHERWISE
            here, there = ({one for one in found if one[0] != "size-unknown"} for found in (here, there))
        assert here == there, (values, job)
        hits |= {code for code, _ in there}

    judged = {rule.code for rule in checks.RULES if config.read(said).enabled(rule.code)}
    if said is STRICT:
        # No setting opens SSH or local authentication; the stack's budget is judged once for the whole.
        assert judged - hits == {"stack-budget", "ssh-closed", "local-auth-off"}


def test_what_the_gates_see_differently_is_listed_by_name() -> None:
    assert set(gate.OTHERWISE) <= config.CODES
