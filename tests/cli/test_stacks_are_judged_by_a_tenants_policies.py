"""`amlstack check --against`: a stack, as its program registers it, before the policies of a tenant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main
from amlstack.sandbox.protocol import entra
from infra.settings.model.stack import stack_file_schema
from policies.tenant import verdicts
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Sandbox

STACK = """\
config:
  azure-native:subscriptionId: 11111111-2222-3333-4444-555555555555
  azure-native:tenantId: 66666666-2222-3333-4444-555555555555
  amlstack:workspace:
    name: aml-prod
    public_network: true
  amlstack:location: westeurope
  amlstack:tags: {team: vision}
  amlstack:clusters:
    - name: big
      size: Standard_ND96isr_H100_v5
      nodes: {min: 0, max: 2}
    - name: small
      size: Standard_ND96isr_H100_v5
      nodes: {min: 0, max: 2, idle: PT600S}
"""
COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
ONLY_SUBNETS: dict[str, Any] = {
    "name": "subnets",
    "properties": {
        "displayName": "Clusters lie in a subnet",
        "mode": "All",
        "parameters": {"effect": {"type": "String", "defaultValue": "Audit"}},
        "policyRule": {
            "if": {
                "allOf": [
                    {"field": "type", "equals": COMPUTES},
                    {"value": f"[empty(field('{COMPUTES}/subnet.id'))]", "equals": True},
                ]
            },
            "then": {"effect": "[parameters('effect')]"},
        },
    },
}
SET: dict[str, Any] = {
    "name": "ours",
    "properties": {
        "displayName": "Our guardrails",
        "parameters": {"how": {"type": "String", "defaultValue": "Deny"}},
        "policyDefinitions": [
            {
                "policyDefinitionId": "/providers/x/policyDefinitions/subnets",
                "policyDefinitionReferenceId": "net",
                "parameters": {"effect": {"value": "[parameters('how')]"}},
            },
            {"policyDefinitionId": "/providers/x/policyDefinitions/438c38d2-3772-465a-a9cc-7a6666a275ce"},
            {"policyDefinitionId": "/providers/x/policyDefinitions/nobody-has-it"},
        ],
    },
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMLSTACK_TODAY", "2026-11-22")
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    return tmp_path


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = main(["check", "--stack", "prod", "--json", *(part for word in words for part in ("--against", word))])
    return code, json.loads(capsys.readouterr().out)


def by_definition(answer: Any, name: int = 0) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in answer["against"][name]["verdicts"]:
        found.setdefault(one["definition"][:8], []).append(one)
    return found


def test_the_landing_zones_guardrails_say_who_refuses_changes_and_reports_what(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, answer = asked(capsys, "alz")
    assert code == 1
    found = by_definition(answer)
    assert len(found) == 14
    assert [one["ruling"] for one in found["e413671a"]] == ["denies"]  # the legacy mode, of every v2 workspace
    assert found["a10ee784"][0]["changes"][0]["after"] == "Disabled"
    assert [one["ruling"] for one in found["7804b5c7"]] == ["audits", "audits"]
    assert {one["resource"].rpartition("/")[2] for one in found["7804b5c7"]} == {"big", "small"}
    assert [one["ruling"] for one in found["e96a9a5f"]] == ["passes"]
    assert found["5853517a"][0]["ruling"] == "notJudged"


def test_findings_stand_at_the_setting_that_answers_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--stack", "prod", "--against", "alz"]) == 1
    out = capsys.readouterr().out
    assert "Pulumi.prod.yaml:6:5: warning: workspaces aml-prod [tenant-modifies]" in out
    assert "Pulumi.prod.yaml:10:7: warning: computes big, computes small [tenant-audits]" in out
    assert "`amlstack:clusters[].subnet`: Name the subnet," in out
    assert "alz: " in out


def test_an_exemption_takes_a_definition_out(capsys: pytest.CaptureFixture[str]) -> None:
    exempt = [word for one in ("e413671a", "5f0c7d88") for word in ("--exempt", one)]
    assert main(["check", "--stack", "prod", "--against", "alz", *exempt]) == 0
    assert "[tenant-exempt]" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["e4136", "12345678"])
def test_an_exemption_that_names_no_definition_is_a_warning(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--stack", "prod", "--against", "alz", "--exempt", word]) == 1
    out = capsys.readouterr().out
    assert "--exempt [tenant-exempt-unused]" in out
    assert f"No definition is named by `{word}`, and nothing is exempt by it" in out


def test_a_policy_on_the_region_is_answered_by_the_stacks_location() -> None:
    for kind in ("Microsoft.MachineLearningServices/workspaces", "Microsoft.Storage/storageAccounts"):
        found = verdicts.answer("location", kind)
        assert found is not None
        assert found.setting == "location"


def test_a_tag_that_a_tenant_adds_is_answered_by_the_stacks_tags(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = {"operation": "addOrReplace", "field": "tags['cost']", "value": "ml"}
    rule = {
        "if": {"field": "tags['cost']", "exists": False},
        "then": {"effect": "modify", "details": {"operations": [change]}},
    }
    definition = {"properties": {"displayName": "Cost centre", "mode": "Indexed", "policyRule": rule}}
    (here / "tag.json").write_text(json.dumps(definition))
    assert main(["check", "--stack", "prod", "--against", "tag.json"]) == 0
    out = capsys.readouterr().out
    assert "workspaces aml-prod [tenant-modifies]" in out
    assert "`amlstack:tags`: Write the tag there" in out
    assert "its mode is `Indexed`" in out, "whether clusters are asked is not known"
    assert "resourceGroups" not in out
    (here / "Pulumi.prod.yaml").write_text(
        (here / "Pulumi.prod.yaml").read_text().replace("{team:", "{cost: ai, team:")
    )
    assert main(["check", "--stack", "prod", "--against", "tag.json"]) == 0
    assert "tenant-" not in capsys.readouterr().out


def test_benchmarks_report_and_refuse_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = asked(capsys, "mcsb", "mcsb-v1", "cis")
    assert code == 0
    assert answer["ok"]
    assert [one["name"] for one in answer["against"]] == ["mcsb", "mcsb-v1", "cis"]
    assert [one["ruling"] for one in by_definition(answer, 2)["438c38d2"]] == ["audits"]


def test_a_duration_that_the_landing_zones_own_definition_cannot_read_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, answer = asked(capsys, "alz-custom")
    scale = by_definition(answer)["Deny-Mac"]
    unread = [one for one in scale if "PT10M" in [each["value"] for each in one["seen"]]]
    assert [one["resource"].rpartition("/")[2] for one in unread] == ["big"]


def test_files_are_evaluated_and_what_no_file_has_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "definition.json").write_text(json.dumps(ONLY_SUBNETS))
    (here / "set.json").write_text(json.dumps(SET))
    code, answer = asked(capsys, "definition.json", "set.json")
    assert code == 1
    rulings = {one["definition"].rpartition("/")[2]: one["ruling"] for one in answer["against"][0]["verdicts"]}
    assert rulings == {
        "subnets": "denies",
        "438c38d2-3772-465a-a9cc-7a6666a275ce": "audits",  # as we state it
        "nobody-has-it": "open",
    }
    (unknown,) = (one for one in answer["findings"] if one["code"] == "tenant-unknown")
    assert "no file has its definition" in unknown["seen"]


@pytest.mark.parametrize(
    ("assignment", "ruling"),
    [
        ({}, "denies"),
        ({"parameters": {"how": {"value": "Audit"}}}, "audits"),
        ({"overrides": [{"kind": "policyEffect", "value": "Disabled", "selectors": [
            {"kind": "policyDefinitionReferenceId", "in": ["net"]}]}]}, "passes"),
        ({"overrides": [{"kind": "policyEffect", "value": "Disabled", "selectors": [
            {"kind": "policyDefinitionReferenceId", "in": ["other"]}]}]}, "denies"),
        ({"scope": "/subscriptions/11111111-2222-3333-4444-555555555555"}, "denies"),
        ({"scope": "/subscriptions/99999999-2222-3333-4444-555555555555"}, "notJudged"),
        ({"scope": "/providers/Microsoft.Management/managementGroups/landing-zones"}, "denies"),
        ({"notScopes": ["/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/rg-amlstack-prod"]},
         "notJudged"),
        ({"resourceSelectors": [{"selectors": [{"kind": "resourceLocation", "notIn": ["westeurope"]}]}]}, "passes"),
    ],
)  # fmt: skip
def test_an_assignment_decides_parameters_effects_and_scope(
    here: Path, capsys: pytest.CaptureFixture[str], assignment: dict[str, Any], ruling: str
) -> None:
    given = {
        "policyDefinitionId": "/providers/x/policySetDefinitions/ours",
        "displayName": "Landing zones",
        **assignment,
    }
    whole = {"value": [ONLY_SUBNETS, SET, {"name": "assigned", "properties": given}]}
    (here / "all.json").write_text(json.dumps(whole))
    _, answer = asked(capsys, "all.json")
    assert {one["ruling"] for one in by_definition(answer)["/provide"] if "subnets" in one["definition"]} == {ruling}


def test_an_assignment_that_is_not_enforced_refuses_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"policyDefinitionId": "x/policySetDefinitions/ours", "enforcementMode": "DoNotEnforce"}
    (here / "all.json").write_text(json.dumps([ONLY_SUBNETS, SET, {"name": "assigned", "properties": given}]))
    code, answer = asked(capsys, "all.json")
    assert code == 0
    (denies,) = (one for one in answer["findings"] if one["code"] == "tenant-denies")
    assert denies["level"] == "warning"
    assert "is not enforced" in denies["rule"]


def test_an_exemption_among_the_files_counts(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"policyDefinitionId": "x/policySetDefinitions/ours"}
    waived = {"exemptionCategory": "Waiver", "policyAssignmentId": "x/policyAssignments/assigned",
              "policyDefinitionReferenceIds": ["NET"], "displayName": "Until the network is there"}  # fmt: skip
    files = [ONLY_SUBNETS, SET, {"name": "assigned", "properties": given}, {"name": "w", "properties": waived}]
    (here / "all.json").write_text(json.dumps(files))
    code, answer = asked(capsys, "all.json")
    assert code == 0
    assert any(one["code"] == "tenant-exempt" and "Until the network" in one["seen"] for one in answer["findings"])


def test_a_template_that_deploys_a_definition_is_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps(ONLY_SUBNETS).replace("[empty(", "[[empty(").replace("[parameters(", "[[parameters(")
    template = {
        "$schema": "https://schema.management.azure.com/schemas/2019-08-01/managementGroupDeploymentTemplate.json#",
        "resources": [json.loads(text)],
    }
    (here / "template.json").write_text(json.dumps(template))
    _, answer = asked(capsys, "template.json")
    assert {one["ruling"] for one in answer["against"][0]["verdicts"]} == {"audits"}


@pytest.mark.parametrize(
    ("word", "text", "says"),
    [
        ("alzz", None, "Did you mean `alz`"),
        ("none.json", None, "does not exist"),
        ("bad.json", "{", "is no JSON"),
        ("other.json", '{"a": 1}', "holds no definition"),
        ("empty", "folder", "holds no definition"),
    ],
)
def test_what_is_no_policy_is_a_finding(
    here: Path, capsys: pytest.CaptureFixture[str], word: str, text: str | None, says: str
) -> None:
    if text == "folder":
        (here / word).mkdir()
    elif text is not None:
        (here / word).write_text(text)
    code, answer = asked(capsys, word)
    assert code == 1
    (finding,) = answer["findings"]
    assert finding["code"] == "tenant-policy-file"
    assert says in finding["message"]


def test_wrong_settings_are_shown_and_no_policy_is_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "Pulumi.prod.yaml").write_text(STACK.replace("westeurope", "7"))
    code, answer = asked(capsys, "alz")
    assert code == 1
    assert answer["against"] == []
    found = {one["code"]: one for one in answer["findings"]}
    assert "tenant-not-asked" in found
    assert "`7`" in found["setting-value"]["seen"]
    (here / "Pulumi.prod.yaml").write_text(STACK + STACK.replace("config:\n", ""))
    code, answer = asked(capsys, "alz")
    assert code == 1
    assert {one["code"] for one in answer["findings"]} == {"tenant-not-asked", "stack-file"}


def test_job_files_are_checked_in_a_run_of_their_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text("command: x\n")
    assert main(["check", "job.yml", "--against", "alz"]) == 2
    assert "job.yml" in capsys.readouterr().err
    assert main(["check"]) == 2


def test_every_setting_that_an_answer_names_exists() -> None:
    schema = stack_file_schema()

    def there(at: Any, path: list[str]) -> bool:
        if "$ref" in at:
            return there(schema["$defs"][at["$ref"].rpartition("/")[2]], path)
        if not path:
            return True
        name, _, every = path[0].partition("[")
        inner = at.get("properties", {})
        if name not in inner:
            return any(there(one, path) for one in (*at.get("anyOf", ()), *([at["else"]] if "else" in at else ())))
        return there(inner[name].get("items", inner[name]) if every else inner[name], path[1:])

    settings = schema["properties"]["config"]["properties"]
    root = {"properties": {key.removeprefix("amlstack:"): one for key, one in settings.items()}}
    assert [one for one in sorted(verdicts.settings()) if not there(root, one.split("."))] == []
    assert not there(root, ["workspace", "none"])


ELSEWHERE = "/subscriptions/aaaaaaaa-2222-3333-4444-555555555555/resourceGroups/rg-shared"


def test_of_a_workspace_that_exists_only_what_is_put_into_it_is_judged(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    existing = f"existing: {ELSEWHERE}/providers/Microsoft.MachineLearningServices/workspaces/shared"
    own = "name: aml-prod\n    public_network: true"
    (here / "Pulumi.prod.yaml").write_text(STACK.replace(own, existing))
    code, answer = asked(capsys, "alz")
    assert code == 0
    judged = {one["resource"] for one in answer["against"][0]["verdicts"] if one["resource"]}
    place = f"{ELSEWHERE}/providers/Microsoft.MachineLearningServices/workspaces/shared/computes"
    assert judged == {f"{place}/big", f"{place}/small"}


def write_rule_on_the_groups_tag(here: Path, group: str, subscription: str) -> None:
    """A policy that writes the group's tag `cost` on each resource, and a stack with ``cost: ai`` in a group."""
    tag = "[resourceGroup().tags['cost']]"
    change = {"operation": "addOrReplace", "field": "tags['cost']", "value": tag}
    rule = {
        "if": {"allOf": [{"field": "tags['cost']", "notEquals": tag}, {"value": tag, "notEquals": ""}]},
        "then": {"effect": "modify", "details": {"operations": [change]}},
    }
    definition = {"properties": {"displayName": "Cost centre of the group", "mode": "Indexed", "policyRule": rule}}
    (here / "tag.json").write_text(json.dumps(definition))
    written = f"amlstack:tags: {{cost: ai}}\n  amlstack:resource_group: {group}"
    stack = STACK.replace("amlstack:tags: {team: vision}", written)
    (here / "Pulumi.prod.yaml").write_text(stack.replace("11111111-2222-3333-4444-555555555555", subscription))


@pytest.mark.parametrize("group", ["rg-team", "{existing: rg-team}"])
def test_the_tags_of_a_group_that_exists_are_azures_to_know(
    here: Path, capsys: pytest.CaptureFixture[str], group: str
) -> None:
    write_rule_on_the_groups_tag(here, group, entra.SUBSCRIPTION)
    code, answer = asked(capsys, "tag.json")
    assert code == 0
    (judged,) = answer["against"]
    assert {one["ruling"] for one in judged["verdicts"]} == ({"open"} if "existing" in group else {"passes"})
    assert all("the resource group" in one["why"] for one in judged["verdicts"] if "existing" in group)
    assert not [one for one in judged["verdicts"] if str(one["resource"]).endswith("/resourceGroups/rg-team")]


def test_the_tags_of_a_group_that_exists_are_read_on_request(
    here: Path, capsys: pytest.CaptureFixture[str], sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AZURE_TENANT_ID", entra.TENANT)
    write_rule_on_the_groups_tag(here, "{existing: rg-vended}", entra.SUBSCRIPTION)
    file = here / "Pulumi.prod.yaml"
    file.write_text(file.read_text().replace("  azure-native:tenantId: 66666666-2222-3333-4444-555555555555\n", ""))
    words = ["check", "--stack", "prod", "--json", "--against", "tag.json", "--read-group"]

    main(words)
    missing = json.loads(capsys.readouterr().out)
    assert "There is no such resource group" in json.dumps(missing["findings"])
    assert {one["ruling"] for one in missing["against"][0]["verdicts"]} == {"open"}

    body = {"location": "westeurope", "tags": {"cost": "vision"}}
    Arm(sandbox.endpoint).put(f"/subscriptions/{entra.SUBSCRIPTION}/resourceGroups/rg-vended", body)
    main(words)
    (judged,) = json.loads(capsys.readouterr().out)["against"]
    assert "modifies" in {one["ruling"] for one in judged["verdicts"]}
    assert not [one for one in judged["verdicts"] if "the resource group" in (one["why"] or "")]
    assert {change["after"] for one in judged["verdicts"] for change in one["changes"]} == {"vision"}


def test_nothing_of_a_check_stays_in_the_sdk(capsys: pytest.CaptureFixture[str]) -> None:
    from pulumi.runtime import settings

    before = (settings.get_stack(), settings.get_project(), settings.get_monitor(), settings.is_dry_run())
    first, second = asked(capsys, "alz"), asked(capsys, "alz")
    assert first == second
    after = (settings.get_stack(), settings.get_project(), settings.get_monitor(), settings.is_dry_run())
    assert after == before


def test_private_endpoints_of_the_stack_are_connections_of_what_they_lead_to(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, without = asked(capsys, "mcsb")
    vnet = "{address_space: [10.0.0.0/16], compute: 10.0.0.0/20, endpoints: 10.0.16.0/24}"
    text = STACK.replace("public_network: true", f"public_network: false\n    network: {{vnet: {vnet}}}")
    (here / "Pulumi.prod.yaml").write_text(text)
    _, answer = asked(capsys, "mcsb")
    before, after = by_definition(without), by_definition(answer)
    linked = ("45e05259", "6edd7eda", "e8eef0a8")  # workspace, storage, registry
    assert {before[one][0]["ruling"] for one in linked} == {"audits", "auditIfNotExists"}
    assert {after[one][0]["ruling"] for one in linked} == {"passes"}
    assert after["7804b5c7"][0]["ruling"] == "passes"  # the clusters' subnet


def test_a_managed_network_is_seen_as_a_new_workspace_gets_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = STACK.replace("public_network: true", "public_network: false\n    network: {isolation: only_approved}")
    (here / "Pulumi.prod.yaml").write_text(text)
    _, answer = asked(capsys, "mcsb")
    (seen,) = by_definition(answer)["6ddb1705"][0]["seen"]
    assert seen["value"] == "AllowOnlyApprovedOutbound"


DEFAULTS = """\
config:
  azure-native:subscriptionId: 11111111-2222-3333-4444-555555555555
  azure-native:tenantId: 66666666-2222-3333-4444-555555555555
  amlstack:workspace: aml-prod
  amlstack:location: westeurope
  amlstack:clusters:
    - name: big
      size: Standard_ND96isr_H100_v5
      nodes: {min: 0, max: 2}
"""


def test_the_default_stack_is_refused_for_what_is_asked_of_no_v2_workspace_and_for_nothing_else(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "Pulumi.prod.yaml").write_text(DEFAULTS)
    _, answer = asked(capsys, "alz")
    rulings = {one: {each["ruling"] for each in found} for one, found in by_definition(answer).items()}
    assert {one for one, found in rulings.items() if "denies" in found} == {"e413671a"}  # the legacy mode
    assert not {one for one, found in rulings.items() if found & {"modifies", "open"}}
    assert main(["check", "--stack", "prod", "--against", "alz", "--exempt", "e413671a"]) == 0


def test_a_container_of_a_datastore_is_judged_as_its_own_type(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "Pulumi.prod.yaml").write_text(f"{STACK}  amlstack:datastores:\n    - {{name: own, container: results}}\n")
    kind = "Microsoft.Storage/storageAccounts/blobServices/containers"
    rule = {"if": {"field": "type", "equals": kind}, "then": {"effect": "deny"}}
    (here / "none.json").write_text(json.dumps({"name": "n", "properties": {"mode": "All", "policyRule": rule}}))
    code, found = asked(capsys, "none.json")
    assert code == 1
    assert "results" in json.dumps(found)
