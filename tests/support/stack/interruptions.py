"""Ctrl-C at each step of `amlstack up`, on a terminal: what was in flight, in which order things ended, and how fast.

One stack is brought up by many commands, each interrupted one step further than the one before. A step's moment is a
line that the command prints, or a request that the sandbox holds. Our provider leaves a held request at once: the
command ends while it is still held, and it has not taken effect. azure-native (its stand-in here) waits for the answer:
the request is let go after the Ctrl-C has arrived, and the command ends after it.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from amlstack.cli.console import INTERRUPTED
from tests.support.sandbox import injected_faults
from tests.support.sandbox.injected_faults import HELD, HUNG_UP, LET_GO
from tests.support.stack.fresh_clone import LIMIT, Clone
from tests.support.stack.small_jobs import job, runs, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STACK: Final = "prod"
WRITES: Final = ("PUT", "POST")
_OPENED: Final = """\
import os, sys
terminal = os.open(sys.argv[1], os.O_RDWR)
for stream in range(3):
    os.dup2(terminal, stream)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A process without a terminal gets the first one that it opens: what is typed there as Ctrl-C is a signal to it."""
GATED: Final = "while [ ! -e {gate} ]; do sleep 0.1; done"


@dataclass(frozen=True)
class StepOfUp:
    """A step of a command, and how its moment is known.

    Attributes:
        name: For the table.
        prints: Words that the command prints when it is there; empty where a request is held.
        method, path: The request that is held.
        awaited: Whether what is in flight is waited for, as azure-native does.
        asks: Whether the command asks before it applies, and is left at its question.
        verb: ``up`` or ``down``.
    """

    name: str
    prints: str = ""
    method: str = ""
    path: str = ""
    awaited: bool = False
    asks: bool = False
    verb: str = "up"

    @property
    def rule(self) -> dict[str, Any]:
        """The rule by which the sandbox holds the request."""
        return {"fault": HELD, "method": self.method, "path": self.path}

    def meets(self, method: str, path: str) -> bool:
        """True where that is the request of this step."""
        return method == self.method and re.fullmatch(self.path, path, re.IGNORECASE) is not None


STEPS: Final = (
    StepOfUp("settings are judged", "settings of"),
    StepOfUp("the engine is looked for", "Pulumi engine"),
    StepOfUp("the preview begins", "previewing"),
    StepOfUp("preview: quota is asked for", method="GET", path=".*/locations/[^/]+/usages"),
    StepOfUp("the question", "Apply this to", asks=True),
    StepOfUp("azure-native makes the group", method="PUT", path=".*/resourceGroups/[^/]+", awaited=True),
    StepOfUp("azure-native makes the workspace", method="PUT", path=".*/workspaces/ws-[^/]+", awaited=True),
    StepOfUp("the managed network is provisioned", method="POST", path=".*/provisionManagedNetwork"),
    StepOfUp("azure-native makes the cluster", method="PUT", path=".*/computes/[^/]+", awaited=True),
    StepOfUp("the environment is looked up", method="GET", path=".*/environments/.*"),
    StepOfUp("the environment is made", method="PUT", path=".*/environments/.*"),
    StepOfUp("a file of the code is uploaded", method="PUT", path="/blob/.*"),
    StepOfUp("the code is registered", method="PUT", path=".*/codes/.*"),
    StepOfUp("the run is looked up", method="GET", path=".*/jobs/[^/]+"),
    StepOfUp("the run is submitted", method="PUT", path=".*/jobs/[^/]+"),
    StepOfUp("`wait: completed`", "waiting until it"),
    StepOfUp("`wait: completed`: the run is looked at", method="GET", path=".*/jobs/[^/]+"),
    StepOfUp("down: the run is asked to end", method="POST", path=".*/jobs/[^/]+/cancel", verb="down"),
    StepOfUp(
        "down: azure-native deletes the cluster", method="DELETE", path=".*/computes/[^/]+", verb="down", awaited=True
    ),
)


@dataclass
class Interrupted:
    """The end of a command after Ctrl-C.

    Attributes:
        step: Where it was.
        code: Its exit status.
        text: What it printed.
        seconds: From the Ctrl-C, or from the answer that it waited for, to the end of its process.
        requests: What the held request met; the rules that hold it change after the end only, where it is not awaited.
        left: Command lines of processes that outlived it, the sandbox's own apart.
    """

    step: StepOfUp
    code: int
    text: str
    seconds: float
    requests: list[str]
    left: list[str]

    @property
    def wrong(self) -> list[str]:
        """The differences from the promise, in words; `make interruptions` alone judges the seconds."""
        found = [] if self.code == 130 else [f"exit status {self.code}"]
        if "Traceback" in self.text:
            found.append("a traceback is no sentence")
        if self.left:
            found.append(f"left running: {self.left}")
        met = {HELD, LET_GO if self.step.awaited else HUNG_UP} if self.step.method else set()
        if {*self.requests} != met:
            found.append(f"what was in flight met {self.requests}, not {met}")
        return found


class Typed:
    """``amlstack WORDS`` on a terminal of its own."""

    def __init__(self, clone: Clone, words: Sequence[str]) -> None:
        self._terminal, self._inside = os.openpty()
        python = str(clone.folder / ".venv" / "bin" / "python")
        command = [python, "-c", _OPENED, os.ttyname(self._inside), python, "-m", "amlstack.cli.main", *words]
        self.process = subprocess.Popen(command, cwd=clone.folder, env=clone.environ, start_new_session=True)
        self._text = bytearray()
        self._grown = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        return self._text.decode(errors="replace").replace("\r\n", "\n")

    def wait_for(self, words: str) -> None:
        """Until it has printed that; fails if it ends without it."""
        with self._grown:
            self._grown.wait_for(lambda: words in self.text or not self._reader.is_alive(), LIMIT)
        assert words in self.text, f"never printed {words!r}:\n{self.text}"

    def wait_until(self, happened: Callable[[], bool]) -> None:
        """Until something has happened elsewhere; fails if it ends before."""
        while not happened():
            assert self.process.poll() is None, f"ended by itself:\n{self.text}"
            time.sleep(0.01)

    def rests(self) -> bool:
        """True where its main thread sleeps, and went on sleeping for a while: it waits for what is typed.

        Python looks for signals before it waits for a key: one that comes in between is seen at the next key alone.
        """
        first = self._scheduling()
        time.sleep(0.05)
        return first == self._scheduling() and first[0] == "S"

    def _scheduling(self) -> tuple[str, str]:
        lines = Path(f"/proc/{self.process.pid}/status").read_text("utf-8").splitlines()
        known = dict(line.split(":", 1) for line in lines)
        return known["State"].split()[0], known["voluntary_ctxt_switches"].strip()

    def interrupt(self) -> float:
        """Types Ctrl-C; when."""
        os.write(self._terminal, b"\x03")
        return time.monotonic()

    def end(self) -> float:
        """Waits for its end; when that was."""
        self.process.wait(LIMIT)
        at = time.monotonic()
        os.close(self._inside)
        self._reader.join()
        os.close(self._terminal)
        return at

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # nobody is on the terminal any more
            while chunk := os.read(self._terminal, 65536):
                with self._grown:
                    self._text += chunk
                    self._grown.notify_all()
        with self._grown:
            self._grown.notify_all()


@dataclass
class Interruptions:
    """A clone with a stack that is brought up step by step.

    Attributes:
        clone: The copy of the project.
        gate: A file that lets the job end.
        played: What was interrupted so far.
    """

    clone: Clone
    gate: Path
    played: list[Interrupted] = field(default_factory=list)

    @classmethod
    def made(cls, folder: Path) -> Interruptions:
        """A clone below ``folder`` with its sandbox and a stack of one cluster and one job that is waited for."""
        (folder / "clone").mkdir()
        clone = Clone.made(folder / "clone")
        jobs, gate = clone.folder / "held", folder / "gate"
        (jobs / "src").mkdir(parents=True)
        (jobs / "src" / "quick.py").write_text("print('quick')\n")
        job(jobs, "gated", GATED.format(gate=gate), code="src")
        config: dict[str, Any] = settings("ws-held")
        config["amlstack:clusters"] = config["amlstack:clusters"][:1]
        config["amlstack:jobs"] = [{"file": "held/gated.yml", "wait": "completed"}]
        file = clone.folder / f"Pulumi.{STACK}.yaml"
        file.write_text(yaml.safe_dump({"config": config}, sort_keys=False))
        assert clone.run("sandbox", "up").code == 0
        return cls(clone, gate)

    def play(self, step: StepOfUp) -> Interrupted:
        """One command, and a Ctrl-C at its step."""
        home = self.clone.home
        before = len(injected_faults.injected(home))

        def requests() -> list[str]:
            entries = injected_faults.injected(home)[before:]
            return [fault for fault, method, path in entries if step.meets(method, path)]

        resting = self.clone.processes()
        later = STEPS[STEPS.index(step) + 1 :]
        # What comes later stays where it is, so that each step begins with nothing of the next ones done.
        held_later = [one.rule for one in later if one.method in WRITES and not one.awaited]
        injected_faults.inject(home, *([step.rule] if step.method else ()), *held_later)
        words = [step.verb, "--stack", STACK, "--sandbox", *(() if step.asks else ("--yes",))]
        typed = Typed(self.clone, words)
        try:
            if step.method:
                typed.wait_until(lambda: HELD in requests())
            else:
                typed.wait_for(step.prints)
                if step.asks:
                    typed.wait_until(typed.rests)
            since = typed.interrupt()
            if step.awaited:
                typed.wait_for(INTERRUPTED)
                injected_faults.inject(home, *held_later)
                since = time.monotonic()
            ended = typed.end()
        finally:
            if typed.process.poll() is None:
                typed.process.kill()
                typed.end()
        while step.method and not {LET_GO, HUNG_UP} & {*requests()}:
            time.sleep(0.01)  # the sandbox sees the end of a connection after its client's own
        injected_faults.inject(home)
        left = [words for pid, words in self.clone.processes().items() if pid not in resting and _is_ours(words)]
        code, text = typed.process.returncode, typed.text
        self.played.append(Interrupted(step, code, text, ended - since, requests(), left))
        return self.played[-1]

    def runs(self) -> list[str]:
        """Names of the runs that the sandbox knows."""
        return [row.name for row in runs(self.clone.home).values()]


def _is_ours(words: str) -> bool:
    """True where a process belongs to a command, and not to the sandbox or a run of it."""
    return "pulumi" in words or "amlstack.provider" in words or "amlstack.cli.main" in words
