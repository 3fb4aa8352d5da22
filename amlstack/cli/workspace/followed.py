"""A job of any workspace, followed: its states, those of its trials or steps, and the lines of all ranks."""

from __future__ import annotations

import contextlib
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from amlstack.cli.rehearsal.logs import Logs, ProcessKind
from amlstack.cli.workspace import found_jobs
from amlstack.cli.workspace.job_logs import JobLogs
from amlstack.provider.arm import THROTTLED, ArmError
from amlstack.provider.runs import Runs
from amlstack.provider.states import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amlstack.cli.workspace.found_jobs import WorkspaceJob
    from amlstack.cli.workspace.place import WorkspacePlace

PARENTS: Final = frozenset({"Sweep", "Pipeline"})
GONE: Final = "gone"
ENDED: Final = TERMINAL | {GONE}
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds between two looks on Azure; while nothing is new each pause is half as long again as the one before."""
LOCAL_PAUSE: Final = 0.3
PATIENCE: Final = 3600.0
"""Seconds for which a service that does not answer is asked again."""
LOCAL_PATIENCE: Final = 20.0
"""The same of one on this machine, which comes back at another port, if at all."""


class Shown(Protocol):
    """Where the lines of ranks and the news about the job go."""

    def line(self, who: str, text: str) -> None:
        """One line of a rank."""
        ...

    def news(self, text: str) -> None:
        """Another state, a connection that is lost or back."""
        ...


@dataclass(slots=True)
class _Part:
    """A job, a trial or a step with its logs."""

    logs: JobLogs
    kind: str
    label: str
    lines: Logs | None
    status: str = ""


@dataclass(slots=True)
class FollowedJob:
    """Prints what is new of a job at each look.

    Attributes:
        place: Its workspace's.
        job: The job.
        shown: Where everything goes.
        folder: For copies of its logs.
        only: The one rank whose lines are wanted; None for all.
        states: Whether states are news, and not the lines alone.
    """

    place: WorkspacePlace
    job: WorkspaceJob
    shown: Shown
    folder: Path
    only: int | None = None
    states: bool = True
    status: str = ""
    _parts: dict[str, _Part] = field(default_factory=dict)

    def look(self) -> bool:
        """Prints what is new; whether there was anything.

        Raises:
            ArmError: The service does not answer, or refuses.
        """
        record = Runs(self.place.arm).get(self.job.workspace, self.job.name)
        status = GONE if record is None else record.status
        changed = status != self.status
        if changed:
            self.status = status
            if self.states:
                self.shown.news(f"{self.job.name} is {status}")
        last = status in ENDED
        return self._below(self.job.name, self.job.kind, "", last=last) or changed

    @property
    def ended(self) -> bool:
        """Whether the job had ended when it was looked at last."""
        return self.status in ENDED

    def _below(self, name: str, kind: str, label: str, *, last: bool) -> bool:
        if kind not in PARENTS:
            return self._print(self._part(name, kind, label), last=last)
        grew = False
        for child in Runs(self.place.arm).plane.children(self.job.workspace, name):
            below, status = str(child["runId"]), str(child.get("status") or "")
            own = f"{label} {found_jobs.label(kind, child)}".strip()
            part = self._part(below, str(child.get("runType") or "Command"), own)
            if status != part.status:
                part.status, grew = status, True
                if self.states:
                    self.shown.news(f"{own} is {status}")
            grew = self._below(below, part.kind, own, last=last or status in TERMINAL) or grew
        return grew

    def _part(self, name: str, kind: str, label: str) -> _Part:
        if name not in self._parts:
            logs = JobLogs(self.place, self.job.workspace, name, self.folder / str(len(self._parts)))
            self._parts[name] = _Part(logs, _kind(kind), label, None)
        return self._parts[name]

    def _print(self, part: _Part, *, last: bool) -> bool:
        grew = part.logs.look()
        if part.lines is None:
            part.lines = Logs(part.logs.folder, ProcessKind.of(self._body(part.logs.name)), None, self.only)
        for who, text in part.lines.new(last=last):
            self.shown.line(f"{part.label} · {who}" if part.label else who, text)
        return grew

    def _body(self, name: str) -> dict[str, Any]:
        if name == self.job.name:
            return self.job.record.properties
        record = Runs(self.place.arm).find(self.job.workspace, name)
        return {} if record is None else record.properties


@dataclass(slots=True)
class SilentService:
    """Bears a service that does not answer for a while.

    Attributes:
        place: Whose service.
        news: Takes what a person should know.
    """

    place: WorkspacePlace
    news: Callable[[str], None]
    _since: float | None = None

    def answered(self) -> None:
        """It answers."""
        if self._since is not None:
            self.news("the service answers again")
        self._since = None

    def lost(self, error: ArmError) -> None:
        """It does not.

        Raises:
            ArmError: It refused, or has been silent for too long.
        """
        if not _passing(error):
            raise error
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self.news(f"{error.message.rstrip('.')}; the job goes on, asking again")
        if now - self._since > (LOCAL_PATIENCE if self.place.is_local else PATIENCE):
            raise error


def follow(
    place: WorkspacePlace, job: WorkspaceJob, shown: Shown, only: int | None = None, *, once: bool = False
) -> str:
    """Prints a job's logs, to its end or as they are now.

    Args:
        place: Its workspace's.
        job: The job.
        shown: Where lines and news go.
        only: The one rank whose lines are wanted; None for all.
        once: Print what is there and come back.

    Returns:
        The job's last status; ``gone`` when its record has vanished.

    Raises:
        ArmError: The service refused, or has not answered for `PATIENCE` seconds.
    """
    with _temporary() as folder:
        followed = FollowedJob(place, job, shown, folder, only, states=not once)
        if once:
            followed.look()
            return followed.status
        pause, patience = FIRST_PAUSE, SilentService(place, shown.news)
        while True:
            grew = False
            try:
                grew = followed.look()
            except ArmError as error:
                patience.lost(error)
            else:
                patience.answered()
                if followed.ended:
                    if not place.is_local:  # the last lines of a log may come after the end of its job
                        time.sleep(FIRST_PAUSE)
                        followed.look()
                    return followed.status
            pause = FIRST_PAUSE if grew else min(1.5 * pause, LONGEST_PAUSE)
            time.sleep(LOCAL_PAUSE if place.is_local else pause)


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="amlstack-logs-") as name:
        yield Path(name)


def _passing(error: ArmError) -> bool:
    return error.code == "ConnectionFailed" or error.status == THROTTLED or error.status >= 500


def _kind(run_type: str) -> str:
    """Run history's word for a job's type in the words of the resource manager, as far as it matters here."""
    lower = run_type.casefold()
    return "Sweep" if "sweep" in lower or "hyperdrive" in lower else "Pipeline" if "pipeline" in lower else "Command"
