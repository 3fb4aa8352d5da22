"""The workspace of a verb, and its message where none is named, found or allowed; no service is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from amlstack.cli.workspace import job_search, refusals, workspace_place
from amlstack.cli.workspace.options import AskedWorkspace
from amlstack.cli.workspace.workspace_place import NoWorkspaceError
from amlstack.provider.arm import ArmError
from amlstack.provider.runs import record_of
from amlstack.run_identity import IDENTITY, NAME
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
OTHER = "99999999-2222-3333-4444-555555555555"


def arm_id(subscription: str, group: str, name: str) -> str:
    return (
        f"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/"
        f"workspaces/{name}"
    )


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with nothing above it that names a workspace, and a home without a sandbox."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    return folder


def found(**asked: str) -> workspace_place.WorkspacePlace:
    return workspace_place.find(AskedWorkspace(**asked), pytest.fail)


def config(folder: Path, **values: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.json"
    file.write_text(json.dumps(values), "utf-8")
    return file


WHOLE = {"subscription_id": SUBSCRIPTION, "resource_group": "rg-file", "workspace_name": "ws-file"}


def test_options_count_before_the_file_and_the_file_before_the_environment(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZUREML_ARM_SUBSCRIPTION", OTHER)
    monkeypatch.setenv("AZUREML_ARM_RESOURCEGROUP", "rg-env")
    monkeypatch.setenv("AZUREML_ARM_WORKSPACE_NAME", "ws-env")
    by_environment = found()
    assert by_environment.workspaces == (arm_id(OTHER, "rg-env", "ws-env"),)
    assert "AZUREML_ARM_WORKSPACE_NAME" in by_environment.line

    file = config(nowhere.parent / ".azureml", **WHOLE)
    by_file = found()
    assert by_file.workspaces == (arm_id(SUBSCRIPTION, "rg-file", "ws-file"),)
    assert str(file) in by_file.line

    assert found(workspace="ws-option").workspaces == (arm_id(SUBSCRIPTION, "rg-file", "ws-option"),)
    whole = arm_id(OTHER, "rg-id", "ws-id")
    assert found(workspace=whole).workspaces == (whole,)


def test_a_stack_names_its_workspace_subscription_and_cloud(nowhere: Path) -> None:
    config(nowhere / ".azureml", **WHOLE)
    (nowhere / "Pulumi.mine.yaml").write_text(
        "config:\n"
        f"  azure-native:subscriptionId: {OTHER}\n"
        "  azure-native:tenantId: 22222222-2222-3333-4444-555555555555\n"
        "  azure-native:environment: usgovernment\n"
        "  amlstack:workspace: {name: ws-stack}\n",
        "utf-8",
    )
    mine = found(stack="mine")
    assert mine.workspaces == (arm_id(OTHER, "rg-amlstack-mine", "ws-stack"),)
    assert mine.arm.endpoint == "https://management.usgovcloudapi.net"
    assert mine.arm.tenant.startswith("2222")
    assert job_search.studio_of_workspace(mine.arm, mine.workspace).startswith(
        "https://ml.azure.us/?wsid=/subscriptions/"
    )
    with pytest.raises(NoWorkspaceError, match="leave --workspace out"):
        found(stack="mine", workspace="w")
    with pytest.raises(NoWorkspaceError, match=r"There is no Pulumi\.mina\.yaml"):
        found(stack="mina")


def test_nothing_that_names_one_is_an_answer_with_all_ways() -> None:
    with pytest.raises(NoWorkspaceError, match=r"--stack NAME.*\.azureml/config\.json.*AZUREML_ARM_WORKSPACE_NAME"):
        found()
    with pytest.raises(NoWorkspaceError, match="its subscription is not"):
        found(workspace="w")
    with pytest.raises(NoWorkspaceError, match="must be a name or an ARM id"):
        found(workspace="/subscriptions/x")


def test_the_file_is_looked_for_as_azure_ai_ml_does(nowhere: Path) -> None:
    assert workspace_place.config_file(nowhere) is None
    (nowhere / "config.json").write_text('{"hidden_size": 64}', "utf-8")  # a model's, say
    assert workspace_place.config_file(nowhere) is None
    plain = config(nowhere.parent, **WHOLE)
    assert workspace_place.config_file(nowhere) == plain
    hidden = config(nowhere.parent / ".azureml", **WHOLE)
    assert workspace_place.config_file(nowhere) == hidden
    (nowhere / "config.json").unlink()
    scope = nowhere / ".azureml" / "project.json"
    scope.parent.mkdir()
    scope.write_text(json.dumps({"Scope": arm_id(OTHER, "rg", "w")}), "utf-8")
    assert workspace_place.read_config_file(scope) == {"subscription": OTHER, "group": "rg", "workspace": "w"}


@pytest.mark.parametrize("text", ["[]", "{", '{"workspace_name": 3}', "{}"])
def test_a_file_that_names_no_workspace_is_named_with_what_it_lacks(nowhere: Path, text: str) -> None:
    file = nowhere / ".azureml" / "config.json"
    file.parent.mkdir()
    file.write_text(text, "utf-8")
    with pytest.raises(NoWorkspaceError, match=r"config\.json.*(must be a JSON object|must be a text)"):
        found()


@for_each(
    "error, words",
    [
        (ArmError(0, "NoCredential", "no Entra ID token"), "Not signed in"),
        (ArmError(401, "InvalidAuthenticationTokenTenant", "The token is from the wrong issuer"), "another tenant"),
        (ArmError(404, "SubscriptionNotFound", "The subscription could not be found"), "`az account show`"),
        (ArmError(403, "AuthorizationFailed", "It needs the right x/read"), "Not allowed"),
        (ArmError(429, "TooManyRequests", "slow down"), "throttles"),
        (ArmError(0, "ConnectionFailed", "no answer from host"), "HTTPS_PROXY"),
        (ArmError(500, "InternalServerError", "broken"), "(InternalServerError)"),
    ],
)
def test_each_refusal_is_one_line_with_what_helps(error: ArmError, words: str) -> None:
    message = refusals.words(error, None)
    assert words in message
    assert "\n" not in message


def test_the_project_has_no_file_that_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    assert workspace_place.config_file(PROJECT) is None


def test_a_missing_sign_in_is_one_line(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    monkeypatch.setenv("PATH", str(nowhere))
    done = subprocess.run(
        [sys.executable, "-m", "amlstack.cli.main", "status", "--workspace", arm_id(SUBSCRIPTION, "rg", "w")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    where, refusal = done.stderr.splitlines()
    assert where.startswith("workspace w (resource group rg")
    assert refusal.startswith("Not signed in: ")
    assert "`az login`" in refusal


JOBS = {
    "hf-sweep-f042f042f0": "Running",
    "train-1111111111": "Running",
    "train-2222222222": "Completed",
    "two-1111111111": "Running",
    "two-2222222222": "Running",
    "old-2222222222": "Failed",
    "old-1111111111": "Completed",
    "someones-3333333333": "Running",
}
"""Newest first; the last one was submitted by another tool."""


@pytest.mark.parametrize(
    ("wanted", "running", "means"),
    [
        ("train", False, "train-1111111111"),
        ("train", True, "train-1111111111"),
        ("old", False, "old-2222222222"),
        ("hf-sweep", True, "hf-sweep-f042f042f0"),
        ("hf-sweep-f042f042f0", True, "hf-sweep-f042f042f0"),
        ("Shown of two", False, "two-1111111111"),
        ("hf", False, "There is no job `hf` in w. A whole name is needed; so begin: `hf-sweep-f042f042f0`"),
        ("hf", True, "There is no job `hf` in w. A whole name is needed; so begin: `hf-sweep-f042f042f0`"),
        ("train-1", True, "so begin: `train-1111111111`"),
        ("t", False, "so begin: `train-1111111111`, `train-2222222222`"),
        ("two", True, "`two` names 2 active jobs: `two-1111111111`, `two-2222222222`. Name one of them."),
        ("two", False, "two-1111111111"),
        ("someones", True, "so begin: `someones-3333333333`"),
        ("Shown twice", False, "`Shown twice` is shown as the name of `train-2222222222`, `old-1111111111`."),
        ("trian", False, "Did you mean `train`?"),
    ],
)
def test_no_other_job_than_the_named_one_is_taken(
    wanted: str, *, running: bool, means: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(name: str) -> job_search.WorkspaceJob:
        shown = {"two-1111111111": "Shown of two", "train-2222222222": "Shown twice", "old-1111111111": "Shown twice"}
        marks = {} if name.startswith("someones") else {IDENTITY: "f0", NAME: name.rpartition("-")[0]}
        body = {"properties": {"status": JOBS[name], "displayName": shown.get(name, name), "properties": marks}}
        return job_search.WorkspaceJob(arm_id(SUBSCRIPTION, "g", "w"), record_of(name, body), None)

    monkeypatch.setattr(job_search, "listed", lambda *_: [job(name) for name in JOBS])
    monkeypatch.setattr(job_search, "_get", lambda _place, _workspace, name: job(name) if name in JOBS else None)
    arm = SimpleNamespace(endpoint="https://management.azure.com")
    where = workspace_place.WorkspacePlace(arm, (arm_id(SUBSCRIPTION, "g", "w"),), "")
    try:
        seen = job_search.find(where, wanted, running=running).name
    except job_search.UnknownRunError as error:
        seen = str(error)
    assert means in seen


def test_a_step_is_taken_by_its_own_name_and_never_for_another_that_is_shown_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workspace = arm_id(OTHER, "rg", "ws")
    below = [("p_1", "2"), ("p_2", "prep"), ("p_3", "prep"), ("p_4", "p_1"), ("p_5", "train")]
    rows = [{"runId": name, "displayName": shown} for name, shown in below]
    monkeypatch.setattr(job_search, "children", lambda _place, job: rows if job.name == "p" else [])

    def get(path: str, **_: object) -> SimpleNamespace:
        return SimpleNamespace(status=200, body={"name": path.rpartition("/")[2], "properties": {}})

    where = workspace_place.WorkspacePlace(SimpleNamespace(endpoint="https://x", get=get), (workspace,), "")
    for wanted, name in (("p/p_1", "p_1"), ("p/train", "p_5"), ("p/5", "p_5")):
        assert job_search.find(where, wanted).name == name
    for wanted, names in (("p/2", "`p/p_1`, `p/p_2`"), ("p/prep", "`p/p_2`, `p/p_3`")):
        with pytest.raises(job_search.UnknownRunError, match=f"may be one of {names}"):
            job_search.find(where, wanted)


def test_beside_another_one_the_workspace_of_rehearsals_is_not_meant() -> None:
    own, other, rehearsal = (arm_id(SUBSCRIPTION, name, name) for name in ("own", "other", "rehearsal"))

    def meant(*workspaces: str) -> str:
        return workspace_place.WorkspacePlace(SimpleNamespace(endpoint="https://x"), workspaces, "").workspace

    assert (meant(own, rehearsal), meant(rehearsal)) == (own, rehearsal)
    with pytest.raises(workspace_place.NoWorkspaceError, match="2 workspaces may be meant: own, other"):
        meant(own, other, rehearsal)
