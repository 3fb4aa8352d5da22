"""A job of Azure is reached by Azure's own command, which the verbs print; a job's services are shown by `open`."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main
from amlstack.cli.workspace import job_search, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKSPACE = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws"
SSH = {"jobServiceType": "SSH", "endpoint": "wss://ssh.example", "status": "Running"}
CONNECT = (
    "az ml job connect-ssh --name bert-1 --node-index 1 --private-key-file-path KEY --workspace-name ws "
    "--resource-group rg"
)


@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The services of a job of Azure, to be filled."""
    found: dict[str, Any] = {"Tracking": {"endpoint": "azureml://t"}, "Studio": {"endpoint": "https://studio"}}
    job = SimpleNamespace(
        name="bert-1", workspace=WORKSPACE, record=SimpleNamespace(properties={"services": found}, status="Running")
    )

    @contextmanager
    def opened(_asked: object) -> Iterator[tuple[Any, None]]:
        yield SimpleNamespace(is_local=False, arm=None, workspace=WORKSPACE), None

    monkeypatch.setattr(refusals, "opened", opened)
    monkeypatch.setattr(job_search, "find", lambda *_: job)
    monkeypatch.setattr(job_search, "studio_of_job", lambda *_: "https://studio")
    return found


@pytest.mark.parametrize("has", [True, False])
def test_azure_has_a_command_of_its_own(
    services: dict[str, Any], capsys: pytest.CaptureFixture[str], *, has: bool
) -> None:
    if has:
        services["mine"] = SSH
    assert main(["shell", "bert-1", "--node", "1"]) == 2
    told = capsys.readouterr().err
    assert f"`{CONNECT}`" in told
    assert ("declare one with `ssh_public_keys`" in told) is not has
    assert main(["forward", "bert-1", "6006", "--node", "1"]) == 2
    assert f'`{CONNECT} --ssh-args "-L 6006:localhost:6006"`' in capsys.readouterr().err


def test_open_shows_the_services_of_a_job(services: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    services |= {"mine": SSH, "board": {"jobServiceType": "TensorBoard"}}
    assert main(["open", "bert-1", "--no-browser"]) == 0
    out, err = capsys.readouterr()
    assert out == "https://studio\n"
    assert err.splitlines() == [
        "mine (SSH): wss://ssh.example, Running",
        "board (TensorBoard): no address yet, not started",
    ]
