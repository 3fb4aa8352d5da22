"""Costs of clusters and runs, judged in the real engine with a catalogue that knows one price."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from policies.pack import archive
from tests.support.policies.accepting_provider import attached

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.running import MakeStack

pytestmark = pytest.mark.engine

COMPUTE, OWN_JOB = "azure-native:machinelearningservices:Compute", "amlstack:jobs:Job"
PRICED, UNPRICED = "Standard_ND96isr_H100_v5", "Standard_ND128isr_GB300_v6"
PRICE = {"size": PRICED, "usd": 100.0, "region": "westeurope", "checked": "2026-07-01", "source": "made up"}
LIMITS = {
    "cost-per-job": {"usd": 5000},
    "cost-per-hour": {"usd": 500},
    "stack-budget": {"usd_per_hour": 1000},
}


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    """The pack, unpacked from its archive, with its team's own price of one size: 100 dollars per hour."""
    built, _ = archive.build(tmp_path / "dist")
    with tarfile.open(built) as packed:
        packed.extractall(tmp_path / "pack", filter="data")
    (top,) = (tmp_path / "pack").iterdir()
    (top / "catalogue.yaml").write_text(json.dumps({"prices": [PRICE]}), encoding="utf-8")
    return top / "analyzer"


def cluster(name: str, nodes: int, size: str = PRICED) -> dict[str, Any]:
    inner = {"vmSize": size, "scaleSettings": {"minNodeCount": 0, "maxNodeCount": nodes}}
    props = {"computeName": name, "properties": {"computeType": "AmlCompute", "properties": inner}}
    return {"name": name, "token": COMPUTE, "props": props}


def command(nodes: int, timeout: str | None, size: str | None = PRICED, **more: Any) -> dict[str, Any]:
    resources = {"instanceCount": nodes, **({"instanceType": size} if size else {})}
    limits = {"limits": {"timeout": timeout}} if timeout else {}
    return {"jobType": "Command", "command": "python t.py", "resources": resources, **limits, **more}


def job(name: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "token": OWN_JOB, "props": {"body": {"properties": body}}}


def amounts(result: Result, code: str) -> dict[str, tuple[str, str]]:
    """Resource → level and message of one rule."""
    return {one.urn.rsplit("::", 1)[-1]: (one.level, one.message) for one in result.violations if one.policy == code}


def test_costs_are_nodes_times_hours_times_price_against_the_budget(
    stack: MakeStack, priced: Path, tmp_path: Path
) -> None:
    sweep = {
        "jobType": "Sweep",
        "limits": {"maxTotalTrials": 8, "maxConcurrentTrials": 4, "timeout": "PT20H"},
        "trial": command(1, None),
    }
    pipeline = {"jobType": "Pipeline", "jobs": {"dear": command(2, "PT26H"), "cheap": command(2, "PT1H")}}
    asked = [
        cluster("within", 5),
        cluster("above", 6),
        cluster("of-unknown-price", 6, UNPRICED),
        job("cheap", command(2, "PT25H")),
        job("dear", command(2, "PT25H1M")),
        job("endless", command(2, None)),
        job("on-the-cluster", command(2, "PT26H", None, computeId="/x/computes/within")),
        job("of-unknown-size", command(2, "PT26H", None, computeId="/x/computes/elsewhere")),
        job("of-unknown-price", command(2, "PT26H", UNPRICED)),
        job("sweep", sweep),
        job("pipeline", pipeline),
    ]
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LIMITS))
    with attached() as azure:
        program = stack("anything_from_settings", env={**azure.environ, "AMLSTACK_TODAY": "2026-08-01"})
        result = program.set("ask", asked).preview("--policy-pack-config", str(config), policy_packs=[priced]).failed()

    per_job, per_hour = amounts(result, "cost-per-job"), amounts(result, "cost-per-hour")
    assert {name: level for name, (level, _) in per_job.items()} == {
        **dict.fromkeys(("dear", "endless", "on-the-cluster", "sweep", "pipeline"), "mandatory"),
        "of-unknown-price": "advisory",
    }
    assert "2 nodes of Standard_ND96isr_H100_v5 cost 5,003.33 USD until the timeout" in per_job["dear"][1]
    assert "a timeout of 1500 minutes or less" in per_job["dear"][1]
    assert "cost 200.00 USD per hour (westeurope), and nothing ends the job" in per_job["endless"][1]
    # Four trials at once for twenty hours.
    assert "4 nodes of Standard_ND96isr_H100_v5 cost 8,000.00 USD until the timeout" in per_job["sweep"][1]
    assert "jobs.dear.limits.timeout" in per_job["pipeline"][1]
    assert "The catalogue has no price of Standard_ND128isr_GB300_v6" in per_job["of-unknown-price"][1]
    assert {
        name: level for name, (level, _) in per_hour.items() if name in {"within", "above", "of-unknown-price"}
    } == {
        "above": "mandatory",
        "of-unknown-price": "advisory",
    }
    assert "6 nodes of Standard_ND96isr_H100_v5 cost 600.00 USD per hour (westeurope)" in per_hour["above"][1]
    (of_the_stack,) = [one for one in result.violations if one.policy == "stack-budget" and one.level == "mandatory"]
    assert "USD per hour" in of_the_stack.message
