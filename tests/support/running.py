"""Values of the root conftest's fixtures, importable from every test folder, as ``conftest`` is not."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.harness import Stack


@dataclass(frozen=True)
class Engine:
    """The engine under test: what to put on PATH, its version, and where it came from (path, release, build)."""

    folders: tuple[Path, ...]
    version: str
    source: str


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox with a home of its own; ``environ`` is all that a client needs to talk to it."""

    home: Path
    endpoint: Any
    environ: dict[str, str]


class MakeStack(Protocol):
    """``stack("two_boxes")`` or ``stack(PROJECT)``; see ``harness.Stack``."""

    def __call__(
        self,
        program: str | Path,
        *,
        sandbox: Sandbox | None = None,
        name: str = "test",
        env: dict[str, str] | None = None,
    ) -> Stack: ...


FAULTS = "AMLSTACK_SANDBOX_WRAPPER", "tests.support.sandbox.injected_faults:InjectedFaults"
"""Variable and value that let a sandbox fail as its ``faults.json`` says."""


@contextmanager
def running_sandbox(home: Path) -> Iterator[Sandbox]:
    """The daemon with ``AMLSTACK_HOME`` set to ``home``, here and for its clients, until the context ends."""
    from amlstack.sandbox.server import daemon

    with ended_with_us(home):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AMLSTACK_HOME", str(home))
            patch.setenv(*FAULTS)
            endpoint = daemon.up()
        try:
            # Clients in Python read the file for each connection, 0.05 s for all authorities of a machine.
            own = dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), str(endpoint.ca))
            yield Sandbox(home, endpoint, {**endpoint.environ(), "AMLSTACK_HOME": str(home), **own})
        finally:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("AMLSTACK_HOME", str(home))
                daemon.down()


# Waits for a word or for the end of whoever would say it. A killed test run says nothing. It is given the home, and has
# it neither on its command line nor in its environment: by these, tests look for what a sandbox has left running.
_HEIR = """
import sys
home = sys.stdin.readline().rstrip()
if not sys.stdin.read(1):
    from pathlib import Path
    from amlstack.sandbox.server import daemon
    daemon.down(Path(home))
"""


@contextmanager
def ended_with_us(home: Path) -> Iterator[None]:
    """Takes the sandbox of a home down when this process is killed: a server and its jobs outlive who started them."""
    heir = subprocess.Popen(
        [sys.executable, "-c", _HEIR],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what is sent to our group, a Ctrl-C, is not for it
    )
    assert heir.stdin is not None
    heir.stdin.write(f"{home}\n".encode())
    heir.stdin.flush()
    try:
        yield
    finally:
        heir.communicate(b"+")


def left_of_jobs(home: Path) -> tuple[int, ...]:
    """Processes of jobs that stay; a runner has a moment's work left when its job has to end."""
    from amlstack.sandbox import processes

    for pid in processes.marked(home):
        with contextlib.suppress(ProcessLookupError), os.fdopen(os.pidfd_open(pid)) as handle:
            select.select([handle], [], [], 60)
    return processes.marked(home)
