"""The server of a home: started once, found again, killed at any point without harm, ended with all it started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from amlstack.base import home as homes
from amlstack.cli.commands.sandbox import app
from amlstack.sandbox import processes
from amlstack.sandbox.protocol.kind import KindContext
from amlstack.sandbox.server import daemon, serve
from amlstack.sandbox.server import daemon as report
from amlstack.sandbox.server.daemon import bundle, prepare
from amlstack.sandbox.store.store import Store
from tests.support.running import ended_with_us
from tests.support.sandbox.sandbox_client import Arm, job, workspace_bodies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amlstack.sandbox.server.daemon import Endpoint


pytestmark = pytest.mark.tools


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose sandbox is ended after the test."""
    with ended_with_us(tmp_path / "home"):
        yield tmp_path / "home"
        daemon.down(tmp_path / "home")


def kill(endpoint: Endpoint) -> None:
    """Ends a server as a crash does, and waits until the kernel says so."""
    handle = os.pidfd_open(endpoint.pid)
    processes.send(endpoint.pid, signal.SIGKILL)
    select.select([handle], [], [])
    os.close(handle)
    assert not processes.alive(endpoint.pid, endpoint.started)


def test_up_twice_is_one_server_and_two_at_once_are_too(home: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: daemon.up(home), range(2))

    assert first == second == daemon.up(home) == daemon.find(home)


def test_a_killed_server_comes_back_at_the_same_address_with_everything(home: Path) -> None:
    first = daemon.up(home)
    arm = Arm(first)
    group = arm.make_group("g")
    (path, body), *_ = workspace_bodies(group, "keeper")
    assert arm.put(group + path, body).status == 202

    kill(first)
    second = daemon.up(home)

    assert (second.url, second.ca, second.token) == (first.url, first.ca, first.token)
    assert second.pid != first.pid
    answer = arm.get(group + path)
    assert answer.body["properties"]["provisioningState"] == "Succeeded", (
        "what was being made is done; the token still opens"
    )


def test_a_deletion_that_a_crash_interrupted_is_done_after_it(home: Path) -> None:
    first = daemon.up(home)
    arm = Arm(first)
    workspace = arm.make_workspace("halfway")
    assert arm.call("DELETE", workspace).status == 202

    kill(first)
    daemon.up(home)

    assert arm.get(workspace).error[:2] == (404, "ResourceNotFound")


def test_a_pid_that_now_belongs_to_another_process_is_no_server(home: Path) -> None:
    endpoint = daemon.up(home)
    daemon.down(home)
    file = home / "sandbox" / "endpoint.json"
    stale = json.loads(file.read_text()) | {"pid": os.getpid()}
    file.write_text(json.dumps(stale))

    assert daemon.find(home) is None
    assert daemon.down(home) == 0
    assert daemon.up(home).pid not in {os.getpid(), endpoint.pid}


def test_an_occupied_port_gives_another(home: Path) -> None:
    import socket

    first = daemon.up(home)
    daemon.down(home)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(first.url.rsplit(":", 1)[1])))
        other.listen()
        second = daemon.up(home)

        assert second.url != first.url
        assert Arm(second).make_group("g")


def test_down_ends_what_jobs_left_behind_and_nothing_else(home: Path) -> None:
    daemon.up(home)
    wait = [sys.executable, "-c", "input()"]
    environ = {**os.environ, processes.MARK: f"{home}:one"}
    stray = subprocess.Popen(wait, stdin=subprocess.PIPE, env=environ)
    other = subprocess.Popen(wait, stdin=subprocess.PIPE, env={**environ, processes.MARK: f"{home}-2:one"})
    try:
        assert processes.marked(home) == (stray.pid,)
        assert daemon.down(home) == 2
        assert stray.wait() == -signal.SIGTERM
        assert other.poll() is None
        assert daemon.down(home) == 0
    finally:
        for child in (stray, other):
            child.kill()
            child.communicate()


def test_down_keeps_the_state_unless_its_removal_is_asked_for(home: Path) -> None:
    arm = Arm(daemon.up(home))
    group = arm.make_group("keeper")

    daemon.down(home)
    assert Arm(daemon.up(home)).get(group).status == 200
    daemon.down(home, remove=True)
    assert not (home / "sandbox").exists()
    assert Arm(daemon.up(home)).get(group).status == 404


def test_a_server_whose_tables_cannot_be_opened_is_a_sentence(home: Path) -> None:
    homes.claim(home)
    (home / "sandbox" / "state.db").mkdir(parents=True)

    with pytest.raises(daemon.SandboxError, match=r"state\.db, the tables of the sandbox: it cannot be opened or made"):
        daemon.up(home)
    (home / "sandbox" / "state.db").rmdir()


def test_a_server_that_cannot_start_shows_its_log(home: Path) -> None:
    homes.claim(home)
    (home / "sandbox" / "server.pem").mkdir(parents=True)

    with pytest.raises(daemon.SandboxError) as error:
        daemon.up(home)

    assert "IsADirectoryError" in str(error.value)
    assert str(home / "sandbox" / "serve.log") in str(error.value)


def test_a_second_server_of_a_home_gives_way(home: Path) -> None:
    daemon.up(home)

    command = [sys.executable, "-m", "amlstack.sandbox.server.serve"]
    environ = {**os.environ, "AMLSTACK_HOME": str(home)}
    second = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    assert second.returncode == 3
    assert "another server already serves" in second.stderr


def test_a_server_lets_held_jobs_start_when_another_process_releases_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(home))
    monkeypatch.setattr(serve, "TICK_SECONDS", 0)
    cli = CliRunner()
    assert cli.invoke(app, ["release"]).exit_code == 1, "there is no sandbox yet"
    homes.claim(home)
    daemon.hold(home, hold=True)

    async def go() -> None:
        with contextlib.closing(Store(home)) as store:
            context = KindContext(store, "https://127.0.0.1:1", "key", asyncio.Event())
            ticks = asyncio.create_task(serve._ticks(context))
            for _ in range(3):
                await asyncio.sleep(0)
            assert (store.holds_jobs(), context.wake.is_set()) == (True, False)
            assert cli.invoke(app, ["release"]).exit_code == 0
            await asyncio.wait_for(context.wake.wait(), 60)
            ticks.cancel()

    asyncio.run(go())


def test_jobs_are_held_from_the_start_of_a_sandbox(home: Path) -> None:
    daemon.up(home, hold_jobs=True)

    assert report.gather(home)["held"] is True


def test_status_is_read_without_a_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = Arm(daemon.up(home))
    workspace = arm.make_workspace("known")
    compute = arm.make_cluster(workspace)
    daemon.down(home)
    with contextlib.closing(Store(home)) as store:
        store.jobs.add(workspace, "one", job(compute))
        store.jobs.move("one", "Running")
        store.nodes.put(compute, 0, "busy", "one")
        count = len(store.resources.all())

    state = report.gather(home)

    assert (state["running"], state["resources"]) == (False, count)
    assert count > 0
    (cluster,) = state["clusters"]
    assert (cluster["name"], cluster["min"], cluster["max"]) == ("gpu", 0, 2)
    assert cluster["nodes"] == [{"number": 0, "state": "busy", "job": "one"}]
    monkeypatch.setenv("AMLSTACK_HOME", str(home))
    fields = CliRunner().invoke(app, ["status"], env={"COLUMNS": "120"}).output
    assert json.loads(CliRunner().invoke(app, ["status", "--json"]).output)["jobs"] == {"Running": 1}
    for word in ("not running", "gpu", "Standard_ND96isr_H100_v5", "0 busy", "one", "1 Running"):
        assert word in fields


def test_a_companys_own_authority_stays_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    company, folder = tmp_path / "company.pem", tmp_path / "sandbox"
    company.write_text("-----BEGIN CERTIFICATE-----\ncompany\n-----END CERTIFICATE-----\n")
    folder.mkdir()
    prepare(folder)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(company))

    first = bundle(folder).read_text()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle(folder)))

    assert "company" in first
    assert (folder / "ca.pem").read_text().strip() in first
    assert bundle(folder).read_text() == first, "also in a shell that has the sandbox's variables"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "other" / "ca-bundle.pem"))
    assert "company" not in bundle(folder).read_text()
