"""Storage, data and access that a stack declares: preview, up, no change, refresh, an edit of the data, destroy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.cli.stack import deployment
from amlstack.cli.stack.deployment import missing_resources
from amlstack.cli.stack_files import State
from amlstack.sandbox.server import daemon
from amlstack.sandbox.store.store import job_folder
from infra import resource_types
from tests.support.harness import ANALYZER
from tests.support.sandbox.sandbox_client import Arm
from tests.support.stack.small_jobs import job, runs_of, settings, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

ADA, TEAM = "9d3c5f0e-1a4b-4f7e-8a52-0d2f6b7c8e91", "1f0e2d3c-4b5a-4968-8776-655443322110"
READS = (
    "cat ${{inputs.words}}/word.txt ${{inputs.table}}/rows.csv ${{inputs.raw}};"
    " echo trained > ${{outputs.model}}/model.txt; echo best > ${{outputs.best}}/best.txt"
)
"""A job that trains on two data assets of this machine and one at an address, and writes to the stack's datastore."""


def test_datastores_data_and_access_live_with_the_stack(own: Own, tmp_path: Path) -> None:
    arm = Arm(daemon.find(own.home))
    account = f"{arm.make_group('lake')}/providers/Microsoft.Storage/storageAccounts/lake"
    body = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}
    arm.finish(arm.put(account, body))
    words, table = tmp_path / "words", tmp_path / "table"
    for folder in (words, table):
        folder.mkdir()
    (words / "word.txt").write_text("hello\n")
    (table / "rows.csv").write_text("1,2\n")
    (table / "MLTable").write_text("paths:\n- file: ./rows.csv\ntransformations: []\n")
    raw = "azureml://datastores/lake/paths/raw/two.txt"
    with store_of(own.home) as store:
        fresh = store.blobs.fresh()
        fresh.write_text("raw\n")
        store.blobs.put("lake", "corpora", "raw/two.txt", fresh)
    reads = job(
        tmp_path,
        "reads",
        READS,
        inputs={
            "words": {"type": "uri_folder", "path": "azureml:words@latest"},
            "table": {"type": "mltable", "path": "azureml:table@latest"},
            "raw": {"type": "uri_file", "path": "azureml:raw:2012"},
        },
        outputs={
            "model": {"type": "uri_folder", "path": "azureml://datastores/lake/paths/models/"},
            "best": {"type": "uri_folder", "path": "azureml://datastores/own/paths/best/"},
        },
    )
    stack = own.stack
    for key, value in settings("ws-names").items():
        stack.set(key, value, path=False)
    stack.set(
        "amlstack:datastores",
        [
            {"name": "lake", "account": account, "container": "corpora", "tags": {"team": "speech"}},
            {"name": "own", "container": "results"},
            {"name": "shared", "kind": "file", "container": "notes"},
        ],
    )
    data = [
        {"name": "words", "path": str(words), "datastore": "lake"},
        {"name": "table", "path": str(table), "type": "mltable"},
        {"name": "raw", "path": raw, "type": "uri_file", "version": "2012"},
    ]
    stack.set("amlstack:data", data)
    stack.set(
        "amlstack:access",
        [
            {"role": "AzureML Data Scientist", "principals": [{"id": TEAM, "type": "group"}]},
            {"role": "AzureML Compute Operator", "principals": [{"id": ADA, "type": "user"}]},
        ],
    )
    stack.set("amlstack:jobs", [{"file": str(reads), "wait": "completed"}])

    planned = stack.preview(policy_packs=[ANALYZER]).ok()
    assert planned.op("lake", "Datastore") == "create"
    made = {(step.name, step.type) for step in planned.planned if step.type in resource_types.HOLDS_DATA}
    assert made == {("results", resource_types.BLOB_CONTAINER), ("notes", resource_types.FILE_SHARE)}
    (version,) = (step for step in planned.planned if step.type == "amlstack:data:Version" and step.name == "words")
    (run,) = (step for step in planned.planned if step.type == "amlstack:jobs:Job")
    uri = run.new["inputs"]["body"]["properties"]["inputs"]["words"]["uri"]
    assert uri.endswith(f"/data/words/versions/{version.new['inputs']['version']}")

    stack.up(policy_packs=[ANALYZER]).ok()
    (first,) = runs_of(own.home, "reads")
    assert log(own, first.id) == "hello\n1,2\nraw\n"
    assert first.properties["inputs"]["words"]["uri"] == uri
    with store_of(own.home) as store:
        assert store.blobs.get("lake", "corpora", "models/model.txt") is not None
        (container,) = store.resources.of_type(CONTAINER)
        own_account = container.id.split("/")[-5]
        assert store.blobs.get(own_account, "results", "best/best.txt") is not None
        assert [row.id.split("/")[-5] for row in store.resources.of_type(SHARE)] == [own_account]
        granted = store.resources.of_type("Microsoft.Authorization/roleAssignments")
        (registered,) = (row for row in store.resources.of_type(DATA) if row.key.endswith(uri.lower()))
    assert {row.body["properties"].get("principalType") for row in granted} == {"ServicePrincipal", "Group", "User"}
    assert len([row for row in granted if row.id.startswith(account)]) == 1
    address = registered.body["properties"]["dataUri"]
    assert address.startswith("azureml://datastores/lake/paths/LocalUpload/")

    assert missing_resources(State(tuple(stack.state()["resources"])), own.home) == ()
    refreshed = stack.refresh().ok()
    # The workspace's managed network has a status of its own once it is provisioned, which it was before the first job.
    changed = {one.type for one in refreshed.done if one.op not in {"refresh", "same"}}
    assert changed <= {"azure-native:machinelearningservices:Workspace"}
    data[0]["description"] = "Greetings."
    stack.set("amlstack:data", data)
    labelled = stack.up(policy_packs=[ANALYZER]).ok()
    assert [(one.name, one.op) for one in labelled.planned if one.op != "same"] == [("words", "update")]

    (words / "word.txt").write_text("goodbye\n")
    edited = stack.up(policy_packs=[ANALYZER]).ok()
    assert (edited.op("words", "data:Version"), edited.op("reads", "jobs:Job")) == ("replace", "replace")
    assert edited.op("table", "data:Version") == "same"
    _, second = runs_of(own.home, "reads")
    assert log(own, second.id) == "goodbye\n1,2\nraw\n"
    with store_of(own.home) as store:
        assert store.resources.get(uri) is not None
    kept = [one.message for one in edited.diagnostics if "stays as long as its workspace" in one.message]
    assert len(kept) == 1
    assert kept[0].startswith("words:")

    stack.set("amlstack:data", [*data[:2], {**data[2], "path": f"{raw}.gz"}])
    refused = "\n".join(stack.preview().failed().errors)
    assert "raw:2012 is registered with dataUri" in refused
    assert "Write another `version`" in refused
    stack.set("amlstack:data", data)

    stack.set(
        "amlstack:datastores",
        [{"name": "lake", "account": account, "container": "corpora"}, {"name": "own", "container": "results"}],
    )
    fewer = stack.preview().ok()
    assert (fewer.op("notes", "FileShare"), fewer.op("results", "BlobContainer")) == ("delete", "same")
    state = State(tuple(stack.state()["resources"]))
    asked = deployment.losses_of({step.urn: step.op for step in fewer.planned}, state, own.home)
    assert asked == ("deletes FileShare notes (notes): what jobs have written to its datastore",)

    stack.destroy().ok()
    with store_of(own.home) as store:
        assert store.resources.get(account) is not None
        assert store.blobs.get("lake", "corpora", "raw/two.txt") is not None
        assert list(store.resources.of_type("Microsoft.Authorization/roleAssignments")) == []
        assert list(store.resources.of_type(CONTAINER)) == []
        assert store.blobs.get(own_account, "results", "best/best.txt") is None


DATA = "Microsoft.MachineLearningServices/workspaces/data/versions"
CONTAINER = "Microsoft.Storage/storageAccounts/blobServices/containers"
SHARE = "Microsoft.Storage/storageAccounts/fileServices/shares"


def log(own: Own, run: str) -> str:
    return (job_folder(own.home, run) / "user_logs" / "std_log_process_00.txt").read_text()
