"""SIGKILL of the engine, of the provider or of the sandbox's server at random moments of an `up`, under load.

Each round edits a job that still runs, and more of the stack, kills at a moment drawn from its seed, runs a plain `up`
again, and then asks: is the state what is declared, is the store whole, was no run submitted or started twice, does
exactly what is declared run? Jobs count their starts themselves. ``KILL_ROUNDS`` says how many rounds (`make kills`:
20), ``KILL_SEED`` where the seeds start; each round prints its seed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from amlstack.sandbox.server import daemon
from amlstack.sandbox.store.store import folder
from tests.support.harness import ANALYZER, processes_of_session
from tests.support.sandbox.sandbox_client import ML, ROOT, Arm
from tests.support.stack.small_jobs import FOREVER, job, runs, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.harness import Running, Stack
from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

FIRST = int(os.environ.get("KILL_SEED", "1"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("KILL_ROUNDS", "1")))
VICTIMS = ("engine", "provider", "server")
MOMENTS = 40
"""An `up` of this stack writes about twice as many events; most of the work is done by then."""
QUICK = "quick"
"""The one job that ends by itself; all others run until somebody ends them."""
MOST = 5
"""Jobs at once: the cluster always has a node for each."""
GROUP = f"{ROOT}/resourceGroups/rg-amlstack-test"
WORKSPACE = f"{GROUP}/providers/{ML}/ws-killed"
PATHS = (f"{ROOT}/resourceGroups", WORKSPACE, f"{WORKSPACE}/jobs", f"{WORKSPACE}/computes")
LIMIT = 120.0
"""Seconds in which a submitted job starts, unless it never does."""


class Load:
    """Clients that list and read while the engine works; what fails because the server was killed is no matter."""

    def __init__(self, home: Path, clients: int = 4) -> None:
        self._home = home
        self._over = threading.Event()
        self.answers: Counter[int] = Counter()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        chance = random.Random(number)
        arm: Arm | None = None
        # A pause in which the engine gets on: without one, clients and server have the machine to themselves.
        while not self._over.wait(0.05):
            # A server that has just been killed is not there, or not yet ready: the next question is another try.
            with contextlib.suppress(OSError, daemon.SandboxError, ValueError):
                found = daemon.find(self._home)
                if found is not None and (arm is None or arm.endpoint != found):
                    arm = Arm(found)
                if found is not None and arm is not None:
                    self.answers[arm.get(chance.choice(PATHS)).status] += 1


class Edits:
    """The changes that a person might make between two `up`s, drawn from a seed: the stack's files after each call."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.starts = folder / "starts"
        self.jobs: dict[str, int] = {"first": 0, "second": 0, QUICK: 0}
        self.most = 8
        for key, value in settings("ws-killed").items():
            stack.set(key, value)
        self.write()

    def draw(self, chance: random.Random) -> str:
        """One to three edits, in words; the first is of a job that runs."""
        made = [self._edit(chance.choice(sorted(self.lasting)))]
        for _ in range(chance.randint(0, 2)):
            kind = chance.choice(["edit", "edit", "add", "remove", "scale"])
            if kind == "add" and len(self.jobs) < MOST:
                name = f"job{chance.randrange(10**6)}"
                self.jobs[name] = 0
                made.append(f"add {name}")
            elif kind == "remove" and len(self.lasting) > 1:
                name = chance.choice(sorted(self.lasting))
                del self.jobs[name]
                made.append(f"remove {name}")
            elif kind == "scale":
                self.most = chance.randint(MOST, 8)
                made.append(f"scale to {self.most}")
            else:
                made.append(self._edit(chance.choice(sorted(self.jobs))))
        self.write()
        return ", ".join(made)

    def _edit(self, name: str) -> str:
        self.jobs[name] += 1
        return f"edit {name}"

    @property
    def lasting(self) -> set[str]:
        """The jobs that do not end by themselves."""
        return set(self.jobs) - {QUICK}

    @property
    def started(self) -> Counter[str]:
        """The number of starts of each declaration, ``NAME EDIT``, by the words of its own process."""
        return Counter(self.starts.read_text().splitlines() if self.starts.exists() else ())

    def wait_for_starts(self) -> None:
        """Until all that is declared has been started."""
        until = time.monotonic() + LIMIT
        while missing := {f"{name} {number}" for name, number in self.jobs.items()} - set(self.started):
            assert time.monotonic() < until, f"never started: {missing}"
            time.sleep(0.05)

    def write(self) -> None:
        files = [
            str(job(self.folder, name, self._command(name), environment_variables={"EDIT": str(number)}))
            for name, number in self.jobs.items()
        ]
        self.stack.set("amlstack:jobs", [{"file": file, "on_edit": "cancel"} for file in files])
        self.stack.set("amlstack:clusters[0].nodes.max", self.most)

    def _command(self, name: str) -> str:
        counted = f"echo {name} $EDIT >> {self.starts}"
        return counted if name == QUICK else f"{counted}; {FOREVER}"


@pytest.fixture(scope="module")
def edits(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Edits:
    made = Edits(own.stack, tmp_path_factory.mktemp("jobs"))
    own.stack.up(policy_packs=[ANALYZER]).ok()
    made.wait_for_starts()
    return made


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stack_converges_after_a_kill_at_a_random_moment(own: Own, edits: Edits, seed: int) -> None:
    chance = random.Random(seed)
    victim, moment = chance.choice(VICTIMS), chance.randrange(MOMENTS)
    changed = edits.draw(chance)
    _show(f"seed {seed}: {changed}; {victim} killed after {moment} events of the engine")

    with Load(own.home) as load:
        running = own.stack.start_up(policy_packs=[ANALYZER])
        _wait(running, moment)
        _kill(running, victim, own)
        first = running.result()
        again = own.stack.unlock().up("--refresh", policy_packs=[ANALYZER])
    _show(f"seed {seed}: that `up` ended with {first.code}; {sum(load.answers.values())} other requests answered")
    again.ok()

    state = own.stack.state()
    assert not state.get("pending_operations")
    assert own.stack.preview(policy_packs=[ANALYZER]).ok().changes == {}
    declared = {one["outputs"]["jobId"].rsplit("/", 1)[-1] for one in own.stack.resources("jobs:Job").values()}
    known = runs(own.home).values()
    assert declared <= {row.name for row in known}
    submitted = Counter(f"{_job_of(row.name)} {row.properties['environmentVariables']['EDIT']}" for row in known)
    assert set(submitted.values()) == {1}, f"submitted twice: {submitted}"
    edits.wait_for_starts()
    active = {row.name for row in known if row.active and _job_of(row.name) != QUICK}
    lasting = {name for name in declared if _job_of(name) != QUICK}
    assert active - lasting == set(), "a run goes on that no resource stands for"
    assert lasting - active == set(), "a run that is declared was ended"
    assert set(edits.started) <= set(submitted), "something ran that no record knows"
    assert set(edits.started.values()) == {1}, f"started twice: {edits.started}"
    with contextlib.closing(sqlite3.connect(folder(own.home) / "state.db")) as store:
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _job_of(run: str) -> str:
    return run.rpartition("-")[0]


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")  # shown by `make kills`, and with a failure


def _wait(running: Running, moment: int) -> None:
    seen = 0

    def enough(_: object) -> bool:
        nonlocal seen
        seen += 1
        return seen > moment

    with contextlib.suppress(AssertionError):  # it was over before
        running.wait_for(enough)


def _kill(running: Running, victim: str, own: Own) -> None:
    if victim == "engine":
        running.kill()
    elif victim == "provider":
        for pid in _providers(running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        server = daemon.find(own.home)
        assert server is not None
        os.kill(server.pid, signal.SIGKILL)
        own.stack.env.update(daemon.up(own.home).environ())


def _providers(running: Running) -> Iterator[int]:
    for pid in processes_of_session(running.process.pid):
        with contextlib.suppress(OSError):
            if b"amlstack.provider" in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield pid
