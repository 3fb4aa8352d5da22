"""Nodes outside training clusters are judged by what is true of a size anywhere: a retired one is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.resource_types import machines
from tests.support.policies.pack_subjects import pack, seen

ML = "azure-native:machinelearningservices"


def filled(path: tuple[str, ...], value: Any) -> Any:
    """Properties with a value at a path; each list on it has one element."""
    for name in reversed(path):
        value = [value] if name == machines.EACH else {name: value}
    return value


FORMS: list[tuple[str, tuple[str, ...]]] = [
    *((f"azure-native:{module}:{kind}", path)
      for (module, kind), known in machines.MACHINES.items() for path in known.paths),
    *((token, path) for token, paths in machines.CLASSIC.items() for path in paths),
]  # fmt: skip


@pytest.mark.parametrize(
    ("token", "path"), FORMS, ids=lambda value: value if isinstance(value, str) else ".".join(value)
)
def test_a_retired_size_is_refused_wherever_a_machine_names_it(token: str, path: tuple[str, ...]) -> None:
    assert seen(pack(), token, filled(path, "Standard_NC24rs_v3")) == ["mandatory size-retired"]
    assert seen(pack(), token, filled(path, "Standard_ND96isr_H100_v5")) == []
    assert seen(pack(), token, filled(path, "Standard_E4s_v5")) == []  # the catalogue need not know every size
    assert seen(pack(), token, filled(path, UNKNOWN_STRING_VALUE)) == ["advisory checked-at-up"]


@pytest.mark.parametrize("kind", ["ComputeInstance", "AKS", "VirtualMachine"])
@pytest.mark.parametrize("token", [f"{ML}:Compute", f"{ML}/v20250901:Compute"])
def test_a_retired_size_is_refused_on_every_kind_of_compute_that_names_one(token: str, kind: str) -> None:
    properties = {"computeType": kind, "properties": {machines.COMPUTES[kind.lower()]: "Standard_NC24r"}}

    assert seen(pack(), token, {"properties": properties}) == ["mandatory size-retired"]


@pytest.mark.parametrize("arm", sorted(machines.OF_ARM))
def test_a_machine_in_a_template_or_as_a_generic_resource_is_judged_like_one_of_its_own_type(arm: str) -> None:
    known = machines.OF_ARM[arm]
    bare = filled(known.paths[0], "Standard_NC24rs_v3")
    body = {"properties": bare} if known.inner and "sku" not in bare else bare
    provider, _, kind = arm.partition("/")
    template = {"properties": {"template": {"resources": [{"type": arm, "name": "n", **body}]}}}
    generic = {"resourceProviderNamespace": provider, "resourceType": kind, **body}

    assert seen(pack(), "azure-native:resources:Deployment", template) == ["mandatory size-retired"]
    assert seen(pack(), "azure-native:resources:Resource", generic) == ["mandatory size-retired"]


def test_a_generic_resource_is_known_by_its_parents_and_its_type() -> None:
    body = {"properties": {"vmSize": "Standard_NC24rs_v3"}}
    named = {"resourceProviderNamespace": "Microsoft.Batch", "parentResourcePath": "batchAccounts/b",
             "resourceType": "pools", **body}  # fmt: skip

    assert seen(pack(), "azure-native:resources:Resource", named) == ["mandatory size-retired"]


def test_a_size_about_to_retire_is_advised_against() -> None:
    judge = pack({"size-retiring": {"days": 4000}})
    machine = {"hardwareProfile": {"vmSize": "Standard_HC44rs"}}

    assert seen(judge, "azure-native:compute:VirtualMachine", machine) == ["advisory size-retiring"]
