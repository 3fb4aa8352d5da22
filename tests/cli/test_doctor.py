"""`amlstack doctor`: what is wrong with this machine or with the way to Azure, each with its remedy."""

from __future__ import annotations

import json
import shutil
import socket
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli import doctor
from amlstack.cli.doctor import Mark
from amlstack.cli.main import main
from amlstack.cli.workspace.workspace_place import WorkspacePlace
from amlstack.provider.arm import ArmError
from amlstack.provider.arm.exchange import Response
from amlstack.provider.arm.sign_in import PUBLIC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/aml"
ZONE = "privatelink.api.azureml.ms"


class Azure:
    """ARM with fixed answers by path; what is not there is refused with 404."""

    endpoint = "https://management.azure.com"
    tenant = ""
    cloud = PUBLIC

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def token(self, audience: str) -> str:
        return "e30.eyJ1cG4iOiAiYW5uQGNvbnRvc28uY29tIiwgInRpZCI6ICJjb250b3NvIn0.x"

    def get(self, path: str, version: str) -> Response:
        if path == f"/subscriptions/{SUBSCRIPTION}":
            return Response(200, {"displayName": "Research", "state": self.answers.get("state", "Enabled")}, {})
        if path == WORKSPACE and "workspace" in self.answers:
            return Response(200, {"properties": self.answers["workspace"]}, {})
        raise ArmError(404, "ResourceNotFound", f"there is no {path}")

    def look(self, path: str, version: str) -> Response:
        name = path.rpartition("/")[2]
        return Response(200, {"registrationState": self.answers.get("registered", {}).get(name, "Registered")}, {})

    def rows(self, path: str, version: str) -> Iterator[dict[str, Any]]:
        assert path == f"{GROUP}/providers/Microsoft.Authorization/permissions"
        return iter(self.answers.get("rights", [{"actions": ["*"], "notActions": []}]))


def checks(**answers: Any) -> dict[str, doctor.DoctorLine]:
    place = WorkspacePlace(Azure(**answers), (WORKSPACE,), "named by --workspace")
    return {each.name: each for each in doctor.azure(place)}


def test_a_machine_that_is_fine_has_no_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert {"Python", "amlstack", "engine", "mpirun", "git", "cache", "state", "sandbox"} == set(found)
    assert found["Python"]["state"] == "✓"


def test_a_folder_of_others_and_one_that_is_full_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "letter.txt").touch()
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path))
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 3 << 30}))
    found = {each.name: each for each in doctor.machine()}
    assert found["sandbox"].state is Mark.BAD
    assert "letter.txt" in found["sandbox"].seen
    assert (found["cache"].state, found["cache"].remedy) == (Mark.BAD, "Free some, or set AMLSTACK_CACHE.")
    assert found["state"].state is Mark.GOOD


def test_all_that_an_up_needs_of_azure_is_named() -> None:
    found = checks()
    assert found["sign-in"].seen == "as ann@contoso.com in the tenant contoso"
    assert found["subscription"].seen == f"Research ({SUBSCRIPTION}) is Enabled"
    assert [each.state for each in found.values()] == [Mark.GOOD] * 4 + [Mark.NOTE]
    assert "`amlstack up` makes it" in found["workspace"].seen


@pytest.mark.parametrize(
    ("answers", "name", "seen", "remedy"),
    [
        ({"state": "Disabled"}, "subscription", "is Disabled", ""),
        ({"registered": {"Microsoft.Storage": "NotRegistered"}}, "providers", "Microsoft.Storage", "provider register"),
        (
            {"rights": [{"actions": ["*"], "notActions": ["Microsoft.Authorization/*/Write"]}]},
            "rights", "roleAssignments/write", "Role Based Access Control Administrator",
        ),
        ({"rights": [{"actions": ["*/read"]}]}, "rights", "roleAssignments/write", "Ask for"),
    ],
)  # fmt: skip
def test_what_is_missing_has_its_remedy(answers: dict[str, Any], name: str, seen: str, remedy: str) -> None:
    found = checks(**answers)[name]
    assert (found.state, seen in found.seen, remedy in found.remedy) == (Mark.BAD, True, True), found


@pytest.mark.parametrize(
    ("address", "private", "state", "seen"),
    [
        (None, False, Mark.BAD, "has no address here"),
        ("20.50.1.1", True, Mark.BAD, "has the public address 20.50.1.1"),
        ("127.0.0.1", False, Mark.GOOD, "127.0.0.1 answers on port 443"),
        ("127.0.0.1", True, Mark.GOOD, "127.0.0.1 answers on port 443"),
        ("127.0.0.2", False, Mark.BAD, "127.0.0.2 does not answer on port 443"),
    ],
)
def test_a_host_is_reached_or_named_with_its_zone(
    address: str | None, private: bool, state: Mark, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        if address is None:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    class Connection:
        def __init__(self, place: tuple[str, int], timeout: float) -> None:
            if address == "127.0.0.2":
                raise TimeoutError("timed out")

        def close(self) -> None: ...

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", Connection)
    found = doctor.reach("aml.api.azureml.ms", ZONE, private=private)
    assert (found.state, seen in found.seen) == (state, True), found
    assert state is Mark.GOOD or ZONE in found.remedy or "443" in found.remedy


def test_the_hosts_of_a_workspace_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        doctor,
        "reach",
        lambda *words, private: asked.append((*words, private)) or doctor.DoctorLine("host", Mark.GOOD, ""),
    )
    storage = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/store"
    url = "https://westeurope.api.azureml.ms/discovery"
    checks(workspace={"publicNetworkAccess": "Disabled", "discoveryUrl": url, "storageAccount": storage})
    assert sorted(asked) == [
        ("store.blob.core.windows.net", "privatelink.blob.core.windows.net", True),
        ("westeurope.api.azureml.ms", ZONE, True),
    ]


def test_of_a_sandbox_neither_hosts_nor_rights_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Azure, "endpoint", "https://127.0.0.1:8443")
    found = checks(rights=[])
    assert list(found) == ["sign-in", "subscription", "providers", "hosts"]
    assert Mark.BAD not in {each.state for each in found.values()}
