"""Follow a job that runs on the sandbox: its states as they change, its rank logs as they grow."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.cli.watch import Watch
from amlstack.provider.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from amlstack.provider.arm import ArmClient

TERMINAL = frozenset({"Completed", "Failed", "Canceled", "NotResponding"})
STATE = "state.db"
"""The file of the sandbox's tables, and the beginning of the names of those beside it."""
END = "report.json"
"""Is written into a job's folder at its end."""
ASK_SECONDS = 0.25
"""Between two questions for a job's state at least, but at its end: every metric that any job logs changes a table."""


@dataclass(slots=True)
class Tail:
    """The lines that a growing file gained since the last look; an unfinished line waits for its end."""

    path: Path
    offset: int = 0
    rest: bytes = b""

    def lines(self, *, last: bool = False) -> list[str]:
        """Whole new lines, and with ``last`` the unfinished one too."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                chunk = file.read()
        except FileNotFoundError:
            return []
        self.offset += len(chunk)
        *whole, self.rest = (self.rest + chunk).split(b"\n")
        if last and self.rest:
            whole.append(self.rest)
            self.rest = b""
        return [line.decode(errors="replace").rstrip("\r") for line in whole]


@dataclass(slots=True)
class Logs:
    """All rank logs of one job folder."""

    folder: Path
    only_first: bool = False
    tails: dict[str, Tail] = field(default_factory=dict)

    @property
    def folders(self) -> tuple[Path, Path]:
        """Where something changes when there is something new; the second may not be there yet."""
        return self.folder, self.folder / "user_logs"

    def new(self, *, last: bool = False) -> list[tuple[str, str]]:
        """Pairs of log name and line, in the order of the ranks."""
        for path in sorted((self.folder / "user_logs").glob("std_log_process_*.txt")):
            if not self.only_first or not self.tails:
                self.tails.setdefault(path.stem.removeprefix("std_log_process_"), Tail(path))
        return [(name, line) for name, tail in sorted(self.tails.items()) for line in tail.lines(last=last)]


def follow(
    arm: ArmClient,
    job_id: str,
    folder: Path,
    *,
    status: Callable[[str], None],
    line: Callable[[str, str], None],
    only_first: bool = False,
) -> Mapping[str, Any]:
    """Wait for a job's end.

    Args:
        arm: A client of the sandbox's resource manager.
        job_id: The job's ARM id.
        folder: Where the sandbox keeps the job's files, `job_folder` of its home.
        status: Called with each new status.
        line: Called with each new line: the number of the process's log, or ``runner``, and the text.
        only_first: Follow the log of the first process alone.

    Returns:
        The job's record (``properties``) in its last state, and under ``error`` why it failed.
    """
    logs, notes, seen = Logs(folder, only_first), Tail(folder / "runner.log"), ""
    record: Mapping[str, Any] = {}
    pause, asked, due = ASK_SECONDS, -ASK_SECONDS, True  # the machine's clock may have begun just now
    with Watch() as watch:
        while True:
            watch.cover((folder.parents[1], *logs.folders))
            if due and time.monotonic() >= asked + pause:
                due, asked = False, time.monotonic()
                record = arm.get(job_id).body["properties"]
            ended = record["status"] in TERMINAL
            if record["status"] != seen:
                seen = record["status"]
                status(seen)
            for text in notes.lines(last=ended):
                line("runner", text.partition(" ")[2])  # without its time: progress has its own
            for name, text in logs.new(last=ended):
                line(name, text)
            if ended:
                return with_reason(arm, job_id, record)
            changed = watch.wait(asked + pause - time.monotonic() if due else None)
            due = due or changed is None or any(name.startswith(STATE) for name in changed)
            if changed is not None and END in changed:
                due, pause = True, 0.0


def with_reason(arm: ArmClient, job_id: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A job's record, and under ``error`` why it failed; empty when it did not."""
    workspace, name = job_id.rsplit("/jobs/", 1)
    return {**record, "error": Runs(arm).why(workspace, name) if record["status"] == "Failed" else ""}
