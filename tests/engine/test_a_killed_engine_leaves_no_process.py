"""What an engine started does not outlive it, however it ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from amlstack import engine, leftovers

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


@pytest.mark.usefixtures("home")
def test_plugins_of_a_killed_engine_end_with_its_run(tmp_path: Path) -> None:
    outcome = engine.run(["up"], environ(tmp_path, KILLED), cwd=tmp_path)
    assert outcome.code == -9
    assert leftovers.find(str(tmp_path)) == ()


def test_processes_of_another_home_stay(home: Path, tmp_path: Path) -> None:
    with (
        subprocess.Popen(["sleep", "infinity"], env={leftovers.MARK: f"{home}:1", "PATH": os.defpath}) as ours,
        subprocess.Popen(
            ["sleep", "infinity"], env={leftovers.MARK: f"{tmp_path}/other:1", "PATH": os.defpath}
        ) as other,
    ):
        try:
            assert engine.end_leftovers() == 1
            assert ours.wait(60) == -9
            assert other.poll() is None
        finally:
            other.kill()
            ours.kill()


def test_a_stale_lock_goes_with_the_processes_of_its_engine(home: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    lock = home / "pulumi" / ".pulumi" / "locks" / "organization" / "lock.json"
    lock.parent.mkdir(parents=True)
    lock.write_text(f'{{"pid": {dead.pid}, "hostname": "{Path("/proc/sys/kernel/hostname").read_text().strip()}"}}')
    with subprocess.Popen(["sleep", "infinity"], env={leftovers.MARK: f"{home}:1", "PATH": os.defpath}) as left:
        try:
            assert engine.clear_stale_lock() == 1
            assert left.wait(60) == -9
            assert not lock.exists()
            assert engine.clear_stale_lock() == 0
        finally:
            left.kill()
