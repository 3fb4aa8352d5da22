"""Targets of a stack's jobs: the region and the priority that set the price of their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

import jobs
from infra.runs.order import resolve_target
from infra.settings import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from infra.settings import Reading

SIZE = "Standard_ND96isr_H100_v5"
CLUSTERS: list[dict[str, Any]] = [
    {"name": "here", "size": SIZE, "nodes": {"max": 2}},
    {"name": "there", "size": SIZE, "nodes": {"max": 2}, "location": "uksouth", "priority": "low_priority"},
]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    config = {"location": "westeurope", "workspace": "aml-team", "clusters": CLUSTERS}
    stack = tmp_path / "Pulumi.team.yaml"
    stack.write_text(yaml.safe_dump({"config": {f"amlstack:{key}": value for key, value in config.items()}}))
    return read_file(stack)


@pytest.mark.parametrize(
    ("fields", "region", "low"),
    [
        ({"compute": "here"}, "westeurope", False),
        ({"compute": "there"}, "uksouth", True),
        ({"instance_type": SIZE}, "westeurope", False),
        ({"instance_type": SIZE, "locations": ("UK South", "eastus")}, "uksouth", False),
        ({"instance_type": SIZE, "queue_settings": jobs.QueueSettings(job_tier="spot")}, "westeurope", True),
        ({"instance_type": SIZE, "queue_settings": jobs.QueueSettings(job_tier="standard")}, "westeurope", False),
        ({"compute": "local"}, None, False),
    ],
)
def test_a_target_has_the_region_and_priority_of_its_nodes(
    reading: Reading, fields: dict[str, Any], *, region: str | None, low: bool
) -> None:
    target, found = resolve_target(jobs.Job(command="x", environment="azureml:e:1", **fields), reading)

    assert found == []
    assert (target.region, target.low_priority) == (region, low)
