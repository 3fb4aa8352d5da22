"""The gate judges a cluster as the program registers it: both write the same properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from amlstack.sandbox.protocol.entra import SUBSCRIPTION
from infra.properties import cluster_properties
from infra.settings import parse

if TYPE_CHECKING:
    from tests.support.running import MakeStack, Sandbox

SUBNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/default"
IDENTITY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
STACK_IDENTITY = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-amlstack-test/providers"
    "/Microsoft.ManagedIdentity/userAssignedIdentities/id-ws-judged"
)
CLUSTERS: list[dict[str, Any]] = [
    {"name": "plain", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}},
    {
        "name": "full",
        "size": "Standard_NC96ads_A100_v4",
        "nodes": {"min": 1, "max": 8, "idle": "PT1H"},
        "priority": "low_priority",
        "single_node_jobs": True,
        "location": "northeurope",
        "subnet": SUBNET,
        "node_public_ip": False,
        "description": "For many small jobs.",
        "tags": {"team": "vision", "cost": "7"},
    },
    {"name": "own-identity", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}, "identity": "system"},
    {"name": "no-identity", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}, "identity": "none"},
    {
        "name": "given-identities",
        "size": "Standard_ND96asr_v4",
        "nodes": {"max": 2},
        "identity": {"type": "system", "user_assigned": [IDENTITY]},
    },
]


@pytest.mark.engine
def test_what_is_judged_of_a_cluster_is_what_is_registered(stack: MakeStack, sandbox: Sandbox) -> None:
    values = {"location": "westeurope", "workspace": "ws-judged", "clusters": CLUSTERS, "tags": {"cost": "1"}}
    one = stack(PROJECT, sandbox=sandbox)
    for key, value in values.items():
        one.set(f"amlstack:{key}", value)

    planned = one.preview().ok()

    settings = parse(values).partial
    assert settings is not None
    place = {"resourceGroupName": "rg-amlstack-test", "workspaceName": "ws-judged"}
    for spec in settings.clusters:
        (step,) = planned.steps(spec.name, "Compute")
        judged = cluster_properties(
            spec, location=spec.location or settings.location, tags=settings.tags, stack_identity=STACK_IDENTITY
        )
        assert {**step.new["inputs"], "azureApiVersion": None} == {
            **place,
            "computeName": spec.name,
            **judged,
            "azureApiVersion": None,
        }
