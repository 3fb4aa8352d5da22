"""Processes that an engine started do not outlive it, however it ended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from amlstack import engine, processes

if TYPE_CHECKING:
    from pathlib import Path

KILLED = """\
#!/bin/sh
# A plugin in a session of its own, as the engine starts them; it holds nothing that the engine's end would close.
setsid sleep infinity >/dev/null 2>&1 &
until [ -e /proc/$!/cmdline ] && tr '\\0' ' ' </proc/$!/cmdline | grep -q '^sleep infinity'; do :; done
kill -KILL $$
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def environ(tmp_path: Path, script: str) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "pulumi"
    fake.write_text(script)
    fake.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def test_plugins_of_a_killed_engine_end_with_its_run(home: Path, tmp_path: Path) -> None:
    outcome = engine.run(["up"], environ(tmp_path, KILLED), cwd=tmp_path)
    assert outcome.code == -9
    assert processes.find_leftovers(home) == ()


def marked(mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "infinity"], env={processes.MARK: mark, "PATH": os.defpath})


def test_processes_of_another_home_stay(home: Path, tmp_path: Path) -> None:
    with marked(processes.new_mark(home)) as ours, marked(processes.new_mark(tmp_path / "other")) as other:
        try:
            assert engine.end_leftovers() == 1
            assert ours.wait(60) == -9
            assert other.poll() is None
        finally:
            other.kill()
            ours.kill()


def test_an_abandoned_engine_is_ended_and_its_lock_removed(home: Path) -> None:
    gone = f"{home}:{os.getpid()}:1:word"  # this process's number, but another's start
    with marked(gone) as orphan, marked(processes.new_mark(home)) as followed:
        lock = home / "pulumi" / ".pulumi" / "locks" / "organization" / "lock.json"
        lock.parent.mkdir(parents=True)
        lock.write_text(json.dumps({"pid": orphan.pid, "hostname": socket.gethostname()}))
        try:
            assert engine.clear_stale_lock() == 1
            assert not lock.exists()
            assert orphan.wait(60) == -9
            assert followed.poll() is None
        finally:
            followed.kill()
            orphan.kill()


def test_the_lock_of_a_living_engine_stays(home: Path) -> None:
    lock = home / "pulumi" / ".pulumi" / "locks" / "organization" / "lock.json"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"pid": os.getpid(), "hostname": socket.gethostname()}))
    assert engine.clear_stale_lock() == 0
    assert lock.exists()
