"""Code and environments: by content, once, retained; nothing secret leaves the upload."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.rpc import UNKNOWN
from amlstack.run_identity import environment_version
from amlstack.snapshot import scan
from tests.support.provider.fake_workspace import SIGNATURE, WORKSPACE
from tests.support.provider.provider_wire import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "pkg").mkdir(parents=True)
    (folder / "train.py").write_text("print(1)\n")
    (folder / "pkg/model.py").write_text("")
    (folder / ".amlignore").write_text("*.tmp\n")
    (folder / "x.tmp").write_text("never")
    return folder


def inputs_of(folder: Path, **more: Any) -> dict[str, Any]:
    return {"workspace": WORKSPACE, "path": str(folder), **more}


def test_the_hash_and_the_id_are_known_at_preview(wire: Wire, arm: FakeArm, code: Path) -> None:
    foretold = wire.snapshot().preview(inputs_of(code))
    assert foretold["hash"] == scan(code).hash
    assert foretold["codeId"] == f"{WORKSPACE}/codes/{foretold['hash']}/versions/1"
    assert arm.asked == []


def test_a_path_that_is_not_known_yet_is_left_open(wire: Wire) -> None:
    assert "codeId" not in wire.snapshot().preview({"workspace": WORKSPACE, "path": UNKNOWN})


def test_a_new_content_is_uploaded_and_registered(wire: Wire, arm: FakeArm, code: Path, log: Log) -> None:
    snapshot = wire.snapshot()
    assert snapshot.up(inputs_of(code)) == "create"
    assert arm.blobs == {
        "account/upload/code/train.py": b"print(1)\n",
        "account/upload/code/pkg/model.py": b"",
        "account/upload/code/.amlignore": b"*.tmp\n",
    }
    digest = scan(code).hash
    assert snapshot.id == f"{WORKSPACE}/codes/{digest}/versions/1"
    assert arm.resources[snapshot.id]["properties"] == {
        "codeUri": f"{arm.url}/blobs/account/upload/code",
        "isAnonymous": True,
        "properties": {"hash_sha256": digest, "hash_version": "202208"},
    }
    assert snapshot.outputs["files"] == 3
    assert snapshot.outputs["bytes"] == 9 + 6
    assert "uploaded 3 of 3 files" in log.messages("status")


def test_a_content_that_is_registered_is_not_uploaded_again(wire: Wire, arm: FakeArm, code: Path) -> None:
    wire.snapshot().up(inputs_of(code))
    arm.blobs.clear()
    other = wire.snapshot()
    other.up(inputs_of(code))
    assert arm.blobs == {}
    assert arm.count("PUT", "/codes/") == 1
    assert other.outputs["files"] == 3


def test_an_upload_of_azure_ai_ml_is_reused(wire: Wire, arm: FakeArm, code: Path) -> None:
    digest = scan(code).hash
    uri = "https://account.blob.core.windows.net/c/code"
    marks = {"hash_sha256": digest, "hash_version": "202208"}
    arm.resources[f"{WORKSPACE}/codes/5f0d-uuid/versions/1"] = {"properties": {"codeUri": uri, "properties": marks}}
    snapshot = wire.snapshot()
    snapshot.up(inputs_of(code))
    assert arm.blobs == {}
    assert arm.resources[snapshot.id]["properties"]["codeUri"] == uri


def test_two_deployments_at_once_share_one_version(wire: Wire, arm: FakeArm, code: Path) -> None:
    digest = scan(code).hash
    target = f"{WORKSPACE}/codes/{digest}/versions/1"
    arm.fail("GET", target, 404)  # the other one registers right after this look
    arm.resources[target] = {"properties": {"codeUri": "https://a/b/c", "properties": {"hash_sha256": "else"}}}
    snapshot = wire.snapshot()
    snapshot.up(inputs_of(code))
    assert snapshot.id == target


def test_an_edited_file_is_another_snapshot_and_the_old_one_stays(wire: Wire, arm: FakeArm, code: Path) -> None:
    snapshot = wire.snapshot()
    snapshot.up(inputs_of(code))
    old = snapshot.id
    assert snapshot.up(inputs_of(code)) == "same"
    (code / "train.py").write_text("print(2)\n")
    assert snapshot.up(inputs_of(code)) == "replace"
    assert {old, snapshot.id} == set(arm.resources)
    snapshot.remove()
    assert len(arm.resources) == 2


def test_the_same_content_elsewhere_is_no_change(wire: Wire, code: Path) -> None:
    snapshot = wire.snapshot()
    snapshot.up(inputs_of(code))
    moved = code.rename(code.with_name("moved"))
    assert snapshot.up(inputs_of(moved)) == "same"


def test_a_vanished_code_version_is_made_again(wire: Wire, arm: FakeArm, code: Path) -> None:
    snapshot = wire.snapshot()
    snapshot.up(inputs_of(code))
    arm.resources.clear()
    snapshot.refresh()
    assert snapshot.id == ""
    assert snapshot.up(inputs_of(code)) == "create"


def test_code_of_a_vanished_workspace_is_uploaded_again_when_the_workspace_is_back(
    wire: Wire, arm: FakeArm, code: Path
) -> None:
    snapshot = wire.snapshot()
    snapshot.up(inputs_of(code))
    workspaces = set(arm.workspaces)
    arm.workspaces.clear()
    arm.resources.clear()
    snapshot.refresh()
    assert snapshot.id == ""
    arm.workspaces.update(workspaces)
    assert snapshot.up(inputs_of(code)) == "create"


def test_what_is_wrong_with_the_folder_is_a_failure_of_check(wire: Wire, tmp_path: Path) -> None:
    found = wire.snapshot().failures(inputs_of(tmp_path / "nowhere"))
    assert "there is no folder" in found["path"]
    assert "[code-folder-missing]" in found["path"]


def test_what_looks_like_a_secret_is_a_warning(wire: Wire, code: Path, log: Log) -> None:
    (code / ".env").write_text("A=1")
    wire.snapshot().up(inputs_of(code))
    assert any("[secret-in-code]" in message for message in log.messages("warning"))


def test_a_hash_of_the_program_is_used_unchecked_until_the_upload(wire: Wire, arm: FakeArm, code: Path) -> None:
    with pytest.raises(Refused, match="has changed since it was hashed"):
        wire.snapshot().up(inputs_of(code, hash="0" * 64))
    assert arm.blobs == {}


def test_the_signature_is_in_no_state_no_log_and_no_error(wire: Wire, arm: FakeArm, code: Path, log: Log) -> None:
    snapshot = wire.snapshot()
    arm.fail("BLOB", "", 403, code="AuthenticationFailed")
    with pytest.raises(Refused, match="the upload failed") as caught:
        snapshot.up(inputs_of(code))
    assert "x" * 20 not in str(caught.value)
    snapshot.up(inputs_of(code))
    seen = json.dumps([snapshot.inputs, snapshot.outputs, log.entries, list(arm.resources.values())])
    assert SIGNATURE[:20] not in seen
    assert "sig=" not in seen


def test_an_interrupted_upload_registers_nothing_and_is_repeated(wire: Wire, arm: FakeArm, code: Path) -> None:
    wire.plugin.cancelled.set()
    snapshot = wire.snapshot()
    with pytest.raises(Refused, match="uploads it again"):
        snapshot.up(inputs_of(code))
    assert arm.resources == {}
    wire.restart()
    assert snapshot.up(inputs_of(code)) == "create"


def test_large_files_arrive_whole(wire: Wire, arm: FakeArm, code: Path) -> None:
    data = bytes(range(256)) * 4096 * 5
    (code / "big.bin").write_bytes(data)
    wire.snapshot().up(inputs_of(code))
    assert hashlib.sha256(arm.blobs["account/upload/code/big.bin"]).digest() == hashlib.sha256(data).digest()
    assert base64.b64encode(data[:3])


BODY = {"image": "mcr.microsoft.com/x:1", "condaFile": "dependencies: [python]"}


def env(**changes: Any) -> dict[str, Any]:
    return {"workspace": WORKSPACE, "name": "torch", "body": BODY, **changes}


def test_an_environment_is_registered_under_its_content(wire: Wire, arm: FakeArm) -> None:
    environment = wire.environment()
    version = environment_version(BODY)
    assert environment.preview(env())["environmentId"] == f"{WORKSPACE}/environments/torch/versions/{version}"
    assert environment.up(env()) == "create"
    assert environment.id == f"{WORKSPACE}/environments/torch/versions/{version}"
    assert arm.resources[environment.id] == {"properties": BODY}
    assert environment.up(env()) == "same"


def test_two_stacks_share_an_environment_and_neither_deletes_it(wire: Wire, arm: FakeArm) -> None:
    one, other = wire.environment(), wire.environment()
    one.up(env())
    other.up(env())
    assert arm.count("PUT", "/environments/") == 1
    one.remove()
    other.remove()
    assert len(arm.resources) == 1


def test_another_content_is_another_version(wire: Wire, arm: FakeArm) -> None:
    environment = wire.environment()
    environment.up(env())
    assert environment.up(env(body={**BODY, "image": "other"})) == "replace"
    assert len(arm.resources) == 2


def test_a_vanished_environment_is_registered_again(wire: Wire, arm: FakeArm) -> None:
    environment = wire.environment()
    environment.up(env())
    arm.resources.clear()
    environment.refresh()
    assert environment.up(env()) == "create"


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"name": "AzureML-mine"}, "name", "kept for curated"),
        ({"body": {"condaFile": "x"}}, "body", "an image or a build"),
        ({"bdoy": {}}, "bdoy", "Did you mean `body`?"),
    ],
    ids=["name", "body", "typo"],
)
def test_wrong_environments_are_failures_of_check(wire: Wire, change: dict[str, Any], where: str, words: str) -> None:
    assert words in wire.environment().failures(env(**change))[where]


def test_packages_beside_the_folder_are_uploaded_with_it(wire: Wire, arm: FakeArm, code: Path, tmp_path: Path) -> None:
    package = tmp_path / "beside"
    package.mkdir()
    (package / "__init__.py").write_text("a = 1\n")
    snapshot = wire.snapshot()
    snapshot.up(inputs_of(code, beside=str(package)))
    assert snapshot.id == f"{WORKSPACE}/codes/{scan(code, (package,)).hash}/versions/1"
    assert arm.blobs["account/upload/code/beside/__init__.py"] == b"a = 1\n"
    assert arm.blobs["account/upload/code/train.py"] == b"print(1)\n"
