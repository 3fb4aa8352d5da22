"""Nodes outside training clusters are judged by what is true of a size anywhere: a retired one is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.evaluation.subjects import COMPUTES, MACHINES
from tests.support.policies.pack_subjects import pack, seen
from tests.support.rows import for_each

ML = "azure-native:machinelearningservices"


def filled(path: tuple[str, ...], value: Any) -> Any:
    """Properties with a value at a path."""
    for name in reversed(path):
        value = {name: value}
    return value


FORMS: list[tuple[str, tuple[str, ...]]] = [
    *((f"{ML}:{kind}", path) for kind, (_, paths) in MACHINES.items() for path in paths),
    ("azure:machinelearning/computeInstance:ComputeInstance", ("virtualMachineSize",)),
    ("azurerm:index/machineLearningComputeInstance:MachineLearningComputeInstance", ("virtualMachineSize",)),
]


@for_each("token, path", FORMS)
def test_a_retired_size_is_refused_wherever_a_machine_names_it(token: str, path: tuple[str, ...]) -> None:
    assert seen(pack(), token, filled(path, "Standard_NC24rs_v3")) == ["mandatory size-retired"]
    assert seen(pack(), token, filled(path, "Standard_ND96isr_H100_v5")) == []
    assert seen(pack(), token, filled(path, "Standard_E4s_v5")) == []  # the catalogue need not know every size
    assert seen(pack(), token, filled(path, UNKNOWN_STRING_VALUE)) == ["advisory checked-at-up"]


@for_each("kind", ["ComputeInstance", "AKS", "VirtualMachine"])
@for_each("token", [f"{ML}:Compute", f"{ML}/v20250901:Compute"])
def test_a_retired_size_is_refused_on_every_kind_of_compute_that_names_one(token: str, kind: str) -> None:
    properties = {"computeType": kind, "properties": {COMPUTES[kind.lower()]: "Standard_NC24r"}}

    assert seen(pack(), token, {"properties": properties}) == ["mandatory size-retired"]


@pytest.mark.parametrize(("arm", "paths"), MACHINES.values(), ids=lambda value: str(value[0]))
def test_a_machine_in_a_template_or_as_a_generic_resource_is_judged(arm: str, paths: Any) -> None:
    body = filled(paths[0], "Standard_NC24rs_v3")
    provider, _, kind = arm.partition("/")
    template = {"properties": {"template": {"resources": [{"type": arm, "name": "n", **body}]}}}
    generic = {"resourceProviderNamespace": provider, "resourceType": kind, **body}

    assert seen(pack(), "azure-native:resources:Deployment", template) == ["mandatory size-retired"]
    assert seen(pack(), "azure-native:resources:Resource", generic) == ["mandatory size-retired"]


def test_a_size_about_to_retire_is_advised_against() -> None:
    judge = pack({"size-retiring": {"days": 4000}})
    machine = {"properties": {"instanceType": "Standard_HC44rs"}}

    assert seen(judge, f"{ML}:OnlineDeployment", machine) == ["advisory size-retiring"]
