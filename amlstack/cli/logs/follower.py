"""A job of any workspace, followed: its states, those of its trials or steps, and the lines of all ranks."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from amlstack.base import text as text_module
from amlstack.cli.logs.files import JobLogs, Logs, ProcessKind, Tail
from amlstack.provider.arm import THROTTLED, ArmClient, ArmError
from amlstack.provider.runs import TERMINAL, Runs
from amlstack.sandbox.files import environments
from amlstack.sandbox.store.folders import folder as sandbox_folder
from amlstack.sandbox.store.folders import job_folder
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from amlstack.cli.console import Progress
    from amlstack.sandbox.files.environments import CodeCopies

PARENTS: Final = frozenset({"Sweep", "Pipeline"})
GONE: Final = "gone"
ENDED: Final = TERMINAL | {GONE}
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds between two looks on Azure; while nothing is new each pause is half as long again as the one before."""
LOCAL_PAUSE: Final = 0.3
GLANCE: Final = 0.1
"""Seconds between two looks at the files of this machine's sandbox."""
LONGEST_SILENCE: Final = 5.0
"""Seconds without a change of the sandbox's tables, after which it is asked nevertheless, so that its end is seen."""
PATIENCE: Final = 3600.0
"""Seconds for which a service that does not answer is asked again."""
LOCAL_PATIENCE: Final = 20.0
"""The same of one on this machine, which comes back at another port, if at all."""


class Shown(Protocol):
    """The outputs for the lines of ranks and the news about the job."""

    def line(self, who: str, text: str) -> None:
        """One line of a rank."""
        ...

    def news(self, text: str) -> None:
        """Another state, a connection that is lost or back."""
        ...


@dataclass(frozen=True, slots=True)
class InProgress:
    """Lines and news, each with the seconds since the start."""

    progress: Progress

    def line(self, who: str, text: str) -> None:
        """One line of a rank."""
        self.progress.note(f"[{who}] {text}")

    def news(self, text: str) -> None:
        """Another state."""
        self.progress.step(text)


@dataclass(slots=True)
class WorkspaceLogs:
    """Logs of any workspace, copied to this machine.

    Attributes:
        arm: A client of the resource manager.
        workspace: ARM id of the workspace.
        folder: For the copies.
    """

    arm: ArmClient
    workspace: str
    folder: Path
    _pause: float = FIRST_PAUSE
    _count: int = 0

    def logs(self, name: str) -> JobLogs:
        """The logs of a job, a trial or a step."""
        self._count += 1
        return JobLogs(self.arm, self.workspace, name, self.folder / str(self._count))

    def wait(self, *, grew: bool) -> bool:
        """Waits the longer, the longer nothing is new; True: the service is asked in each look."""
        self._pause = FIRST_PAUSE if grew else min(1.5 * self._pause, LONGEST_PAUSE)
        time.sleep(LOCAL_PAUSE if is_local(self.arm.endpoint) else self._pause)
        return True


@dataclass(frozen=True, slots=True)
class SandboxJobFiles:
    """The logs of a job of this machine's sandbox, where its ranks write them."""

    folder: Path
    copies: CodeCopies

    def look(self) -> bool:
        """Nothing is to be copied."""
        return False


@dataclass(slots=True)
class SandboxLogs:
    """Logs of this machine's sandbox, which is asked when its tables have changed.

    Attributes:
        home: The sandbox's home.
    """

    home: Path
    _tables: tuple[object, ...] = ()
    _asked: float = 0.0

    def logs(self, name: str) -> SandboxJobFiles:
        """The logs of a job, a trial or a step."""
        with closing(Store(self.home)) as store:
            return SandboxJobFiles(job_folder(self.home, name), environments.code_of(store, store.jobs[name]))

    def wait(self, *, grew: bool) -> bool:
        """Waits a moment; whether the service is asked in the next look."""
        del grew
        time.sleep(GLANCE)
        tables, now = self._changed(), time.monotonic()
        if tables == self._tables and now < self._asked + LONGEST_SILENCE:
            return False
        self._tables, self._asked = tables, now
        return True

    def _changed(self) -> tuple[object, ...]:
        """A value that changes whenever the sandbox writes to its tables."""
        found = []
        for file in sorted(sandbox_folder(self.home).glob("state.db*")):
            try:
                stat = file.stat()
            except FileNotFoundError:  # the tables' journal comes and goes
                continue
            found.append((file.name, stat.st_mtime_ns, stat.st_size))
        return tuple(found)


@dataclass(slots=True)
class Part:
    """The job itself, a trial or a step as it was last seen.

    Attributes:
        name: In the workspace.
        kind: ``Command``, ``Sweep`` or ``Pipeline``.
        label: ``trial 3`` or the step's name; below a step that is a sweep both; empty of the job itself.
        run: Its entry in run history; empty of the job itself.
        status: The status that was printed last.
    """

    name: str
    kind: str
    label: str
    files: JobLogs | SandboxJobFiles
    notes: Tail
    run: Mapping[str, Any] = field(default_factory=dict)
    status: str = ""
    lines: Logs | None = None


@dataclass(slots=True)
class Follower:
    """Prints what is new of a job at each look.

    Attributes:
        arm: A client of the resource manager.
        job_id: ARM id of the job.
        source: Where its logs are.
        shown: Where everything goes.
        only: The one rank whose lines are wanted, of each child; None for all.
        states: Whether states are news, and not the lines alone.
        lines: Whether lines are printed, and not the job's own states alone.
        record: The job's ``properties`` as they were last seen.
    """

    arm: ArmClient
    job_id: str
    source: WorkspaceLogs | SandboxLogs
    shown: Shown
    only: int | None = None
    states: bool = True
    lines: bool = True
    status: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    _parts: dict[str, Part] = field(default_factory=dict)
    _silent: float | None = None
    _runs: Runs = field(init=False)

    def __post_init__(self) -> None:
        self._runs = Runs(self.arm)
        self._part(self.name, "", "")

    @property
    def workspace(self) -> str:
        """ARM id of the workspace."""
        return self.job_id.rpartition("/jobs/")[0]

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job_id.rpartition("/")[2]

    @property
    def folder(self) -> Path:
        """The folder of the job's own logs."""
        return self._parts[self.name].files.folder

    @property
    def children(self) -> dict[str, Part]:
        """Trials and steps by their names, in the order in which they were seen."""
        return {name: part for name, part in self._parts.items() if part.run}

    def follow(self) -> str:
        """Prints all until the job's end.

        Returns:
            The job's last status; ``gone`` when its record has vanished.

        Raises:
            ArmError: The service refused, or has not answered for `PATIENCE` seconds.
        """
        ask = True
        while True:
            grew = False
            try:
                grew = self.look(ask=ask)
            except ArmError as error:
                self._lost(error)
            else:
                self._answered()
                if self.status in ENDED:
                    if self.lines:  # the last lines of a log may come after the end of its job
                        self.source.wait(grew=True)
                        self.look(ask=False)
                    return self.status
            ask = self.source.wait(grew=grew) or self._silent is not None

    def look(self, *, ask: bool = True) -> bool:
        """Prints what is new; whether there was anything.

        Args:
            ask: Ask the service for states and children, and look not at the logs alone.

        Raises:
            ArmError: The service does not answer, or refuses.
        """
        changed = ask and self._asked()
        if not self.lines or (not self.record and self.status != GONE):
            return changed
        job = self._parts[self.name]
        job.kind = str(self.record.get("jobType") or "Command")
        return self._look(job, ask=ask, last=self.status in ENDED) or changed

    def _asked(self) -> bool:
        found = self._runs.get(self.workspace, self.name)
        status = GONE if found is None else found.status
        self.record = self.record if found is None else found.properties
        if status == self.status:
            return False
        self.status = status
        if self.states:
            self.shown.news(f"job {self.name} is {status}")
        return True

    def _look(self, part: Part, *, ask: bool, last: bool) -> bool:
        """Prints what is new of a part and of all below it."""
        who = part.label or (part.kind.lower() if part.kind in PARENTS else "runner")
        for text in part.notes.lines(last=last):
            self.shown.line(who, text.partition(" ")[2])  # without its time: progress has its own
        if part.kind not in PARENTS:
            return self._print(part, last=last)
        grew = False
        known = [child.run for child in self._parts.values() if child.run.get("parentRunId") == part.name]
        for run in self._runs.plane.children(self.workspace, part.name) if ask else known:
            text = f"{part.label} {label(part.kind, run)}".strip()
            child = self._part(str(run["runId"]), _kind(str(run.get("runType") or "")), text)
            child.run, status = run, str(run.get("status") or "")
            if status != child.status:
                child.status, grew = status, True
                if self.states:
                    self.shown.news(f"{child.label} is {status}")
            grew = self._look(child, ask=ask, last=last or status in TERMINAL) or grew
        return grew

    def _part(self, name: str, kind: str, text: str) -> Part:
        if name not in self._parts:
            files = self.source.logs(name)
            self._parts[name] = Part(name, kind, text, files, Tail(files.folder / "runner.log"))
        return self._parts[name]

    def _print(self, part: Part, *, last: bool) -> bool:
        grew = part.files.look()
        if part.lines is None:
            record = self.record if part.name == self.name else self._properties(part.name)
            part.lines = Logs(part.files.folder, ProcessKind.of(record), part.files.copies, self.only)
        for who, text in part.lines.new(last=last):
            grew = True
            self.shown.line(f"{part.label} · {who}" if part.label else who, text)
        return grew

    def _properties(self, name: str) -> Mapping[str, Any]:
        found = self._runs.find(self.workspace, name)
        return {} if found is None else found.properties

    def _answered(self) -> None:
        if self._silent is not None:
            self.shown.news("the service answers again")
        self._silent = None

    def _lost(self, error: ArmError) -> None:
        """Bears a service that does not answer for a while."""
        if error.code != "ConnectionFailed" and error.status != THROTTLED and error.status < 500:
            raise error
        now = time.monotonic()
        if self._silent is None:
            self._silent = now
            self.shown.news(f"{error.message.rstrip('.')}; the job goes on, asking again")
        if now - self._silent > (LOCAL_PATIENCE if is_local(self.arm.endpoint) else PATIENCE):
            raise error


def follow(
    arm: ArmClient, job_id: str, shown: Shown, only: int | None = None, *, once: bool = False, lines: bool = True
) -> str:
    """Prints the logs of a job of any workspace, to its end or as they are now.

    Args:
        arm: A client of the resource manager.
        job_id: ARM id of the job.
        shown: Where lines and news go.
        only: The one rank whose lines are wanted; None for all.
        once: Print what is there and come back.
        lines: Whether lines are printed, and not the job's own states alone.

    Returns:
        The job's last status; ``gone`` when its record has vanished.

    Raises:
        ArmError: The service refused, or has not answered for `PATIENCE` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="amlstack-logs-") as folder:
        source = WorkspaceLogs(arm, job_id.rpartition("/jobs/")[0], Path(folder))
        follower = Follower(arm, job_id, source, shown, only, states=not once, lines=lines)
        if not once:
            return follower.follow()
        follower.look()
        return follower.status


def with_reason(arm: ArmClient, job_id: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A job's record (``properties``), and under ``error`` why it failed; empty when it did not."""
    workspace, name = job_id.rsplit("/jobs/", 1)
    return {**record, "error": Runs(arm).why(workspace, name) if record["status"] == "Failed" else ""}


def is_local(arm_endpoint: str) -> bool:
    """True where a resource manager is on this machine."""
    return urlsplit(arm_endpoint).hostname in {"127.0.0.1", "::1", "localhost"}


def label(kind: str, child: Mapping[str, Any]) -> str:
    """``trial 3``, or a step's name."""
    name = str(child.get("runId"))
    own = f"trial {name.rsplit('_', 1)[-1]}" if kind == "Sweep" else str(child.get("displayName") or name)
    return text_module.line(own)


def _kind(run_type: str) -> str:
    """Run history's word for a job's type in the words of the resource manager, as far as it matters here."""
    lower = run_type.casefold()
    return "Sweep" if "sweep" in lower or "hyperdrive" in lower else "Pipeline" if "pipeline" in lower else "Command"
