"""The runs of a stack: waited for while it is deployed, then followed to their end, or named with their earlier end."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import paths
from amlstack.cli.logs.files import Logs, ProcessKind
from amlstack.cli.logs.follower import Follower, InProgress, SandboxLogs, with_reason
from amlstack.provider.states import TERMINAL
from amlstack.sandbox.files import origins
from amlstack.sandbox.store.places import folder, job_folder
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from amlstack.cli.progress import Progress
    from amlstack.cli.stack_state import State
    from amlstack.provider.arm import ArmClient
    from amlstack.sandbox.server.endpoint import Endpoint

JOB: Final = "amlstack:jobs:Job"
CODE: Final = "amlstack:code:Snapshot"
GONE: Final = "gone"
GOOD: Final = frozenset({"Completed", GONE})
"""A record that vanished is no failure: the run was there, and is not run again by itself."""
FEW: Final = 5
"""So many completed runs of before have a line each; more of them share one."""
RERUN: Final = "it is not run again by itself: set `rerun` to another word"
_WAITS: Final = re.compile(r"(?P<run>\S+) is (?P<status>\w+); waiting until it (?P<what>.+) \(\S+\)")
_RANK: Final = 0


def followed(
    progress: Progress,
    outputs: Mapping[str, Any],
    endpoint: Endpoint,
    *,
    since: float,
    state: State,
    shown: Collection[str] = (),
) -> dict[str, Mapping[str, Any]]:
    """Waits for the end of a stack's runs.

    Args:
        progress: Where their states and logs are printed.
        outputs: The stack's outputs.
        endpoint: The sandbox.
        since: Seconds since the epoch. A run that had ended by then is named, and its log is not printed again.
        state: What is recorded of the stack.
        shown: Runs whose logs were printed while the engine waited for them; they are not printed again.

    Returns:
        Name → last record (ARM ``properties``) of each job.

    Raises:
        ArmError: The sandbox does not answer any more.
    """
    from amlstack.cli.sandbox_arm import connect

    arm = connect(endpoint)
    records: dict[str, Mapping[str, Any]] = {}
    going: dict[str, Mapping[str, Any]] = {}
    completed: list[str] = []
    for name, job in outputs.get("jobs", {}).items():
        job_id, run = job["jobId"], job["jobId"].rsplit("/", 1)[-1]
        answer = arm.get(job_id, allow=(404,))
        if answer.status == 404:
            progress.note(f"job {run}: its record is gone; {RERUN}")
            records[name] = {"status": GONE}
        elif (status := answer.body["properties"]["status"]) not in TERMINAL or (
            run not in shown and _ended(answer.body) >= since
        ):
            going[name] = job
        else:
            records[name] = with_reason(arm, job_id, answer.body["properties"])
            if run in shown:
                (progress.done if status in GOOD else progress.fail)(f"job {run} is {status}")
            elif status in GOOD:
                completed.append(run)
            else:
                progress.fail(f"job {run} has run before: {status}; {RERUN}")
    if len(completed) > FEW:
        progress.done(f"{len(completed)} jobs have run before: Completed")
    else:
        for run in completed:
            progress.done(f"job {run} has run before: Completed")
    for name, job in going.items():
        _note_code(endpoint.home, job["jobId"].rsplit("/", 1)[-1], state)
        records[name] = _follow(progress, arm, job, endpoint)
    return records


def statuses(records: Mapping[str, Mapping[str, Any]]) -> str:
    """``58 Completed, 2 Failed``."""
    counts = Counter(str(record["status"]) for record in records.values())
    return ", ".join(f"{number} {status}" for status, number in counts.most_common())


def _follow(progress: Progress, arm: ArmClient, job: Mapping[str, Any], endpoint: Endpoint) -> Mapping[str, Any]:
    job_id, run = job["jobId"], job["jobId"].rsplit("/", 1)[-1]
    if "parts" in job:
        progress.step(f"job {run}: {', '.join(part.removeprefix('jobs.') for part in job['parts'])}")
    else:
        progress.step(f"job {run}: {job['worldSize']} ranks on {job['nodes']} nodes")
    follower = Follower(arm, job_id, SandboxLogs(endpoint.home), InProgress(progress), only=0)
    follower.follow()
    return with_reason(arm, job_id, follower.record)


def _note_code(home: Path, run: str, state: State) -> None:
    """Notes where the code of a run lies, for what names its files; that of a run with several folders is not known."""
    found = {one["urn"]: one for one in state.resources}
    job = next((one for one in found.values() if one.get("type") == JOB and one.get("id") == run), None)
    codes = [found[urn] for urn in (job or {}).get("dependencies") or () if found.get(urn, {}).get("type") == CODE]
    folders = [Path(path) for code in codes if isinstance(path := (code.get("inputs") or {}).get("path"), str)]
    if len(folders) == 1 and not folders[0].is_relative_to(paths.cache()):
        origins.write(home, run, {"": folders})


def _ended(body: Mapping[str, Any]) -> float:
    """The time at which a run ended, in seconds since the epoch."""
    return dt.datetime.fromisoformat(body["systemData"]["lastModifiedAt"]).timestamp()


@dataclass(slots=True)
class WaitedRuns:
    """Runs that a deployment waits for (`wait`): their states once each, and the lines of rank 0 meanwhile.

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
        """The function to call with each event: as ``follow``, but for the lines that only say that a wait goes on."""

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
        if not (folder(self.home) / "state.db").is_file():
            return None
        with contextlib.closing(Store(self.home)) as store:
            row = store.jobs.get(run)
            if row is None or row.properties.get("jobType") != "Command":
                return None
            return Logs(job_folder(self.home, row.id), ProcessKind.of(row.properties), origins.of(store, row), _RANK)
