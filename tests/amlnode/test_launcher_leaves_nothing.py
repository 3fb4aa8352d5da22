from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

from amlstack.base.paths import PROJECT

pytestmark = pytest.mark.ranks  # processes of ranks, killed in many ways

# Every rank and whatever it starts holds the life line open: its reader sees the end when the last of them is gone.
RANK = """
import os, signal, subprocess, sys, time
life = os.open(os.environ["LIFE"], os.O_WRONLY)
os.set_inheritable(life, True)
def helper(code="import time; time.sleep(600)", **more):
    return subprocess.Popen([sys.executable, "-c", code], pass_fds=[life], **more)
def ready():
    os.write(life, b"+")
def rest():
    # Not `signal.pause`: a signal that comes just before it would not end it.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    ready()
    while True:
        os.read(reader, 1)
rank = int(os.environ["RANK"])
"""


class Launch:
    def __init__(self, folder: Path, script: str, nproc: int, grace: str) -> None:
        self.life = folder / "life"
        os.mkfifo(self.life)
        (folder / "rank.py").write_text(RANK + script)
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "LIFE": str(self.life),
            "AMLNODE_GRACE": grace,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "amlnode", "launch", "--nproc", str(nproc), "rank.py"],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.reader = os.open(self.life, os.O_RDONLY)

    def ready(self, count: int) -> None:
        """Until so many processes have written that they are ready."""
        received = b""
        while len(received) < count:
            more = os.read(self.reader, count - len(received))
            assert more, "the ranks ended before they were ready"
            received += more

    def gone(self) -> None:
        """Until nothing that the ranks are or have started lives; the test's own time limit bounds it."""
        while os.read(self.reader, 4096):
            pass

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate()
        return self.process.returncode, out, err


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[object]:
    started: list[Launch] = []

    @contextmanager
    def start(script: str, nproc: int = 2, grace: str = "300") -> Iterator[Launch]:
        started.append(Launch(tmp_path, script, nproc, grace))
        yield started[-1]
        started[-1].gone()

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()
        os.close(one.reader)


def test_all_ranks_end_well(launch) -> None:  # type: ignore[no-untyped-def]
    with launch("ready(); print('hello', flush=True); print('oops', file=sys.stderr)") as run:
        code, out, err = run.end()
    assert code == 0
    assert sorted(out.splitlines())[:2] == ["[rank 0]: hello", "[rank 1]: hello"]
    assert sorted(err.splitlines()) == ["[rank 0]: oops", "[rank 1]: oops"]


def test_the_first_failing_rank_ends_the_others_and_gives_the_code(launch) -> None:  # type: ignore[no-untyped-def]
    script = """
helper()
ready()
if rank == 1:
    sys.exit(41)
signal.pause()
"""
    with launch(script, nproc=3) as run:
        code, _, err = run.end()
    assert code == 41
    assert "[rank 1]: exited with code 41; ending the others" in err
    assert "[rank 0]: was killed by SIGTERM" in err
    assert err.count("ending the others") == 1


def test_last_lines_of_a_rank_come_before_its_end(launch) -> None:  # type: ignore[no-untyped-def]
    with launch("ready(); raise ValueError('x' * 200000)", nproc=1) as run:
        code, _, err = run.end()
    assert code == 1
    assert err.splitlines()[-1] == "[rank 0]: exited with code 1"
    assert sum(line.count("x" * 1000) for line in err.splitlines()) >= 195


def test_a_rank_that_a_signal_killed_gives_the_shells_code(launch) -> None:  # type: ignore[no-untyped-def]
    with launch("ready()\nif rank == 0: os.kill(os.getpid(), signal.SIGSEGV)\nsignal.pause()") as run:
        code, _, err = run.end()
    assert code == 128 + signal.SIGSEGV
    assert "[rank 0]: was killed by SIGSEGV" in err


def test_a_rank_that_ignores_the_request_is_killed_after_the_grace(launch) -> None:  # type: ignore[no-untyped-def]
    script = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready()
if rank == 0:
    # The other one must ignore the signal by now: it writes first.
    while not os.path.exists("deaf"):
        os.sched_yield()
    sys.exit(5)
open("deaf", "w").close()
signal.pause()
"""
    with launch(script, grace="0.2") as run:
        code, _, err = run.end()
    assert code == 5
    assert "[rank 1]: was killed by SIGKILL" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_every_rank_which_may_still_save(launch, number: int) -> None:  # type: ignore[no-untyped-def]
    script = """
def save(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGINT, save)
rest()
"""
    with launch(script) as run:
        run.ready(2)
        run.process.send_signal(number)
        code, out, _ = run.end()
    assert code == 0
    assert {"[rank 0]: saved", "[rank 1]: saved"} <= set(out.splitlines())


def test_other_signals_pass_without_ending_anything(launch) -> None:  # type: ignore[no-untyped-def]
    script = """
def handle(*_):
    print("received", flush=True)
    sys.exit(0)
signal.signal(signal.SIGUSR1, handle)
rest()
"""
    with launch(script) as run:
        run.ready(2)
        run.process.send_signal(signal.SIGUSR1)
        code, out, _ = run.end()
    assert code == 0
    assert out.count("received") == 2


def test_helpers_that_left_their_group_die_too(launch) -> None:  # type: ignore[no-untyped-def]
    with launch("helper(start_new_session=True); helper(stdout=subprocess.DEVNULL); ready()") as run:
        code, _, _ = run.end()
    assert code == 0


def test_the_launchers_own_violent_death_leaves_nothing(launch) -> None:  # type: ignore[no-untyped-def]
    with launch("helper(); ready(); signal.pause()", nproc=3) as run:
        run.ready(3)
        run.process.kill()
        run.process.wait()


def test_a_line_without_an_end_is_passed_on(launch) -> None:  # type: ignore[no-untyped-def]
    with launch("ready(); sys.stdout.write('50%'); sys.stdout.flush()", nproc=1) as run:
        _, out, _ = run.end()
    assert out.splitlines()[-1] == "[rank 0]: 50%"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nproc", "0", "x.py"], "--nproc must be 1 or more, got 0"),
        (["-m", "--no_python", "x"], "Python itself runs a module"),
        (["--nproc", "x", "x.py"], "invalid int value"),
        ([], "training_script"),
    ],
)
def test_launch_refuses_wrong_use(words: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "amlnode", "launch", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_that_is_not_there_fails_like_in_a_shell(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "amlnode", "launch", "--nproc", "2", "--no_python", "no-such-program"]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "[rank 0]: no-such-program: No such file or directory" in done.stderr
