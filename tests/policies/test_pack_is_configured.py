"""The pack's configuration: levels, values and exceptions, and what is wrong with them."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE

from policies import checks, config, gate
from policies.evaluation.subjects import Context
from policies.evaluation.verdicts import judge_resource
from tests.support.policies.pack_subjects import COMPUTE, cluster, pack, seen, stack_of
from tests.support.policies.showing import TODAY
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

RETIRED = cluster(vmSize="Standard_NC24rs_v3")
WAIVER = {"rule": "size-retired", "resource": "old-*", "owner": "hpc", "reason": "Draining", "expires": "2026-08-01"}


@pytest.mark.parametrize(
    ("name", "on", "expected"),
    [
        ("old-1", TODAY, ["advisory size-retired"]),
        ("old-1", date(2026, 8, 2), ["mandatory size-retired"]),
        ("new-1", TODAY, ["mandatory size-retired"]),
    ],
)
def test_an_exception_counts_on_its_resources_until_its_day(name: str, on: date, expected: list[str]) -> None:
    judge = pack({"exception-expired": {"exceptions": [WAIVER]}}, on)

    assert seen(judge, COMPUTE, RETIRED, name) == expected
    expired = [(level, code) for level, code, _ in stack_of(judge)]
    assert expired == ([("mandatory", "exception-expired")] if on > TODAY else [])


def test_an_exception_from_one_rule_is_none_from_another() -> None:
    other = {**WAIVER, "rule": "node-ceiling"}
    judge = pack({"node-ceiling": {"nodes": 1}, "exception-expired": {"exceptions": [other]}})

    assert seen(judge, COMPUTE, RETIRED, "old-1") == ["mandatory size-retired", "advisory node-ceiling"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**WAIVER, "owner": ""}, r"exceptions\[0\] lacks owner"),
        ({**WAIVER, "rule": "size-retird"}, "no rule 'size-retird'. Did you mean `size-retired`"),
        ({**WAIVER, "expires": "soon"}, "'soon' is no day"),
        ("size-retired", "lacks rule, resource"),
    ],
)
def test_an_exception_without_owner_reason_or_day_is_none(entry: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.read({"exception-expired": {"exceptions": [entry]}})


@for_each(
    "given, message",
    [
        ({"node-cieling": "mandatory"}, "no rule 'node-cieling'. Did you mean `node-ceiling`\\?"),
        ({"Size_Retired": "mandatory"}, "no rule 'Size_Retired'. Did you mean `size-retired`\\?"),
        ({"size-old": "mandatory"}, r"no rule 'size-old'. Did you mean .*`size-retired`"),
        ({"xyzzy": "mandatory"}, "no rule 'xyzzy'. `amlstack policy list` lists them"),
        ({"node-ceiling": "strict"}, "'strict' is no level"),
        ({"size-closed": {"subscription_created": "July"}}, "subscription_created is a day such as 2026-07-01, not"),
        ({"size-closed": {"subscription_created": 3}}, "subscription_created is a day such as 2026-07-01, not 3"),
        ({"node-ceiling": {"node": 4}}, "no setting node. It has nodes"),
        ({"ssh-closed": {"node": 4}}, "no setting node. It has none"),
        ({"ssh-closed": 4}, "write a level, or an object of settings"),
        ({"node-ceiling": {"nodes": "many"}}, 'nodes is a whole number, 0 or more, not "many"'),
        ({"node-ceiling": {"nodes": 1.5}}, "nodes is a whole number, 0 or more, not 1.5"),
        ({"node-ceiling": {"nodes": True}}, "nodes is a whole number"),
        ({"cost-per-job": {"usd": -1}}, "usd is a number, 0 or more, not -1"),
        ({"region-approved": {"regions": "westeurope"}}, "regions is a list of texts"),
        ({"tags-required": {"required": [1]}}, "required is a list of texts"),
        ({"tags-required": {"required": ["a"], "values": ["a"]}}, "values is an object of texts"),
        ({"exception-expired": {"exceptions": {"rule": "x"}}}, "exceptions is a list"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.read(given)


def test_a_disabled_rule_of_sizes_finds_nothing() -> None:
    given = config.read({"size-retired": "disabled"})

    assert judge_resource(COMPUTE, RETIRED, config.read({}), Context(TODAY)).findings != ()
    assert judge_resource(COMPUTE, RETIRED, given, Context(TODAY)).findings == ()


def test_what_is_built_into_a_pack_holds_where_a_team_s_own_file_does_not_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built_in, own = tmp_path / "built-in.json", tmp_path / "own.json"
    built_in.write_text(json.dumps({"node-ceiling": {"nodes": 3}, "ssh-closed": "mandatory"}))
    own.write_text(json.dumps({"ssh-closed": "disabled"}))
    monkeypatch.setattr(config, "BUILT_IN", built_in)

    read, wrong = gate.read(own)

    assert wrong == ()
    assert read.settings("node-ceiling")["nodes"] == 3
    assert not read.enabled("ssh-closed")


def test_a_disabled_rule_is_silent_about_unknown_values_too() -> None:
    quiet = {rule.code: "disabled" for rule in config.ALL if rule not in checks.SIZE_RULES}

    assert seen(pack(quiet), COMPUTE, cluster(scaleSettings=UNKNOWN_OBJECT_VALUE)) == []


@for_each(
    "given, expected",
    [
        ({}, ["advisory size-closed"]),
        ({"subscription_created": "2026-07-01"}, ["mandatory size-closed"]),
        ({"enforcementLevel": "advisory", "subscription_created": "2026-07-01"}, ["mandatory size-closed"]),
        ({"subscription_created": "2026-06-30"}, ["advisory size-closed"]),
        ({"enforcementLevel": "disabled", "subscription_created": "2026-07-01"}, []),
        ({"enforcementLevel": "mandatory"}, ["mandatory size-closed"]),
    ],
)
def test_a_closed_size_is_refused_in_a_subscription_of_after_its_closing(
    given: dict[str, Any], expected: list[str]
) -> None:
    judge = pack({"size-closed": given})

    assert seen(judge, COMPUTE, cluster(vmSize="Standard_DS3_v2")) == expected
