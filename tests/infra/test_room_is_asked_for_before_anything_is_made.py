"""The program's questions about quota, their number, and the use of the answers."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import pulumi
import pytest

from amlstack.base.findings import Finding, Level
from infra import resource_types
from infra.components import children
from infra.names import Names
from infra.settings import parse

NAMES = Names("s", "rg", "ws")
PROVIDER = re.compile(r"/providers/([^/]+)")
SIZE, FAMILY = "Standard_ND96isr_H100_v5", "standardNDv5H100Family"


@dataclass
class Azure:
    """Answers as the provider's functions do, and keeps what it was asked."""

    limit: int = 10_000
    problem: str = ""
    there: list[dict[str, Any]] = field(default_factory=list)
    failure: Exception | None = None
    asked: list[str] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)

    async def answer(self, token: str, asked: dict[str, Any], provider: Any) -> dict[str, Any]:
        if token == "amlstack:capacity:ofProviders":
            self.asked.append("providers")
            states = {name: self.states.get(name, "Registered") for name in asked["namespaces"]}
            return {"states": states, "problem": self.problem}
        assert (asked["workspace"], provider) == (NAMES.workspace_id, None), "its part of the quota is asked for too"
        if token == "amlstack:capacity:ofWorkspace":
            self.asked.append("workspace")
            return {"clusters": self.there, "problem": ""}
        self.asked.append(f"regions {', '.join(sorted(asked['regions']))}")
        if self.failure is not None:
            raise self.failure
        usage = {"name": FAMILY, "label": "", "current": 0, "limit": self.limit}
        sizes = {SIZE: {"family": FAMILY, "vcpus": 96, "lowPriority": True}}
        row = {"usages": [usage], "sizes": sizes, "listed": 1, "problem": self.problem}
        return {"regions": dict.fromkeys(asked["regions"], row)}


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Azure:
    made = Azure()
    monkeypatch.setattr(children, "_answer", made.answer)
    return made


def findings(**settings: Any) -> list[Finding]:
    clusters = [{"name": "train", "size": SIZE, "nodes": {"max": 4}},
                {"name": "north", "size": SIZE, "nodes": {"max": 1}, "location": "northeurope"}]  # fmt: skip
    reading = parse({"location": "westeurope", "workspace": "w-team", "clusters": clusters, **settings})
    assert reading.settings is not None
    return asyncio.run(children.findings(reading.settings, reading, NAMES, None))


def test_all_regions_are_asked_at_once_and_the_workspace_is_not_where_there_is_room(azure: Azure) -> None:
    assert findings() == []
    assert azure.asked == ["regions northeurope, westeurope"]


def test_the_workspace_is_asked_where_there_seems_to_be_no_room(azure: Azure) -> None:
    azure.limit = 100
    (found,) = findings()
    assert azure.asked == ["regions northeurope, westeurope", "workspace"]
    assert (found.code, found.where, found.level) == (
        "quota-exceeded",
        "amlstack:clusters[0].nodes.max",
        Level.ERROR,
    )
    azure.there = [{"name": "Train", "location": "westeurope", "size": SIZE.upper(), "priority": "Dedicated", "max": 4}]
    assert findings() == []


def test_a_warning_is_all_that_is_wanted(azure: Azure) -> None:
    azure.limit = 100
    assert [one.level for one in findings(quota="warn")] == [Level.WARNING]


@pytest.mark.parametrize("settings", [{"quota": "off"}, {"clusters": []}])
def test_nothing_is_asked_where_nothing_is_to_be_known(azure: Azure, settings: dict[str, Any]) -> None:
    assert findings(**settings) == []
    assert azure.asked == []


def test_what_could_not_be_asked_is_a_warning_for_each_region(azure: Azure) -> None:
    azure.failure = RuntimeError("no such function")
    found = findings()
    assert [one.level for one in found] == [Level.WARNING, Level.WARNING]
    assert {one.code for one in found} == {"quota-unchecked"}
    azure.failure, azure.problem = None, "AuthorizationFailed: no"
    assert ["were not checked: AuthorizationFailed: no" in one.seen for one in findings()] == [True, True]


def providers(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> list[Finding]:
    """The findings on two resource providers; an error ends the program."""
    shown: list[Finding] = []
    monkeypatch.setattr(children, "show", shown.extend)
    reading = parse({"location": "westeurope", "workspace": "w-team", **settings})
    assert reading.settings is not None
    asked = children.check_providers(reading.settings, reading, "sub", ["Microsoft.Network", "Microsoft.Storage"], None)
    try:
        asyncio.run(asked)
    except pulumi.RunError:
        assert {one.level for one in shown} >= {Level.ERROR}
    else:
        assert {one.level for one in shown} <= {Level.WARNING}
    return shown


@pytest.mark.parametrize("state", ["NotRegistered", "Unregistered", "Unregistering", ""])
def test_a_resource_provider_that_is_not_registered_is_named_with_the_command(
    azure: Azure, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    azure.states = {"Microsoft.Network": state, "Microsoft.Storage": "Registering"}
    (found,) = providers(monkeypatch)
    assert (found.code, found.level) == ("provider-not-registered", Level.ERROR)
    assert "az provider register --namespace Microsoft.Network" in found.remedy
    assert [one.level for one in providers(monkeypatch, quota="warn")] == [Level.WARNING]
    assert providers(monkeypatch, quota="off") == []
    assert azure.asked == ["providers"] * 2


def test_resource_providers_that_could_not_be_asked_are_a_warning(
    azure: Azure, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure.problem = "AuthorizationFailed: no"
    (found,) = providers(monkeypatch)
    assert (found.code, found.level) == ("providers-unchecked", Level.WARNING)


def test_every_type_that_a_stack_registers_has_the_resource_provider_of_azures_type() -> None:
    free = {"authorization": "Microsoft.Authorization"}
    rows = json.loads(files("amlstack.sandbox.azure_native").joinpath("types.json").read_text("utf-8"))["types"]
    for token in {str(one) for one in vars(resource_types).values() if str(one).startswith("azure-native:")}:
        _, module, name = token.split(":")
        if token == resource_types.RESOURCE_GROUP:  # of the resource manager itself
            continue
        assert (free | resource_types.PROVIDERS)[module] == PROVIDER.findall(rows[f"{module}:{name}"]["path"])[-1]
