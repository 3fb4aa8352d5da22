"""Follow a sweep or a pipeline that runs on the sandbox: each trial or step by name, its states, its rank logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.cli.rehearsal.follow import TERMINAL, Logs, Tail, with_reason
from amlstack.cli.watch import Watch
from amlstack.sandbox.store.places import job_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from amlstack.cli.progress import Progress
    from amlstack.provider.arm import ArmClient

SWEEP = "Sweep"


@dataclass(slots=True)
class Child:
    """A trial or a step as it was last seen.

    Attributes:
        label: ``trial 3`` or the step's name; below a step that is a sweep both.
        run: Its entry in run history.
        logs: Its rank logs.
        seen: The status that was told last.
    """

    label: str
    run: Mapping[str, Any]
    logs: Logs
    seen: str = ""


@dataclass(slots=True)
class Family:
    """A parent that is followed.

    Attributes:
        arm: A client of the sandbox.
        job_id: The parent's ARM id.
        home: The sandbox's home.
        progress: Where what happens is said.
        quiet: Of each child the first rank's log alone.
    """

    arm: ArmClient
    job_id: str
    home: Path
    progress: Progress
    quiet: bool = False
    children: dict[str, Child] = field(default_factory=dict)
    notes: dict[str, Tail] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The parent's folder."""
        return job_folder(self.home, self.name)

    @property
    def name(self) -> str:
        """The parent's name."""
        return self.job_id.rsplit("/", 1)[-1]

    def follow(self) -> Mapping[str, Any]:
        """Waits for the parent's end; its record, and under ``error`` why it failed."""
        seen = ""
        with Watch() as watch:
            while True:
                folders = tuple(self._folders())
                watch.cover((self.folder.parents[1], *folders))
                record: Mapping[str, Any] = self.arm.get(self.job_id).body["properties"]
                ended = record["status"] in TERMINAL
                if record["status"] != seen:
                    seen = record["status"]
                    self.progress.step(f"job is {seen}")
                self._look(self.name, str(record["jobType"]), "", last=ended)
                if ended:
                    return with_reason(self.arm, self.job_id, record)
                if tuple(self._folders()) == folders:  # else a new child has spoken unwatched
                    watch.wait()

    def _folders(self) -> Iterator[Path]:
        """Where something changes when a parent or a child has something new to say."""
        yield from (tail.path.parent for tail in self.notes.values())
        for child in self.children.values():
            yield from child.logs.folders

    def summary(self, record: Mapping[str, Any]) -> Iterator[str]:
        """A line for each child, in the order in which they were made, and one that names the best trial."""
        metric = str((record.get("objective") or {}).get("primaryMetric") or "")
        for name, child in self.children.items():
            values = (child.run.get("tags") or {}).get("hyperparameters")
            said = f" {values}" if values else ""
            logged = self._logged(name, metric) if metric else ""
            yield f"{child.label}: {child.run['status']}{said}{logged}; logs in {job_folder(self.home, name)}"
        best = (record.get("properties") or {}).get("best_child_run_id")
        if best:
            yield f"best trial: {best} with {metric} = {record['properties']['score']}"
        elif metric:
            yield f"no trial logged {metric}, so that none is the best: log it with mlflow.log_metric"

    def failed(self) -> Child | None:
        """The first child that failed."""
        return next((child for child in self.children.values() if child.run["status"] == "Failed"), None)

    def _look(self, parent: str, kind: str, above: str, *, last: bool) -> None:
        folder = job_folder(self.home, parent)
        for text in self.notes.setdefault(parent, Tail(folder / "runner.log")).lines(last=last):
            self.progress.note(f"[{above or kind.lower()}] {text.partition(' ')[2]}")
        for run in self._runs(parent):
            name, label = str(run["runId"]), self._label(run, kind, above)
            if name not in self.children:
                self.children[name] = Child(label, run, Logs(job_folder(self.home, name), only_first=self.quiet))
            child = self.children[name]
            child.run = run
            if run["status"] != child.seen:
                child.seen = run["status"]
                self.progress.step(f"{label} is {child.seen}")
            if run["runType"] == SWEEP:
                self._look(name, SWEEP, label, last=last)
                continue
            for log, text in child.logs.new(last=run["status"] in TERMINAL):
                self.progress.note(f"[{label} · {log}] {text}")

    def _runs(self, parent: str) -> list[Mapping[str, Any]]:
        workspace = self.job_id.rsplit("/jobs/", 1)[0]
        path = f"{self.arm.endpoint}/history/v1.0{workspace}/runs/{parent}/children"
        found: list[Mapping[str, Any]] = self.arm.request("GET", path, None).body["value"]
        return found

    def _logged(self, name: str, metric: str) -> str:
        workspace = self.job_id.rsplit("/jobs/", 1)[0]
        path = f"{self.arm.endpoint}/mlflow/v1.0{workspace}/api/2.0/mlflow/runs/get"
        told = self.arm.request("GET", path, None, query={"run_id": name}).body["run"]["data"]["metrics"]
        return next((f", {metric} = {each['value']:g}" for each in told if each["key"] == metric), "")

    def _label(self, run: Mapping[str, Any], kind: str, above: str) -> str:
        own = f"trial {str(run['runId']).rsplit('_', 1)[-1]}" if kind == SWEEP else str(run["displayName"])
        return f"{above} {own}".strip()
