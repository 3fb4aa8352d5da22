"""Three clusters in two regions through a stack's life, and quota and sizes that are asked for before it begins."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from amlstack.sandbox.protocol.entra import SUBSCRIPTION
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.running import MakeStack, Sandbox

H100, A100 = "Standard_ND96isr_H100_v5", "Standard_ND96asr_v4"
KEY = f"ssh-rsa {'A' * 100} operator"
DEFAULTS: dict[str, Any] = {"size": H100, "nodes": {"idle": "PT20M"}, "tags": {"team": "vision"}}
CLUSTERS: list[dict[str, Any]] = [
    {"name": "west", "nodes": {"max": 4}},
    {"name": "west-debug", "nodes": {"max": 1}, "ssh": {"user": "operator", "public_key": KEY}},
    {"name": "north", "location": "northeurope", "size": A100, "nodes": {"max": 2}, "priority": "low_priority"},
]


def set_quota(home: Path, **regions: Any) -> None:
    with contextlib.closing(Store(home)) as store:
        store.set_quota(regions)


def line_of(file: Path, text: str) -> int:
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if text in line)


def ops(result: Result) -> dict[str, str]:
    return {step.name: step.op for step in result.ok().planned if step.op != "same"}


@pytest.mark.engine
def test_three_clusters_in_two_regions_live_through_a_stacks_life(stack: MakeStack, own_sandbox: Sandbox) -> None:
    one = stack(PROJECT, sandbox=own_sandbox)
    one.env["PWD"] = str(one.folder)  # as a shell has it
    one.set("amlstack:location", "westeurope").set("amlstack:workspace", "ws-regions").set("amlstack:protect", "false")
    one.set("amlstack:cluster_defaults", DEFAULTS).set("amlstack:clusters", CLUSTERS)

    # Nothing is made of a stack that its subscription has no room for.
    family = {"families": {"standardNDv5H100Family": 384}}
    set_quota(own_sandbox.home, westeurope=family, northeurope={"withheld": [A100]})
    refused = one.up().failed()
    printed = "\n".join(refused.errors)
    assert "`standardNDv5H100Family` in `westeurope` has a quota of 384 vCPUs, and `nodes.max` asks for 480" in printed
    assert "`west` 4 × 96, `west-debug` 1 × 96" in printed
    assert "Request 480" in printed
    assert "--resource-name 'standardNDv5H100Family'" in printed
    assert "--limit-object value=480" in printed
    assert f"Pulumi.{one.name}.yaml:{line_of(one.settings, 'max: 4')}" in printed
    assert f"`{A100}` is not among the" in printed
    assert f"Pulumi.{one.name}.yaml:{line_of(one.settings, f'size: {A100}')}" in printed
    assert not [step for step in refused.done if step.type.startswith("azure-native:")]
    with contextlib.closing(Store(own_sandbox.home)) as store:
        assert store.resources.all() == ()

    set_quota(own_sandbox.home, westeurope={"families": {"standardNDv5H100Family": 480}})
    # Nor of one whose subscription has not registered a resource provider.
    registry = f"{SUBSCRIPTION}/microsoft.containerregistry"
    with contextlib.closing(Store(own_sandbox.home)) as store:
        store.register(registry, registered=False)
        printed = "\n".join(one.preview().failed().errors)
        assert "`Microsoft.ContainerRegistry` is `Unregistered`" in printed
        assert "az provider register --namespace Microsoft.ContainerRegistry" in printed
        assert store.resources.all() == ()
        store.register(registry, registered=True)
    made = one.up().ok()
    assert not [one for one in made.diagnostics if "quota" in one.message]
    there = {name: each["outputs"] for name, each in one.resources("machinelearningservices:Compute").items()}
    assert {name: each["location"] for name, each in there.items()} == {
        "west": "westeurope",
        "west-debug": "westeurope",
        "north": "northeurope",
    }
    account = there["west-debug"]["properties"]["properties"]["userAccountCredentials"]
    assert account == {"adminUserName": "operator", "adminUserSshPublicKey": KEY}

    # What is there already is no finding, even where less is granted since; what grows is.
    set_quota(own_sandbox.home, westeurope=family)
    edited = one.set("amlstack:cluster_defaults.tags", {"team": "speech"}).up()
    assert ops(edited) == {"west": "update", "west-debug": "update", "north": "update"}
    assert one.refresh().ok().changes == {}
    one.set("amlstack:clusters[0].nodes.max", 6)
    assert "asks for 672" in "\n".join(one.preview().failed().errors)
    one.set("amlstack:quota", "warn")
    assert ops(one.preview()) == {"west": "update"}
