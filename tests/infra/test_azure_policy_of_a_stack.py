"""The setting ``azurePolicy``: what is assigned, under which names, and its life under the real engine."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from amlstack import __version__
from amlstack.base.paths import PROJECT
from infra.declaration import assigned, declare
from infra.names import Names
from infra.settings import AzurePolicy, parse
from policies import azure_policy
from policies import config as configuration
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import MakeStack, Sandbox

TODAY = date(2026, 7, 1)
NAMES = Names("11111111-2222-3333-4444-555555555555", "rg-team", "ws-team")
SAID: dict[str, Any] = {
    "ssh-closed": "mandatory",
    "size-unknown": "disabled",
    "region-approved": {"regions": ["westeurope"]},
    "tags-required": {"required": ["team", "cost/centre"]},
    "node-ceiling": {"nodes": 4},
    "cluster-budget": {"gpus": 64},
}


def made(**spec: Any) -> Any:
    return assigned(AzurePolicy(**spec), configuration.read(SAID), NAMES, on=TODAY)


def by_code(effects: dict[str, str]) -> dict[str, str]:
    return {azure_policy.code_of(name.removeprefix("effect-")): effect for name, effect in effects.items()}


@pytest.mark.parametrize(
    ("spec", "differs"),
    [
        ({}, {}),
        ({"effect": "deny"}, {"sriov-fabric": "Deny", "size-retired": "Deny", "ssh-closed": "Deny",
                              "region-approved": "Deny", "tags-required": "Deny", "node-ceiling": "Deny",
                              "cluster-budget": "Deny"}),
        ({"effect": "deny", "exclude": ["ssh-closed", "tags-required"]},
         {"sriov-fabric": "Deny", "size-retired": "Deny", "ssh-closed": "Disabled", "region-approved": "Deny",
          "tags-required": "Disabled", "node-ceiling": "Deny", "cluster-budget": "Deny"}),
    ],
)  # fmt: skip
def test_effects_follow_the_setting_and_the_levels(spec: dict[str, Any], differs: dict[str, str]) -> None:
    audited = dict.fromkeys(azure_policy.EXPRESSIBLE, "Audit")
    quiet = {"size-unknown": "Disabled", "managed-identity": "Disabled", "subnet-present": "Disabled"}

    assert by_code(made(**spec).effects) == {**audited, **quiet, **differs}


def test_definitions_are_those_of_the_export_under_names_of_the_stack() -> None:
    exported = azure_policy.definitions(configuration.read(SAID), on=TODAY, version=__version__)
    spec = made()

    assert [one["properties"] for one in spec.definitions] == [one["properties"] for one in exported]
    named = [one["name"] for one in spec.definitions]
    assert len(set(named)) == len(named)
    assert all(len(name) <= 64 and not set(name) & set("<>*%&:\\?+/") for name in named)
    other = assigned(AzurePolicy(), configuration.read(SAID), Names("s", "rg-other", "w"), on=TODAY)
    assert not set(named) & {one["name"] for one in other.definitions}
    assert set(spec.messages) == set(named)
    begins = ("A ", "Idle", "Nodes", "Local", "Resources", "The", "Work")
    assert all(spec.messages[name].startswith(begins) for name in named)
    references = spec.initiative["properties"]["policyDefinitions"]
    assert {one["policyDefinitionId"].rsplit("/", 1)[-1] for one in references} == set(named)
    assert set(spec.effects) == set(spec.initiative["properties"]["parameters"])


def test_the_group_is_the_scope_unless_the_subscription_is_asked_for() -> None:
    assert made().scope == NAMES.group_id
    assert made(scope="subscription").scope == f"/subscriptions/{NAMES.subscription}"


@for_each(
    "written, where, words",
    [
        ({"effect": "refuse"}, "amlstack:azurePolicy.effect", "audit"),
        ({"efect": "deny"}, "amlstack:azurePolicy.efect", "Did you mean `effect`"),
        ({"scope": "tenant"}, "amlstack:azurePolicy.scope", "resourceGroup"),
        ({"exclude": ["ssh-close"]}, "amlstack:azurePolicy.exclude[0]", "Did you mean `ssh-closed`"),
        ({"exclude": ["ssh-closed", "job-timeout"]}, "amlstack:azurePolicy.exclude[1]", "never assigned: no alias"),
    ],
)
def test_a_faulty_setting_is_a_finding(tmp_path: Path, written: dict[str, Any], where: str, words: str) -> None:
    values = {"location": "westeurope", "workspace": "ws-team", "azurePolicy": written}
    (finding,) = declare(parse(values), on=TODAY, root=tmp_path).findings

    assert finding.where == where
    assert words in finding.message


@pytest.mark.engine
def test_a_stack_s_policies_are_made_changed_enforced_and_removed(
    stack: MakeStack, sandbox: Sandbox, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"ssh-closed": "mandatory"}))
    one = stack(PROJECT, sandbox=sandbox)
    one.set("amlstack:location", "westeurope").set("amlstack:workspace", "ws-policed").set("amlstack:protect", "false")
    one.set("amlstack:policies", str(rules)).set("amlstack:azurePolicy", {"effect": "audit"})
    cluster = {"name": "a100", "size": "Standard_NC96ads_A100_v4", "nodes": {"max": 2}, "single_node_jobs": True}
    one.set("amlstack:clusters", [cluster])

    first = one.up().ok()
    created = [step.type.rsplit(":", 1)[-1] for step in first.done if ":authorization:" in step.type]
    assert created.count("PolicyDefinition") == 10
    assert {"PolicySetDefinition", "PolicyAssignment"} <= set(created)
    assert set(one.outputs()["azurePolicy"]["effects"].values()) == {"Audit", "Disabled"}

    # Another effect is an update of the assignment, and of nothing else.
    one.set("amlstack:azurePolicy", {"effect": "deny"})
    changed = one.up().ok()
    assert {urn.rsplit("::", 1)[-1]: ops for urn, ops in changed.ops.items() if ops != ("same",)} == {
        "assignment": ("update",)
    }

    # An exception lets it through the first two gates; Azure, whose exemptions are its own, refuses it.
    waiver = {"rule": "size-retired", "resource": "old", "owner": "o", "reason": "r", "expires": "2999-01-01"}
    rules.write_text(json.dumps({"ssh-closed": "mandatory", "exception-expired": {"exceptions": [waiver]}}))
    one.set("amlstack:clusters", [cluster, {**cluster, "name": "old", "size": "Standard_NC24rs_v3"}])
    refused = one.up().failed()
    assert 'Code="RequestDisallowedByPolicy"' in refused.output
    assert "A size must not be retired. [size-retired]" in refused.output

    one.destroy().ok()
    assert one.resources() == {}
