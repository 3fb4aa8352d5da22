"""Datastores, data and access of the settings: what is wrong with them, and which of them a job means."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.paths import PROJECT
from infra import data, roles
from infra.declaration import Declaration, declare
from infra.settings import Datastore, parse
from jobs.local_data import all_inputs
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

ACCOUNT = (
    "/subscriptions/7d1c0a52-9a3e-4a3d-8a55-2f5d0c1b9e70/resourceGroups/lake/providers/Microsoft.Storage/"
    "storageAccounts/lake"
)
MACHINE_LEARNING = "/providers/Microsoft.MachineLearningServices/workspaces/mlw-a"
USER = {"id": "9d3c5f0e-1a4b-4f7e-8a52-0d2f6b7c8e91", "type": "user"}
STORE = {"name": "corpora", "account": ACCOUNT, "container": "corpora"}
PATH = "amlstack:data[0].path"
WORDS = {"name": "words", "path": "words"}
RAW = {"name": "raw", "path": "azureml://datastores/corpora/paths/raw/", "version": "1"}


def declared(folder: Path, job: dict[str, Any] | None = None, **settings: Any) -> Declaration:
    """The declarations of a stack with these settings, and a job of this form."""
    if job is not None:
        body = {
            "command": "true",
            "environment": "azureml:acpt-pytorch-2.8-cuda12.6:1",
            "compute": "azureml:gpu",
            **job,
        }
        (folder / "job.yml").write_text(yaml.safe_dump(body))
        settings["jobs"] = ["job.yml"]
    cluster = {"name": "gpu", "size": "Standard_ND96asr_v4", "nodes": {"max": 1}}
    values = {"location": "westeurope", "workspace": "aml-team", "clusters": [cluster], **settings}
    return declare(parse(values, root=folder), on=date(2026, 7, 1), root=folder)


def reading(path: str, kind: str = "uri_folder") -> dict[str, Any]:
    """A job with one input."""
    return {"inputs": {"x": {"type": kind, "path": path}}}


def found(made: Declaration) -> list[tuple[str, str, str]]:
    """Code, place and level of what concerns data and access."""
    codes = ("data", "datastore", "role", "mltable", "input", "setting")
    return [(one.code, one.where, one.level) for one in made.findings if one.code.startswith(codes)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two sets of data."""
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "word.txt").write_text("hello\n")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "MLTable").write_text("paths:\n- file: ./rows.csv\n- pattern: ./*.csv\n")
    return tmp_path


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"datastores": [STORE], "data": [RAW]}, []),
        ({"datastores": [{**STORE, "account_key": "x"}]}, [("setting-value", "amlstack:datastores[0]")]),
        ({"datastores": [{**STORE, "account": "Lake"}]}, [("setting-value", "amlstack:datastores[0].account")]),
        ({"datastores": [{"name": "own", "container": "corpora"}]}, []),
        ({"datastores": [{"name": "own", "kind": "file", "container": "notes"}]}, []),
        (
            {"datastores": [{"name": "own", "container": "Corpora_1"}]},
            [("datastore-container-name", "amlstack:datastores[0].container")],
        ),
        (
            {"datastores": [{"name": "own", "kind": "adls_gen2", "container": "corpora"}]},
            [("datastore-without-namespace", "amlstack:datastores[0].kind")],
        ),
        ({"datastores": [STORE, STORE]}, [("setting-twice", "amlstack:datastores[1]")]),
        ({"datastores": [{**STORE, "name": "workspaceblobstore"}]}, [("datastore-own", "amlstack:datastores[0].name")]),
        ({"data": [{"name": "x", "path": "./words", "version": "1"}]}, [("setting-value", "amlstack:data[0]")]),
        ({"data": [{**RAW, "version": None}]}, [("setting-value", "amlstack:data[0]")]),
        ({"data": [{**RAW, "datastore": "corpora"}]}, [("setting-value", "amlstack:data[0]")]),
        ({"data": [RAW, {**RAW, "version": "2"}]}, []),
        ({"data": [RAW, RAW]}, [("setting-twice", "amlstack:data[1]")]),
        ({"data": [{"name": "x", "path": "./wrods"}]}, [("input-path-missing", PATH)]),
        ({"data": [{"name": "x", "path": "./words", "type": "uri_file"}]}, [("input-path-kind", PATH)]),
        ({"data": [{"name": "x", "path": "./words", "type": "mltable"}]}, [("mltable-missing", PATH)]),
        (
            {"datastores": [STORE], "data": [{"name": "x", "path": "./words", "datastore": "corpera"}]},
            [("datastore-unknown", "amlstack:data[0].datastore")],
        ),
        (
            {"datastores": [STORE], "data": [{**RAW, "path": "azureml://datastores/corpra/paths/raw/"}]},
            [("datastore-unknown", PATH)],
        ),
        ({"access": [{"role": "azureml data scientist", "principals": [USER]}]}, []),
        (
            {"access": [{"role": "AzureML Data Scientists", "principals": [USER]}]},
            [("role-unknown", "amlstack:access[0].role")],
        ),
        (
            {"access": [{"role": "Reader", "principals": [USER, {**USER, "id": USER["id"].upper()}]}]},
            [("setting-twice", "amlstack:access[0].principals[1]")],
        ),
        (
            {"access": [{"role": "Reader", "principals": [{"id": "ada@contoso.com", "type": "user"}]}]},
            [("setting-value", "amlstack:access[0].principals[0].id")],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_settings_is_found_at_its_place(
    project: Path, settings: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert [one[:2] for one in found(declared(project, **settings))] == expected


@pytest.mark.parametrize(
    "workspace",
    [
        {"existing": ACCOUNT.partition("/providers/")[0] + MACHINE_LEARNING},
        {"name": "aml-team", "storage": {"existing": ACCOUNT}},
        {"name": "aml-team", "adopted": True},
    ],
)
@pytest.mark.parametrize(("kind", "command"), [("blob", "container create"), ("file", "share-rm create")])
def test_a_container_in_an_account_that_the_stack_does_not_create_is_expected_there(
    project: Path, workspace: dict[str, Any], kind: str, command: str
) -> None:
    own = {"name": "own", "kind": kind, "container": "corpora"}
    made = declared(project, workspace=workspace, datastores=[own, {**STORE, "kind": kind}])
    (finding,) = (one for one in made.findings if one.code == "datastore-container-exists")
    assert (finding.level, finding.where) == ("info", "amlstack:datastores[0].container")
    assert f"az storage {command} " in finding.remedy
    assert made.ok


def test_a_key_is_refused_with_the_reason(project: Path) -> None:
    made = declared(project, datastores=[{**STORE, "sas_token": "canary"}])
    (finding,) = (one for one in made.findings if one.code == "setting-value")
    assert "`sas_token` is a credential" in finding.message
    assert "go by identities" in finding.message
    assert "canary" not in str(finding)


def test_a_table_without_paths_is_found_in_its_file(project: Path) -> None:
    (project / "table" / "MLTable").write_text("transformations: []\n")
    made = declared(project, data=[{"name": "x", "path": "table", "type": "mltable"}])
    (finding,) = [one for one in made.findings if one.code.startswith("mltable")]
    assert (finding.code, finding.file) == ("mltable-paths", str(project / "table" / "MLTable"))


def test_the_version_of_data_of_this_machine_is_their_content(project: Path) -> None:
    spec = {"name": "words", "path": "words"}
    (one,) = declared(project, data=[spec]).data
    (same,) = declared(project, data=[{**spec, "name": "other"}]).data
    (as_file,) = declared(project, data=[{**spec, "path": "words/word.txt", "type": "uri_file"}]).data
    (elsewhere,) = declared(project, data=[{**spec, "datastore": "corpora"}], datastores=[STORE]).data
    (project / "words" / "word.txt").write_text("goodbye\n")
    (edited,) = declared(project, data=[spec]).data
    assert one.version == same.version
    assert len({one.version, as_file.version, elsewhere.version, edited.version}) == 4
    assert one.uri.startswith("azureml://datastores/workspaceblobstore/paths/LocalUpload/")
    assert one.uri.endswith("/words")
    (table,) = declared(project, data=[{"name": "t", "path": "table", "type": "mltable"}]).data
    assert table.body["referencedUris"] == ["./rows.csv", "./*.csv"]


@pytest.mark.parametrize(
    ("path", "kind", "expected"),
    [
        ("azureml:words@latest", "uri_folder", []),
        ("azureml:raw:1", "uri_folder", []),
        ("azureml:raw@latest", "uri_folder", []),
        ("azureml:somebody-elses:7", "uri_folder", []),
        ("azureml:word@latest", "uri_folder", [("data-unknown", "warning")]),
        ("azureml:Words@latest", "uri_folder", [("data-unknown", "warning")]),
        ("azureml:words", "uri_folder", [("data-version", "error")]),
        ("azureml:words@newest", "uri_folder", [("data-version", "error")]),
        ("azureml:words:3", "uri_folder", [("data-version", "warning")]),
        ("azureml:words@latest", "mltable", [("data-type", "warning")]),
        ("azureml:words:3", "custom_model", []),
        ("azureml://datastores/corpora/paths/a/", "uri_folder", []),
        ("azureml://datastores/corpra/paths/a/", "uri_folder", [("datastore-unknown", "warning")]),
        ("azureml://datastores/workspaceblobstor/paths/a/", "uri_folder", [("datastore-unknown", "warning")]),
        ("azureml://datastores/theirs/paths/a/", "uri_folder", []),
    ],
)
def test_names_in_a_job_are_compared_with_those_of_the_stack(
    project: Path, path: str, kind: str, expected: list[tuple[str, str]]
) -> None:
    made = declared(project, reading(path, kind), datastores=[STORE], data=[WORDS, RAW])
    assert [(code, level) for code, _, level in found(made)] == expected
    assert all(where == "inputs.x.path" for _, where, _ in found(made))


def test_a_pipelines_steps_and_outputs_name_data_too(project: Path) -> None:
    step = {
        "type": "command",
        "command": "true",
        "environment": "azureml:acpt-pytorch-2.8-cuda12.6:1",
        "compute": "azureml:gpu",
        "inputs": {"x": {"type": "uri_folder", "path": "azureml:wards@latest"}},
        "outputs": {"y": {"type": "uri_folder", "path": "azureml://datastores/copora/paths/y/"}},
    }
    made = declared(project, {"type": "pipeline", "jobs": {"one": step}}, datastores=[STORE], data=[WORDS])
    assert [one[:2] for one in found(made)] == [
        ("data-unknown", "jobs.one.inputs.x.path"),
        ("datastore-unknown", "jobs.one.outputs.y.path"),
    ]


def test_a_label_becomes_the_stacks_version_and_part_of_the_runs_identity(project: Path) -> None:
    def run(path: str) -> Any:
        (only,) = declared(project, reading(path), data=[WORDS, RAW]).runs
        return only

    one = run("azureml:words@latest")
    (declared_words,) = declared(project, data=[WORDS]).data
    assert one.assets == (declared_words.reference,)
    assert all_inputs(one.data.addressed(one.plan.enriched))["inputs.x"].path == declared_words.reference
    before = one.data.identity(one.plan.declaration)
    assert before["data_assets"] == {"inputs.x": declared_words.reference}
    (project / "words" / "word.txt").write_text("goodbye\n")
    edited = run("azureml:words@latest")
    assert edited.data.identity(edited.plan.declaration) != before
    # What the job itself names is part of its declaration already.
    pinned = run("azureml:raw:1")
    assert (pinned.assets, pinned.data.identity(pinned.plan.declaration)) == (
        ("azureml:raw:1",), pinned.plan.declaration,
    )  # fmt: skip
    theirs = run("azureml:theirs@latest")
    assert (theirs.assets, theirs.data.identity(theirs.plan.declaration)) == ((), theirs.plan.declaration)


@for_each(
    "text, names",
    [
        ("azureml://datastores/corpora/paths/a/datastores/b", {"corpora"}),
        ("azureml://subscriptions/s/resourcegroups/g/workspaces/w/datastores/corpora/paths/a", {"corpora"}),
        ("/subscriptions/s/resourceGroups/g/providers/X/workspaces/w/datastores/corpora", {"corpora"}),
        ("https://lake.blob.core.windows.net/datastores/corpora", set()),
        ("echo datastores/corpora", set()),
    ],
)
def test_datastores_are_found_in_addresses_of_every_form(text: str, names: set[str]) -> None:
    assert data.named_in({"inputs": [{"uri": text}]}) == names


def test_a_datastore_has_no_credential_and_says_where_its_account_is() -> None:
    spec = Datastore(name="corpora", kind="adls_gen2", account=ACCOUNT, container="files", read_only=True)
    assert data.datastore_properties(spec, ACCOUNT, "usgovernment") == {
        "datastoreType": "AzureDataLakeGen2",
        "accountName": "lake",
        "filesystem": "files",
        "credentials": {"credentialsType": "None"},
        "subscriptionId": ACCOUNT.split("/")[2],
        "resourceGroup": "lake",
        "endpoint": "core.usgovcloudapi.net",
        "tags": {},
    }
    assert data.role_of(spec).name == "Storage Blob Data Reader"


def test_the_page_has_the_roles_as_they_are_assigned() -> None:
    page = (PROJECT / "docs/how-to/data.md").read_text()
    for role in roles.ROLES:
        assert f"| {role.name} | `{role.definition}` | {role.why} |" in page
        assert role.source
    for role in data.ROLES:
        assert role.name in page
