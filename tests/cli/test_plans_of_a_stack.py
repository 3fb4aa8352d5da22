"""`amlstack up --stack` shows operations, cost per hour and findings before it asks."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base import paths, pulumi_wire
from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from amlstack.cli import main, stack_files
from amlstack.cli.stack import bring_up, pulumi_stack, take_down
from amlstack.cli.stack.plan import StackPlan, cost_lines, costs_as_dict, costs_of
from amlstack.cli.stack.pulumi_stack import MADE_UP, StackFolder
from amlstack.cli.stack_files import State
from amlstack.engine import PASSPHRASE
from infra.settings import parse, stackfile

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Engine

SIZE = "Standard_ND96asr_v4"


def event(op: str, name: str, kind: str = "azure-native:storage:StorageAccount", **more: Any) -> dict[str, Any]:
    urn = f"urn:pulumi:dev::amlstack::{kind}::{name}"
    return {"resourcePreEvent": {"metadata": {"op": op, "urn": urn, "type": kind, **more}, "planning": True}}


def planned(*events: dict[str, Any]) -> StackPlan:
    plan = StackPlan()
    for one in events:
        plan.take(one)
    return plan


def test_each_operation_has_its_word_and_what_takes_something_away_comes_first() -> None:
    plan = planned(
        event("same", "same"),
        event("create", "new"),
        event("create", "clusters", "amlstack:infra:Clusters"),
        event("update", "edited", diffs=["tags"], detailedDiff={"tags.team": {}}),
        event("create-replacement", "moved", keys=["location"], diffs=["location", "tags"]),
        event("replace", "moved", keys=["location"], diffs=["location", "tags"]),
        event("delete-replaced", "moved"),
        event("delete", "old"),
    )
    assert list(plan.lines()) == [
        "deleted: StorageAccount old",
        "replaced: StorageAccount moved (location)",
        "updated in place: StorageAccount edited (tags.team)",
        "created: StorageAccount new",
    ]
    assert plan.counts() == "1 created, 1 updated in place, 1 replaced, 1 deleted"
    assert [step["operation"] for step in plan.as_list()] == ["created", "updated in place", "replaced", "deleted"]


def test_many_new_resources_are_counted_by_type_and_a_new_phase_begins_anew() -> None:
    plan = planned(*(event("create", str(number)) for number in range(20)))
    assert list(plan.lines()) == ["created: 20 resources: 20 StorageAccount"]
    plan.take({"preludeEvent": {}})
    assert plan.counts() == ""


def settings(*clusters: dict[str, Any]) -> Any:
    reading = parse({"location": "westeurope", "workspace": "mlws", "clusters": list(clusters)})
    assert reading.settings is not None, reading.findings
    return reading.settings


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """One size has a price of this month, as after `amlstack sizes --refresh`."""
    import dataclasses

    monkeypatch.setenv("AMLSTACK_TODAY", "2026-11-02")

    known = sizes.get
    price = Price(27.5, "westeurope", date(2026, 11, 1), "prices.azure.com")

    def get(name: str) -> Any:
        size = known(name)
        return dataclasses.replace(size, prices=(price,)) if size and name == SIZE else size

    monkeypatch.setattr(sizes, "get", get)


@pytest.mark.usefixtures("priced")
def test_the_cost_while_idle_is_that_of_the_nodes_that_stay() -> None:
    costs = costs_of(
        settings(
            {"name": "aaa", "size": SIZE, "nodes": {"min": 1, "max": 4}},
            {"name": "bbb", "size": SIZE, "nodes": {"max": 2}, "priority": "low_priority"},
        )
    )
    lines = list(cost_lines(costs))
    assert lines[:3] == [
        "while idle: 27.50 USD per hour for nodes",
        "at most: 165.00 USD per hour for nodes",
        "prices of westeurope, 2026-11, prices.azure.com",
    ]
    assert lines[3] == "low-priority nodes cost less than these prices of dedicated ones"
    assert costs_as_dict(costs)["most_usd_per_hour"] == 165.0


def test_one_price_list_of_one_region_is_named_once() -> None:
    sizes = ("Standard_NC40ads_H100_v5", "Standard_NC24ads_A100_v4")
    clusters = ({"name": f"gpu{i}", "size": size, "nodes": {"max": 1}} for i, size in enumerate(sizes))
    found = costs_of(settings(*clusters))
    lines = list(cost_lines(found))
    assert len(lines) == len(set(lines)) == 4


def test_a_price_is_that_of_the_cluster_s_region_and_says_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_TODAY", "2027-02-01")
    size, low = "Standard_ND96isr_H100_v5", "low_priority"
    here = {"name": "aaa", "size": size, "nodes": {"max": 2}, "location": "uksouth", "priority": low}
    elsewhere = {"name": "bbb", "size": size, "nodes": {"max": 1}}

    lines = list(cost_lines(costs_of(settings(here, elsewhere))))

    assert lines[1] == "at most: 176.98 USD per hour for nodes"  # 2 x 24.58 + 127.816
    assert lines[2] == "prices of uksouth, 2026-08, 5 months old, Azure's price list"
    assert lines[3] == "prices of westeurope, 2026-06, 7 months old, Azure's price list in Karpenter's copy"
    assert len(lines) == 5


def test_a_price_that_is_not_known_is_shown_as_no_number() -> None:
    costs = costs_of(settings({"name": "aaa", "size": "Standard_ND128isr_GB300_v6", "nodes": {"max": 2}}))
    idle, most, rest = cost_lines(costs)
    assert idle == "while idle: 0.00 USD per hour for nodes"
    assert most.startswith("at most: unknown for 2 nodes of Standard_ND128isr_GB300_v6: no price in the catalogue")
    assert "docs/how-to/azure.md" in rest
    assert costs_as_dict(costs)["most_usd_per_hour"] is None


def test_what_is_protected_is_named_with_the_ways_to_lift_it() -> None:
    urn = "urn:pulumi:dev::amlstack::azure-native:keyvault:Vault::key-vault"
    state = State(
        ({"urn": urn, "protect": True}, {"urn": "urn:a::b::c::d"}, {"urn": "x", "protect": True, "delete": True})
    )
    assert state.protected == (urn,)
    lines = list(take_down.protection_lines((urn,), "dev"))
    assert lines[0] == "1 resource is protected from deletion:"
    assert lines[1].strip() == "Vault key-vault"
    assert "amlstack:protect false --stack dev" in lines[2]
    assert "pulumi state unprotect" in lines[3]


@pytest.mark.parametrize(
    ("environment", "studio"),
    [("public", "ml.azure.com"), ("usgovernment", "ml.azure.us"), ("china", "studio.ml.azure.cn")],
)
def test_the_studio_is_that_of_the_stacks_cloud(environment: str, studio: str) -> None:
    arm = stack_files.client_of({"azure-native:environment": environment})
    outputs = {"workspace": {"id": "/w"}, "jobs": {"train": {"jobId": "/w/jobs/train-1"}}}
    assert list(bring_up.studio_lines(arm, outputs)) == [
        f"workspace: https://{studio}/?wsid=/w",
        f"job train: https://{studio}/runs/train-1?wsid=/w",
    ]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose stacks are the test's."""
    (tmp_path / "Pulumi.yaml").write_text("name: amlstack\n")
    monkeypatch.setattr(paths, "PROJECT", tmp_path)
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    return tmp_path


def stack(project: Path, name: str = "dev", **config: Any) -> None:
    values = {"amlstack:location": "westeurope", "amlstack:workspace": "mlws", **config}
    (project / f"Pulumi.{name}.yaml").write_text(json.dumps({"config": values}))


def test_a_stack_without_a_file_is_wrong_use_and_near_misses_are_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project, "production")
    assert main.main(["up", "--stack", "producton", "--preview"]) == 2
    assert "Did you mean `production`?" in capsys.readouterr().out


def test_region_size_tags_and_account_are_judged_before_an_engine_starts(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stack(
        project,
        **{
            "azure-native:subscriptionId": "mine",
            "amlstack:location": "westeuropa",
            "amlstack:tags": {"a/b": "c"},
            "amlstack:clusters": [{"name": "aaa", "size": "Standard_ND96asr_v5", "nodes": {"max": 2}}],
        },
    )
    monkeypatch.setattr("amlstack.engine.find", lambda: pytest.fail("an engine was looked for"))
    assert main.main(["up", "--stack", "dev", "--yes", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    places = {
        finding["where"].removeprefix("amlstack:") for finding in answer["findings"] if finding["level"] == "error"
    }
    assert {"location", "clusters[0].size", "azure-native:subscriptionId", "azure-native:tenantId"} <= places
    assert any(place.startswith("tags") for place in places)
    assert answer["exit_status"] == 1
    assert "nothing was changed, and no engine was started" in answer["error"]


@pytest.mark.parametrize("verb", ["up", "down"])
def test_without_a_terminal_nothing_is_done_unless_it_is_agreed_to(
    verb: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(project)
    assert main.main([verb, "--stack", "dev"]) == 2
    out = capsys.readouterr().out
    assert "there is no terminal to ask on" in out
    assert "`--yes`" in out


def test_settings_of_the_sandbox_leave_out_the_account_and_what_is_encrypted() -> None:
    secret: list[str] = []
    value = {"a.b": [{"secure": "v1:x"}], "plain": 1}
    assert pulumi_stack._opened(value, "amlstack:tags", secret) == {"a.b": [pulumi_stack.MADE_UP], "plain": 1}
    assert secret == ['amlstack:tags["a.b"][0]']
    assert not pulumi_stack._is_ours("azure-native:clientSecret")
    assert not pulumi_stack._is_ours("azure-native:config:subscriptionId")
    assert not pulumi_stack._is_ours("amlstack:armEndpoint")
    assert pulumi_stack._is_ours("azure-native:location")


def test_the_module_of_paths_names_this_project() -> None:
    assert stack_files.project_name() == "amlstack"


@pytest.mark.engine
def test_a_state_is_copied_with_a_made_up_value_for_each_secret_and_without_the_key_of_the_others(
    engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "config:\n  amlstack:location: westeurope\n  azure-native:tenantId: theirs\n"
        "  amlstack:secrets:\n    token: {secure: AAAA}\n"
    )
    here = StackFolder(tmp_path / "copy", "dev")
    here.backend.mkdir(parents=True)
    env = {**os.environ, "PATH": os.pathsep.join([*map(str, engine.folders), os.environ["PATH"]])}
    env |= {"PULUMI_BACKEND_URL": f"file://{here.backend}?metadata=skip", "PULUMI_HOME": str(tmp_path / "home")}
    env |= {"PULUMI_CONFIG_PASSPHRASE": PASSPHRASE, "PULUMI_SKIP_UPDATE_CHECK": "1"}
    secret = {pulumi_wire.SIGNATURE: pulumi_wire.SECRET, "ciphertext": "of a vault that nobody here may ask"}
    urn, kind = "urn:pulumi:dev::amlstack::pulumi:pulumi:Stack::amlstack-dev", "pulumi:pulumi:Stack"
    resource = {"urn": urn, "type": kind, "outputs": {"shown": "plain", "hidden": [{"deep": secret}]}}
    vault = {"type": "cloud", "state": {"url": "azurekeyvault://theirs/keys/k", "encryptedkey": "QQ=="}}

    made_up = here.prepare(stackfile.read(tmp_path / "Pulumi.dev.yaml")[0], env)
    here.restore({"version": 3, "deployment": {"secrets_providers": vault, "resources": [resource]}}, env)

    command = ["pulumi", "stack", "export", "--show-secrets", "--stack", "dev"]
    done = subprocess.run(command, cwd=here.folder, env=env, capture_output=True, text=True, check=True)
    (kept,) = json.loads(done.stdout)["deployment"]["resources"]
    assert kept["outputs"]["shown"] == "plain"
    assert json.loads(kept["outputs"]["hidden"][0]["deep"]["plaintext"]) == MADE_UP
    assert made_up == ("amlstack:secrets.token",)
    assert "theirs" not in here.config.read_text() + json.dumps(json.loads(done.stdout)["deployment"])
