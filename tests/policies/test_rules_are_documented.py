"""Each rule says what it is for, and the page says the same."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from importlib.machinery import PathFinder
from pkgutil import iter_modules
from sys import stdlib_module_names

import pytest
import yaml
from pulumi.runtime.proto import analyzer_pb2 as proto

import policies
from amlstack.base.findings import Level
from amlstack.base.paths import PROJECT
from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from policies import checks
from policies.config import ALL
from policies.pack.server import REMEDIES, Pack
from tests.support.policies.showing import request, shown
from tests.support.rows import for_each

TODAY = date(2026, 8, 1)
RULES = ALL
PAGE = PROJECT / "docs/reference/policies.md"


def clusters(text: str) -> list[tuple[str, int, bool]]:
    return [
        (one["size"], one.get("nodes", {}).get("max", 1), one.get("single_node_jobs", False))
        for one in yaml.safe_load(text)["clusters"]
    ]


@for_each("rule", RULES)
def test_a_rule_is_documented_in_full(rule: checks.Rule) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.code)
    assert rule.title.endswith(".")
    for text in (rule.words.what, rule.words.why):
        assert text.endswith(".")
        assert len(text) > 60
    assert f"### {rule.code}\n" in PAGE.read_text()


@pytest.mark.parametrize("rule", checks.SIZE_RULES)
def test_a_rule_refuses_its_example_and_no_rule_refuses_what_it_proposes_instead(rule: checks.Rule) -> None:
    def codes(text: str) -> set[str]:
        return {
            finding.code
            for size, nodes, single in clusters(text)
            for finding in checks.sizes_for(size, nodes=nodes, on=TODAY, single_node_jobs=single)
        }

    assert codes(rule.words.example) == {rule.code}
    assert codes(rule.words.instead) == set()


@for_each("rule", [rule for rule in checks.RULES if rule not in checks.SIZE_RULES])
def test_the_pack_refuses_a_rule_s_example_and_not_what_stands_instead(rule: checks.Rule, priced: None) -> None:
    config = {rule.code: {"enforcementLevel": "mandatory", **rule.words.sample}}

    def codes(text: str) -> set[str]:
        token = re.match(r"# ([\w:-]+)", text)
        assert token is not None
        pack, props = Pack("p", "1.0.0", TODAY, config), yaml.safe_load(text)
        found = shown(pack.Analyze(request(token[1], props), None))
        wire = request(token[1], props)
        resource = proto.AnalyzerResource(type=wire.type, urn=wire.urn, name=wire.name, properties=wire.properties)
        found += shown(pack.AnalyzeStack(proto.AnalyzeStackRequest(resources=[resource]), None))
        return {code for level, code, _ in found if level == "mandatory"}

    assert codes(rule.words.example) == {rule.code}
    assert codes(rule.words.instead) == set()


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """One size with the price that the examples speak of."""
    size = sizes.get("Standard_ND96isr_H100_v5")
    assert size is not None
    with_price = replace(size, prices=(Price(100.0, "westeurope", TODAY, "made up"),))
    known = {**sizes.by_lower_name(), size.name.lower(): with_price}
    monkeypatch.setattr(sizes, "by_lower_name", lambda: known)


def test_every_setting_is_documented() -> None:
    page = PAGE.read_text()

    for rule in ALL:
        section = page.partition(f"### {rule.code}\n")[2].partition("\n### ")[0]
        assert all(f"- `{setting.name}` ({setting.kind}): {setting.help}" in section for setting in rule.settings)
        assert bool(rule.words.fix) is (rule.code in REMEDIES)


def test_a_rule_is_mandatory_by_default_only_where_no_team_could_want_otherwise() -> None:
    needs_values = {rule.code for rule in checks.RULES if rule.settings and rule.level == "mandatory"}

    assert {rule.code for rule in checks.RULES if rule.level == "mandatory"} - needs_values == {
        *(rule.code for rule in checks.SIZE_RULES),
        "processes-beyond-gpus",
        "fabric-switched-off",
        "image-cannot-run-here",
    }


def test_findings_of_rules_refuse() -> None:
    found = checks.sizes_for("Standard_NC24r", nodes=1, on=TODAY) + checks.sizes_for("x", nodes=1, on=TODAY)

    assert {finding.level for finding in found} == {Level.ERROR}
    assert {finding.code for finding in found} == {rule.code for rule in checks.SIZE_RULES}


def test_no_module_of_the_pack_shadows_another_when_its_folder_comes_first_on_the_path() -> None:
    names = {found.name for found in iter_modules(policies.__path__)} - {"__main__"}
    ours = {"amlstack", "amlnode", "infra", "jobs", "policies"}
    elsewhere = {name for name in names if PathFinder.find_spec(name) is not None}

    assert not names & (stdlib_module_names | ours)
    assert not elsewhere


def test_the_manifest_of_the_directory_pack_uses_the_project_s_environment() -> None:
    manifest = yaml.safe_load((PROJECT / "policies" / "PulumiPolicy.yaml").read_text())

    assert manifest["runtime"]["name"] == "python"
    assert manifest["runtime"]["options"] == {"virtualenv": "../.venv"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
