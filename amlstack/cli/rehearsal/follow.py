"""Follow a job on the sandbox: its states, the states of its trials or steps, and all rank logs as they grow."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.base import printable
from amlstack.cli.rehearsal.logs import Logs, ProcessKind, Tail
from amlstack.provider.runs import Runs
from amlstack.sandbox.runner.files import origins
from amlstack.sandbox.store.places import job_folder
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from amlstack.cli.progress import Progress
    from amlstack.provider.arm import ArmClient

TERMINAL = frozenset({"Completed", "Failed", "Canceled", "NotResponding"})
SWEEP, PIPELINE = "Sweep", "Pipeline"
POLL_SECONDS = 0.2
"""Between two looks at the logs."""
GLANCE_SECONDS = 0.05
"""Between two looks at whether the sandbox's tables have changed, and with them the job: its end is seen so soon."""
LONGEST_SECONDS = 5.0
"""Without a change of the tables: the sandbox is asked nevertheless, so that its end is seen."""


@dataclass(slots=True)
class Child:
    """A trial or a step as it was last seen.

    Attributes:
        label: ``trial 3`` or the step's name; below a step that is a sweep both.
        run: Its entry in run history.
        logs: Its rank logs.
        status: The status that was printed last.
    """

    label: str
    run: Mapping[str, Any]
    logs: Logs
    status: str = ""


@dataclass(slots=True)
class Followed:
    """A job that is followed; one of a single command has no children.

    Attributes:
        arm: A client of the sandbox.
        job_id: The job's ARM id.
        home: The sandbox's home.
        progress: Where all that happens is printed.
        only: The one rank whose lines are printed, of each child; None for all.
    """

    arm: ArmClient
    job_id: str
    home: Path
    progress: Progress
    only: int | None = None
    children: dict[str, Child] = field(default_factory=dict)
    _notes: dict[str, Tail] = field(default_factory=dict)
    _logs: Logs | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job_id.rsplit("/", 1)[-1]

    @property
    def folder(self) -> Path:
        """The job's folder."""
        return job_folder(self.home, self.name)

    def follow(self, *, logs: bool = True) -> Mapping[str, Any]:
        """Wait for the job's end.

        Args:
            logs: Print logs and children, and not the job's own states alone.

        Returns:
            The job's record (``properties``) in its last state, and under ``error`` why it failed.
        """
        status, asked = "", 0.0
        changed: tuple[object, ...] = ()
        record: Mapping[str, Any] = {}
        while True:
            now, tables = time.monotonic(), self._tables()
            if not record or tables != changed or now >= asked + LONGEST_SECONDS:
                changed, asked = tables, now
                record = self.arm.get(self.job_id).body["properties"]
                if record["status"] != status:
                    status = record["status"]
                    self.progress.step(f"job is {status}")
                self._look(self.name, str(record["jobType"]), "", ask=True, logs=logs, last=status in TERMINAL)
            else:
                self._look(self.name, str(record["jobType"]), "", ask=False, logs=logs, last=False)
            if status in TERMINAL:
                return with_reason(self.arm, self.job_id, record)
            self._pause(tables)

    def summary(self, record: Mapping[str, Any]) -> Iterator[str]:
        """A line for each child, in the order in which they were made, and one that names the best trial."""
        metric = str((record.get("objective") or {}).get("primaryMetric") or "")
        for name, child in self.children.items():
            values = (child.run.get("tags") or {}).get("hyperparameters")
            given = f" {values}" if values else ""
            logged = self._logged(name, metric) if metric else ""
            yield f"{child.label}: {child.run['status']}{given}{logged}; logs in {job_folder(self.home, name)}"
        best = (record.get("properties") or {}).get("best_child_run_id")
        if best:
            yield f"best trial: {best} with {metric} = {record['properties']['score']}"
        elif metric:
            yield f"no trial logged {metric}, so that none is the best: log it with mlflow.log_metric"

    def failed(self) -> Path | None:
        """The folder of the first child that failed and has no children; of a job without children its own."""
        if not self.children:
            return self.folder
        parents = {child.run["parentRunId"] for child in self.children.values()}
        names = (name for name, each in self.children.items() if each.run["status"] == "Failed" and name not in parents)
        name = next(names, None)
        return None if name is None else job_folder(self.home, name)

    def _pause(self, tables: tuple[object, ...]) -> None:
        """Until the tables are others, or the logs are due for another look."""
        end = time.monotonic() + POLL_SECONDS
        while True:
            time.sleep(GLANCE_SECONDS)
            if time.monotonic() >= end or self._tables() != tables:
                return

    def _tables(self) -> tuple[object, ...]:
        """What changes whenever the sandbox writes to its tables."""
        files = sorted(self.folder.parents[1].glob("state.db*"))
        return tuple((file.name, stat.st_mtime_ns, stat.st_size) for file in files if (stat := _stat(file)))

    def _look(self, name: str, kind: str, label: str, *, ask: bool, logs: bool, last: bool) -> None:
        """Print what is new of a job and of all below it."""
        if not logs:
            return
        is_parent = kind in (SWEEP, PIPELINE)
        who = label or (kind.lower() if is_parent else "runner")
        for text in self._notes.setdefault(name, Tail(job_folder(self.home, name) / "runner.log")).lines(last=last):
            self.progress.note(f"[{who}] {text.partition(' ')[2]}")  # without its time: progress has its own
        if not is_parent:
            self._logs = self._logs or self._logs_of(self.name)
            self._print(self._logs, "", last=last)
        for run in self._runs(name) if ask and is_parent else self._known(name):
            self._child(run, kind, label, ask=ask, last=last)

    def _child(self, run: Mapping[str, Any], kind: str, above: str, *, ask: bool, last: bool) -> None:
        name = str(run["runId"])
        if name not in self.children:
            own = f"trial {name.rsplit('_', 1)[-1]}" if kind == SWEEP else printable.line(str(run["displayName"]))
            self.children[name] = Child(f"{above} {own}".strip(), run, self._logs_of(name))
        child = self.children[name]
        child.run = run
        if run["status"] != child.status:
            child.status = run["status"]
            self.progress.step(f"{child.label} is {child.status}")
        if (below := str(run["runType"])) in (SWEEP, PIPELINE):
            self._look(name, below, child.label, ask=ask, logs=True, last=last)
        else:
            self._print(child.logs, f"{child.label} · ", last=run["status"] in TERMINAL)

    def _print(self, logs: Logs, label: str, *, last: bool) -> None:
        for who, text in logs.new(last=last):
            self.progress.note(f"[{label}{who}] {text}")

    def _logs_of(self, name: str) -> Logs:
        with closing(Store(self.home)) as store:
            job = store.jobs[name]
            return Logs(job_folder(self.home, name), ProcessKind.of(job.properties), origins.of(store, job), self.only)

    def _known(self, parent: str) -> list[Mapping[str, Any]]:
        """Children as they were seen last."""
        return [child.run for child in self.children.values() if child.run["parentRunId"] == parent]

    def _runs(self, parent: str) -> list[Mapping[str, Any]]:
        path = f"{self.arm.endpoint}/history/v1.0{self._workspace}/runs/{parent}/children"
        found: list[Mapping[str, Any]] = self.arm.request("GET", path, None).body["value"]
        return found

    def _logged(self, name: str, metric: str) -> str:
        path = f"{self.arm.endpoint}/mlflow/v1.0{self._workspace}/api/2.0/mlflow/runs/get"
        metrics = self.arm.request("GET", path, None, query={"run_id": name}).body["run"]["data"]["metrics"]
        return next((f", {metric} = {each['value']:g}" for each in metrics if each["key"] == metric), "")

    @property
    def _workspace(self) -> str:
        return self.job_id.rsplit("/jobs/", 1)[0]


def with_reason(arm: ArmClient, job_id: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A job's record, and under ``error`` why it failed; empty when it did not."""
    workspace, name = job_id.rsplit("/jobs/", 1)
    return {**record, "error": Runs(arm).why(workspace, name) if record["status"] == "Failed" else ""}


def _stat(file: Path) -> Any:
    try:
        return file.stat()
    except FileNotFoundError:  # the tables' journal comes and goes
        return None
