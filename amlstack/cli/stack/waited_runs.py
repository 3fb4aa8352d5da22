"""Runs that a deployment waits for (`wait`): their states once each, and the lines of rank 0 while the engine waits."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.cli.logs.files import Logs, ProcessKind
from amlstack.sandbox.store.places import folder, job_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from amlstack.cli.progress import Progress

_WAITS: Final = re.compile(r"(?P<run>\S+) is (?P<status>\w+); waiting until it (?P<what>.+) \(\S+\)")
_RANK: Final = 0


@dataclass(slots=True)
class WaitedRuns:
    """What stands between the engine's events and their lines.

    Attributes:
        progress: Where lines go.
        home: The sandbox's home.
        shown: Runs whose logs were printed.
    """

    progress: Progress
    home: Path
    shown: set[str] = field(default_factory=set)
    _logs: dict[str, Logs] = field(default_factory=dict)
    _states: dict[str, str] = field(default_factory=dict)

    def before(self, follow: Callable[[Mapping[str, Any]], None]) -> Callable[[Mapping[str, Any]], None]:
        """What to call with each event: as ``follow``, but for the lines that only say that a wait goes on."""

        def taken(event: Mapping[str, Any]) -> None:
            diagnostic = event.get("diagnosticEvent") or {}
            found = _WAITS.fullmatch(str(diagnostic.get("message", "")).strip()) if diagnostic else None
            if found is None:
                self.look()
                follow(event)
                return
            run, status = found["run"], found["status"]
            if self._states.get(run) != status:
                self._states[run] = status
                self.progress.step(f"job {run} is {status}; waiting until it {found['what']}")
            if run not in self._logs and (logs := self._logs_of(run)) is not None:
                self._logs[run] = logs
                self.shown.add(run)
            self.look()

        return taken

    def look(self) -> None:
        """Prints what the logs have gained."""
        for run, logs in self._logs.items():
            for who, text in logs.new():
                self.progress.note(f"[{run} · {who}] {text}" if len(self._logs) > 1 else f"[{who}] {text}")

    def _logs_of(self, run: str) -> Logs | None:
        """The logs of a run of the sandbox; None where it is not known, or has several of its own."""
        from amlstack.sandbox.runner.files import origins
        from amlstack.sandbox.store.store import Store

        if not (folder(self.home) / "state.db").is_file():
            return None
        with contextlib.closing(Store(self.home)) as store:
            row = store.jobs.get(run)
            if row is None or row.properties.get("jobType") != "Command":
                return None
            return Logs(job_folder(self.home, row.id), ProcessKind.of(row.properties), origins.of(store, row), _RANK)
