"""Each verb that asks a workspace, interrupted or cut off while a request is under way: one line, and nothing half."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from tests.support.cli.verbs import Verbs, ended
from tests.support.running import running_sandbox
from tests.support.sandbox.injected_faults import BROKEN, CUT, HELD, HUNG_UP, THROTTLED, inject, injected
from tests.support.sandbox.sandbox_client import Arm
from tests.support.stack.small_jobs import IMAGE

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.running import Sandbox

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(600)]

WEIGHTS: Final = "weights" * 1000
WRITES: Final = (
    "echo ready && mkdir -p outputs && i=0; while [ $i -lt 1000 ]; do printf weights; i=$((i+1)); done > outputs/w.bin"
)


@dataclass(frozen=True)
class Case:
    """A verb, and the request of it that is disturbed.

    Attributes:
        words: What is typed; `{ended}` and `{runs}` are jobs.
        method, path: The request.
        left: What a Ctrl-C leaves, in the words of the verb.
        done: What it prints when all is well.
    """

    words: tuple[str, ...]
    method: str
    path: str
    left: str
    done: str

    @property
    def rule(self) -> dict[str, Any]:
        """The request, for the service that disturbs it."""
        return {"method": self.method, "path": self.path}


FAULTS: Final = (CUT, THROTTLED, BROKEN)
FAULTS_OF_BLOBS: Final = (THROTTLED, BROKEN)
"""The answer that is cut is none of the blob service's: `test_downloads_are_whole` cuts those."""
UNCHANGED: Final = "interrupted; nothing was changed"
CASES: Final = {
    "submit": Case(
        ("submit", "whole.yml"), "PUT", ".*/jobs/whole-.*", "interrupted; what was accepted runs", "submitted whole-"
    ),
    "status": Case(("status",), "GET", ".*/jobs", UNCHANGED, "Completed"),
    "logs": Case(("logs", "{ended}"), "GET", ".*/runs/ended-[^/]+/details", UNCHANGED, "ready"),
    "download": Case(
        ("download", "{ended}", "--to", "got"), "GET", ".*/w\\.bin", "the same command goes on from here", "files in"
    ),
    "open": Case(("open", "{ended}", "--no-browser"), "GET", ".*/jobs/ended-[^/]+", UNCHANGED, "https://ml.azure.com"),
    "diagnose": Case(("diagnose", "{ended}"), "GET", ".*/runs/ended-[^/]+/details", UNCHANGED, "ended"),
    "report": Case(
        ("report", "{ended}", "--output", "r.html"), "GET", ".*/runs/ended-[^/]+/details", UNCHANGED, "r.html: "
    ),
    "cancel": Case(
        ("cancel", "{runs}"), "POST", ".*/jobs/runs-[^/]+/cancel", "was asked to end is not known", "is canceled"
    ),
}


@dataclass
class Disturbed:
    """A workspace whose service can be disturbed; one job has ended, one runs, one is not submitted yet."""

    sandbox: Sandbox
    folder: Path
    verbs: Verbs
    jobs: dict[str, str]

    def words(self, case: Case) -> list[str]:
        """The words of a verb, with the jobs that they name."""
        return [word.format(**self.jobs) for word in case.words]

    @contextmanager
    def faults(self, *rules: dict[str, Any]) -> Iterator[int]:
        """The service fails so, meanwhile; how many requests were disturbed before."""
        before = len(injected(self.sandbox.home))
        inject(self.sandbox.home, *rules)
        try:
            yield before
        finally:
            inject(self.sandbox.home)

    def since(self, before: int) -> list[str]:
        """The faults from a number on."""
        return [fault for fault, _, _ in injected(self.sandbox.home)[before:]]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disturbed]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as sandbox:
        arm = Arm(sandbox.endpoint)
        workspace = arm.make_workspace("ws-cut")
        arm.make_cluster(workspace, "gpu", 4)
        arm.put(f"{workspace}/environments/small/versions/1", {"properties": {"image": IMAGE}})
        folder = tmp_path_factory.mktemp("folder")
        end = folder / "end"
        commands = {
            "ended": WRITES,
            "runs": f"while [ ! -e {end} ]; do sleep 0.1; done",
            "whole": "true",
        }
        for name, command in commands.items():
            fields = {"name": name, "command": command, "environment": "azureml:small:1", "compute": "azureml:gpu"}
            (folder / f"{name}.yml").write_text(yaml.safe_dump(fields), "utf-8")
        verbs, jobs = Verbs(folder, sandbox.environ), dict[str, str]()
        for name, more in (("runs", []), ("ended", ["--watch"])):
            ran = verbs("submit", f"{name}.yml", *more).ok()
            (jobs[name],) = re.findall(rf"submitted ({name}-\w+)", ran.out)
        yield Disturbed(sandbox, folder, verbs, jobs)
        end.touch()


def wait_until_held(space: Disturbed, before: int, process: subprocess.Popen[str]) -> None:
    """Returns once the service holds a request, or fails when the verb ends without."""
    with os.fdopen(os.pidfd_open(process.pid)) as ending:
        while HELD not in space.since(before):
            assert not select.select([ending], [], [], 0.02)[0], process.communicate()


def until(happened: Callable[[], bool]) -> None:
    """Returns once the service has noticed something."""
    while not happened():
        time.sleep(0.01)


@pytest.mark.parametrize("verb", CASES)
def test_a_verb_that_was_interrupted_is_run_again_through_faults(space: Disturbed, verb: str) -> None:
    case = CASES[verb]
    with space.faults({**case.rule, "fault": HELD}) as before:
        process = space.verbs.start(*space.words(case))
        wait_until_held(space, before, process)
        process.send_signal(signal.SIGINT)
        ran = ended(process)  # the request is held until after this
        assert ran.code == 130, ran.printed
        assert case.left in ran.err.splitlines()[-1], ran.printed
        assert ran.printed.count("interrupted") == 1, ran.printed
        assert "Traceback" not in ran.printed
        until(lambda: HUNG_UP in space.since(before))
    assert verb != "download" or not (space.folder / "got/artifacts/outputs/w.bin").exists()
    assert verb != "report" or not [*space.folder.glob("*r.html*")]
    if verb in {"submit", "cancel"}:
        rows = {row["name"]: row["status"] for row in space.verbs("status", "--json").json}
        assert rows[space.jobs["runs"]] == "Running" or verb == "submit"
        assert not [name for name in rows if name.startswith("whole-")] or verb == "cancel"

    faults = FAULTS_OF_BLOBS if verb == "download" else FAULTS
    soon = {**case.rule, "times": 1, "headers": {"retry-after-ms": "5"}}
    with space.faults(*({**soon, "fault": fault} for fault in faults)) as before:
        ran = space.verbs(*space.words(case))
        assert ran.code == 0, ran.printed
        assert space.since(before) == [*faults], ran.printed
    assert case.done in ran.printed
    assert "Traceback" not in ran.printed
    if verb == "download":
        assert (space.folder / "got/artifacts/outputs/w.bin").read_text() == WEIGHTS
        assert not list((space.folder / "got").rglob(".*"))
    if verb == "submit":
        (name,) = re.findall(r"submitted (whole-\w+)", ran.out)
        assert f"{name} is there already" in space.verbs(*space.words(case)).ok().out


def test_without_a_service_each_verb_says_so_in_one_line(space: Disturbed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"https://127.0.0.1:{closed.getsockname()[1]}"
    service = space.sandbox.endpoint.url
    environ = {name: value.replace(service, nobody) for name, value in space.sandbox.environ.items()}
    verbs = Verbs(space.folder, environ)
    waiting = {verb: verbs.start(*space.words(case)) for verb, case in CASES.items()}  # at the same time
    for verb, process in waiting.items():
        ran = ended(process)
        assert ran.code == 1, (verb, ran.printed)
        assert "Traceback" not in ran.printed
        last = ran.err.splitlines()[-1]
        assert "Is the network there, and HTTPS_PROXY right?" in last, (verb, ran.printed)
        assert "0x" not in last, (verb, last)
