"""An estate that another program made becomes a stack's own by an import: nothing of it changes, and it is edited."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base import paths
from amlstack.base.paths import PROJECT
from amlstack.cli.main import main
from amlstack.sandbox.protocol.entra import OTHER_SUBSCRIPTION
from tests.support.stack import estates
from tests.support.stack.small_jobs import IMAGE, SIZE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.harness import Stack
    from tests.support.running import MakeStack, Sandbox

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

FOREIGN = """\
import pulumi
from pulumi_azure_native import applicationinsights, keyvault, operationalinsights, resources, storage
from pulumi_azure_native import machinelearningservices as ml

group = resources.ResourceGroup("rg", resource_group_name="rg-grown", location="westeurope", tags={"since": "2023"})
place = {"resource_group_name": group.name, "location": "westeurope"}
account = storage.StorageAccount(
    "sa", account_name="stgrown2023", kind="StorageV2", sku={"name": "Standard_GRS"}, allow_blob_public_access=False,
    **place
)
vault = keyvault.Vault("kv", vault_name="kv-grown-2023", properties={
    "tenant_id": "0a3c1f6e-52b0-4f59-9d0e-7d1c5a4b2e10", "sku": {"family": "A", "name": "standard"},
    "enable_rbac_authorization": False, "access_policies": [],
}, **place)
logs = operationalinsights.Workspace("la", workspace_name="log-grown", retention_in_days=90, **place)
insights = applicationinsights.Component(
    "ai", resource_name_="appi-grown", kind="web", application_type="web", ingestion_mode="LogAnalytics",
    workspace_resource_id=logs.id, **place
)
workspace = ml.Workspace(
    "ws", workspace_name="mlw-grown", storage_account=account.id, key_vault=vault.id, application_insights=insights.id,
    identity={"type": "SystemAssigned"}, description="As it grew.", tags={"team": "vision"}, **place
)
for name, low, bare in (("cpu", 0, {}), ("gpu", 1, {"enable_node_public_ip": True, "isolated_network": False})):
    ml.Compute(
        name, compute_name=f"{name}-grown", workspace_name=workspace.name,
        properties={"compute_type": "AmlCompute", "properties": {
            "vm_size": "Standard_ND96asr_v4", "vm_priority": "LowPriority" if low else "Dedicated",
            "scale_settings": {"max_node_count": 4, "node_idle_time_before_scale_down": "PT120S"}, **bare,
        }}, **place
    )
"""


def test_what_another_program_made_is_imported_without_a_change_and_edited_in_place(
    stack: MakeStack, own_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(FOREIGN, sandbox=own_sandbox, name="foreign").up().ok()
    made = estates.bodies(own_sandbox.home)

    one = stack(PROJECT, sandbox=own_sandbox, name="vision")
    one.set("amlstack:location", "westeurope").set("amlstack:resource_group", "rg-grown")
    one.set("amlstack:workspace", "mlw-grown")
    for name, value in own_sandbox.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(paths, "PROJECT", one.folder)
    file = one.folder / "import.json"
    words = ["import-ids", "--stack", "vision", "--output", str(file)]

    # What there is differs from what the settings say: they are printed, and nothing is written.
    assert main(words) == 1
    assert not file.exists()
    settings: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    assert settings["amlstack:workspace"]["storage"] == {"name": "stgrown2023"}
    assert settings["amlstack:workspace"]["registry"] == {"absent": True}
    for key, value in settings.items():
        one.set(key, value, path=False)
    one.set(
        "amlstack:clusters[2]", {"name": "new", "size": "Standard_ND96asr_v4", "nodes": {"max": 1}, "identity": "none"}
    )
    assert main(words) == 0
    assert "cluster `new` is declared and not there: `up` creates it" in capsys.readouterr().err.replace("\n", " ")
    one.set("amlstack:clusters[2]", None)
    assert main(words) == 0
    wanted = json.loads(file.read_text())["resources"]
    born_with = "/datastores/", "/blobServices/", "/fileServices/"
    assert {each["id"] for each in wanted if "id" in each} == {
        key for key in made if not any(word in key for word in born_with) and key.count("/") > 2
    }

    one.pulumi("import", "--file", str(file), "--yes", "--protect=false", "--generate-code=false").ok()
    up = one.up().ok()
    changed = {step.name: step.op for step in up.planned if step.op != "same" and not step.type.startswith("pulumi:")}
    # The stack's id, guard and keeper are no resources of Azure.
    assert changed == {"stack": "create", "runs": "create", "keeper": "create"}, up.output
    assert one.refresh().ok().changes == {}
    assert estates.bodies(own_sandbox.home) == made, "nothing of it was written"

    one.set("amlstack:clusters[0].nodes.max", 8).set("amlstack:workspace.description", "As it is meant.")
    edited = one.up().ok()
    assert {step.name: step.op for step in edited.planned if step.op != "same"} == {
        "workspace": "update",
        settings["amlstack:clusters"][0]["name"]: "update",
    }
    after = estates.bodies(own_sandbox.home)
    assert {key for key in made if after[key][0] != made[key][0]} == {
        key
        for key in made
        if key.endswith(("/workspaces/mlw-grown", f"/computes/{settings['amlstack:clusters'][0]['name']}"))
    }


NIGHTLY = """\
name: nightly
trigger: {type: cron, expression: "0 3 * * *"}
create_job: ./pipeline.yml
"""
PIPELINE = """\
type: pipeline
jobs:
  one: {command: echo nightly, environment: azureml:small, compute: azureml:busy}
"""


def test_clusters_and_schedules_in_another_subscription_are_imported_when_the_state_is_lost(
    stack: MakeStack,
    own_sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workspace = estates.make(own_sandbox, OTHER_SUBSCRIPTION)
    (tmp_path / "nightly.yml").write_text(NIGHTLY)
    (tmp_path / "pipeline.yml").write_text(PIPELINE)

    def declared() -> Stack:
        one = stack(PROJECT, sandbox=own_sandbox, name="team")
        one.set("amlstack:location", "westeurope").set("amlstack:workspace", {"existing": workspace})
        one.set("amlstack:clusters", [{"name": "busy", "size": SIZE, "nodes": {"max": 2}, "identity": "none"}])
        one.set("amlstack:environments", [{"name": "small", "image": IMAGE}])
        return one.set("amlstack:jobs", [str(tmp_path / "nightly.yml")])

    declared().up().ok()
    made = estates.bodies(own_sandbox.home)

    one = declared().set("amlstack:clusters[0].adopted", value=True)
    for name, value in own_sandbox.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(paths, "PROJECT", one.folder)
    file = one.folder / "import.json"
    assert main(["import-ids", "--stack", "team", "--output", str(file)]) == 0
    (provider,) = json.loads(file.read_text())["nameTable"].values()
    assert f"--target '{provider}'" in capsys.readouterr().err.replace("\n", " ")
    one.up("--target", provider).ok()
    one.pulumi("import", "--file", str(file), "--yes", "--protect=false", "--generate-code=false").ok()
    imported = {each["id"] for each in one.resources().values() if "id" in each}
    assert imported == {f"{workspace}/computes/busy", f"{workspace}/schedules/nightly"}

    up = one.up().ok()
    assert {step.name: step.op for step in up.planned if step.name in {"busy", "nightly"}} == dict.fromkeys(
        ("busy", "nightly"), "same"
    )
    assert estates.bodies(own_sandbox.home) == made
