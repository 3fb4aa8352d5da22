"""A terminal's Ctrl-C goes to the whole foreground group; the engine gets it once, and only while it listens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENGINE = """\
#!{python} -IS
import json, signal, sys
got = open({folder!r} + "/got", "a", buffering=1)
signal.signal(signal.SIGINT, lambda *_: got.write("interrupted\\n"))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
events = open(sys.argv[sys.argv.index("--event-log") + 1], "w", buffering=1)
say = lambda **event: events.write(json.dumps(event) + "\\n")
open({folder!r} + "/started", "w").write("started")
open({folder!r} + "/begin").read()
say(preludeEvent={{}})
for _ in range({times}):
    signal.sigwait([signal.SIGINT])
    got.write("interrupted\\n")
done = {{"urn": "urn:a", "op": "create", "type": "t"}}
say(resOutputsEvent={{"metadata": done}})
say(summaryEvent={{}})
open({folder!r} + "/end").read()
if signal.SIGINT in signal.sigpending():
    got.write("interrupted late\\n")
sys.exit(255)
"""
FOLLOWER = """\
import sys
from amlstack import engine
try:
    engine.run(["up"], dict(__import__("os").environ))
except engine.EngineInterruptedError as interrupted:
    print(interrupted.outcome.code, interrupted.outcome.applied)
    sys.exit(130)
"""


@dataclass
class Followed:
    """`amlstack` with an engine that says and does what the test wants, in a process group as a shell makes one."""

    folder: Path
    process: subprocess.Popen[str]

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def open(self, gate: str) -> None:
        (self.folder / gate).write_text("now")

    def wait_for_start(self) -> None:
        (self.folder / "started").read_text()

    def ended(self) -> tuple[int, str, list[str]]:
        out, _ = self.process.communicate(timeout=600)
        return self.process.returncode, out.strip(), (self.folder / "got").read_text().splitlines()


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[object]:
    started: list[Followed] = []

    def start(times: int) -> Followed:
        for gate in ("started", "begin", "end"):
            os.mkfifo(tmp_path / gate)
        (tmp_path / "bin").mkdir()
        engine = tmp_path / "bin" / "pulumi"
        engine.write_text(ENGINE.format(python=sys.executable, folder=str(tmp_path), times=times))
        engine.chmod(0o755)
        path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "AMLSTACK_HOME": str(tmp_path / "home"), "PYTHONPATH": str(PROJECT)}
        command = [sys.executable, "-c", FOLLOWER]
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, process_group=0)
        started.append(Followed(tmp_path, process))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.communicate()


def test_one_ctrl_c_is_passed_on_once_and_what_was_done_is_kept(follow: type[Followed]) -> None:
    one = follow(times=1)  # type: ignore[call-arg]
    one.wait_for_start()
    one.open("begin")
    one.interrupt()
    one.open("end")
    assert one.ended() == (130, "255 {'urn:a': 'create'}", ["interrupted"])


def test_ctrl_c_before_the_engine_listens_waits_until_it_does(follow: type[Followed]) -> None:
    one = follow(times=1)  # type: ignore[call-arg]
    one.wait_for_start()
    one.interrupt()
    one.open("begin")
    one.open("end")
    assert one.ended() == (130, "255 {'urn:a': 'create'}", ["interrupted"])


def test_a_second_ctrl_c_is_passed_on_too(follow: type[Followed]) -> None:
    one = follow(times=2)  # type: ignore[call-arg]
    one.wait_for_start()
    one.open("begin")
    one.process.send_signal(signal.SIGTERM)  # the end of a CI job counts as Ctrl-C does
    got = one.folder / "got"
    while not got.read_text():
        os.sched_yield()
    one.interrupt()
    one.open("end")
    assert one.ended() == (130, "255 {'urn:a': 'create'}", ["interrupted", "interrupted"])
