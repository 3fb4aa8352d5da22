"""The exported definitions and the pack say the same about the same clusters."""

from __future__ import annotations

import functools
import json
import random
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.arm_language.effects import Ruling, assessed
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget, with_defaults
from amlstack.catalog import sizes
from amlstack.cli.main import main
from policies import azure_policy, config
from policies.checks.size import SINGLE_NODE_TAG
from policies.pack.server import Pack
from tests.support.policies.showing import TODAY, request, shown
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TYPE = "Microsoft.MachineLearningServices/workspaces/computes"
COMPUTE = "azure-native:machinelearningservices:Compute"
SAID: dict[str, Any] = {
    **dict.fromkeys(azure_policy.EXPRESSIBLE, "mandatory"),
    "region-approved": {"regions": ["West Europe", "eastus"]},
    "tags-required": {"required": ["team", "Owner"]},
    "node-ceiling": {"nodes": 4},
    "scale-to-zero": {"nodes": 1, "enforcementLevel": "mandatory"},
    "idle-time": {"minutes": 90, "enforcementLevel": "mandatory"},
    "cluster-budget": {"gpus": 16, "vcpus": 300},
}
IDLE = (
    "PT90M",
    "PT1H30M",
    "pt5400s",
    "PT90M0.5S",
    "PT5400.5S",
    "P1DT1S",
    "P1D",
    "PT2H",
    "PT120S",
    "P1W",
    "P1M",
    "1H",
    None,
)
"""Texts that Azure ML or another ISO parser takes as an idle time, some of them in the shape of others."""

BYTES, CONDITIONS, FUNCTIONS, EXPRESSION = 1_048_576, 4_096, 2_048, 81_920
"""Of one definition. Source: learn.microsoft.com, "Azure Policy limits" (includes/azure-policy-limits.md: 512 nested
conditionals, 20 parameters too) and "Policy rule limits" (definition-structure-policy-rule.md, 2025-03-19); read on
2026-11-24."""

PLACE = PolicyPlace()


def hits(definition: Mapping[str, Any], resource: Mapping[str, Any]) -> bool:
    """The verdict of Azure's language on a resource, with the parameters' defaults."""
    parameters = with_defaults(definition["properties"]["parameters"], {})
    assessment = assessed(definition["properties"]["policyRule"], parameters, PolicyTarget(TYPE, "", resource), PLACE)
    assert assessment.ruling in {Ruling.DENIES, Ruling.PASSES}, assessment
    return assessment.ruling is Ruling.DENIES


@functools.cache
def machine_sizes() -> list[str]:
    return [size.name for size in sizes.all_sizes() if size.gpus or size.fabric.rdma or size.retired]


def some_cluster(chance: random.Random) -> dict[str, Any]:
    """A cluster as anybody might write it."""
    names = machine_sizes()
    scale = {
        "minNodeCount": chance.choice([0, 1, 2, None]),
        "maxNodeCount": chance.choice([1, 2, 4, 5, 9, 40]),
        "nodeIdleTimeBeforeScaleDown": chance.choice(IDLE),
    }
    inner = {
        "vmSize": chance.choice([*names, *(name.upper() for name in names[:5]), "Standard_ND96isr_H100", "x"]),
        "scaleSettings": {key: value for key, value in scale.items() if value is not None},
        "enableNodePublicIp": chance.choice([True, False, None]),
        "remoteLoginPortPublicAccess": chance.choice(["Enabled", "Disabled", "disabled", "NotSpecified", None]),
        "subnet": chance.choice([{"id": "/subscriptions/s/x/subnets/n"}, {"id": ""}, {}, None]),
    }
    outer = {
        "location": chance.choice(["westeurope", "West Europe", "eastus", "EastUS", "southindia", "global"]),
        "identity": chance.choice(
            [{"type": kind} for kind in ("None", "SystemAssigned", "UserAssigned", "SystemAssigned,UserAssigned")]
            + [None]
        ),
        "tags": chance.choice(
            [
                None,
                {},
                {"team": "a"},
                {"TEAM": "a", "owner": "b"},
                {"team": "", "owner": "b"},
                {SINGLE_NODE_TAG: "true"},
                {SINGLE_NODE_TAG: "False"},
            ]
        ),
    }
    properties = {
        "computeType": chance.choice(["AmlCompute", "amlcompute", "AmlCompute", "ComputeInstance"]),
        "disableLocalAuth": chance.choice([True, False, None]),
        "properties": {key: value for key, value in inner.items() if value is not None},
    }
    properties = {key: value for key, value in properties.items() if value is not None}
    return {"properties": properties, **{key: value for key, value in outer.items() if value is not None}}


def exported() -> list[dict[str, Any]]:
    return azure_policy.definitions(config.read(SAID), on=TODAY, version="1.0.0")


def test_definitions_and_pack_agree_on_hundreds_of_clusters() -> None:
    chance = random.Random(20260801)
    pack, made = Pack("amlstack", "1.0.0", TODAY, SAID), exported()
    counts: dict[str, int] = {}
    for _ in range(600):
        resource = some_cluster(chance)
        of_pack = {code for _, code, _ in shown(pack.Analyze(request(COMPUTE, resource), None))}
        of_azure = {
            next(code for code in azure_policy.EXPRESSIBLE if one["name"].startswith(f"amlstack-{code}"))
            for one in made
            if hits(one, resource)
        }
        assert of_azure == of_pack & set(azure_policy.EXPRESSIBLE), resource
        for code in of_azure:
            counts[code] = counts.get(code, 0) + 1

    assert set(counts) == set(azure_policy.EXPRESSIBLE)
    assert min(counts.values()) > 2


@for_each("idle", ["PT5M5", "PT", "P", "PTXH", "P1M2D"])
def test_an_idle_time_that_is_no_duration_is_not_let_through(idle: str) -> None:
    (one,) = (one for one in exported() if one["name"] == "amlstack-idle-time")
    properties = {"computeType": "AmlCompute", "properties": {"scaleSettings": {"nodeIdleTimeBeforeScaleDown": idle}}}
    parameters = with_defaults(one["properties"]["parameters"], {})
    target = PolicyTarget(TYPE, "", {"properties": properties})
    found = assessed(one["properties"]["policyRule"], parameters, target, PLACE)
    assert found.ruling is Ruling.DENIES or found.outcome.failure, found


def test_definitions_keep_within_azures_limits() -> None:
    for one in exported():
        rule = one["properties"]["policyRule"]
        expressions = [text for text in texts(rule["if"]) if text.startswith("[")]
        assert len(json.dumps(one).encode()) < BYTES, one["name"]
        assert len(one["properties"]["displayName"]) <= 128, one["name"]
        assert len(one["properties"]["description"]) <= 512, one["name"]
        assert len(one["properties"]["parameters"]) <= 20
        assert json.dumps(rule["if"]).count('{"field"') + json.dumps(rule["if"]).count('{"value"') <= CONDITIONS
        assert all(len(text) <= EXPRESSION for text in expressions)
        assert sum(text.count("(") for text in expressions) <= FUNCTIONS
        assert nesting(rule["if"]) <= 512


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


def nesting(condition: Any) -> int:
    inner = [one for key in ("allOf", "anyOf") for one in condition.get(key, ())]
    return sum(map(nesting, inner), start=1) + (nesting(condition["not"]) if "not" in condition else 0)


def test_every_rule_is_exported_or_listed_with_its_reason() -> None:
    made = {one["name"] for one in exported()}

    for rule in config.ALL:
        there = any(name.startswith(f"amlstack-{rule.code}") for name in made)
        assert there is (rule.code not in azure_policy.NOT_EXPRESSIBLE), rule.code
    assert set(azure_policy.IN_PART) <= set(azure_policy.EXPRESSIBLE)


@pytest.mark.parametrize(("level", "effect"), [("mandatory", "Deny"), ("advisory", "Audit"), ("disabled", "Disabled")])
def test_levels_become_effects(level: str, effect: str) -> None:
    (one,) = (
        one
        for one in azure_policy.definitions(config.read({"ssh-closed": level}), on=TODAY, version="1.0.0")
        if one["name"] == "amlstack-ssh-closed"
    )

    assert one["properties"]["parameters"]["effect"]["defaultValue"] == effect


def test_sizes_are_retired_as_of_the_day() -> None:
    def gone(on: date) -> set[str]:
        made = azure_policy.definitions(config.read({}), on=on, version="1.0.0")
        (one,) = (one for one in made if one["name"] == "amlstack-size-retired")
        return set(one["properties"]["parameters"]["sizes"]["defaultValue"])

    assert gone(date(2025, 9, 30)) - gone(date(2025, 9, 29)) >= {"Standard_NC24rs_v3"}


def test_the_verb_writes_definitions_and_an_initiative_that_names_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMLSTACK_TODAY", TODAY.isoformat())
    chosen = tmp_path / "config.json"
    chosen.write_text(json.dumps(SAID))
    scope = "/subscriptions/00000000-0000-0000-0000-000000000000"

    assert main(["policy", "export", "--out", str(tmp_path), "--scope", scope, "--config", str(chosen)]) == 0

    files = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "definitions").iterdir()}
    initiative = json.loads((tmp_path / "initiative.json").read_text())["properties"]
    named = {one["policyDefinitionId"].rsplit("/", 1)[-1] for one in initiative["policyDefinitions"]}
    assert named == set(files) == {one["name"] for one in files.values()}
    assert all(one["policyDefinitionId"].startswith(scope) for one in initiative["policyDefinitions"])
    assert set(initiative["parameters"]) == {f"effect-{name}" for name in named}
    out = capsys.readouterr().out
    assert "job-timeout: no alias gives what a job says" in out


def test_the_verb_lists_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in rows] == [rule.code for rule in config.ALL]

    assert main(["policy", "list"]) == 0
    out = capsys.readouterr().out
    assert all(rule.title in out for rule in config.ALL)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is no JSON"), ('{"x": "mandatory"}', "no rule 'x'"), (None, "There is no file")]
)
def test_a_wrong_configuration_is_wrong_use(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text)

    assert main(["policy", "list", "--config", str(path)]) == 2
    assert message in capsys.readouterr().err
