"""The outcome of a rehearsal: lines for a person, plain data for a program."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from amlstack.cli.console import print_json, recorded_findings
from amlstack.cli.rehearsal import scale as scales

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import jobs
    from amlstack.base.findings import Finding
    from amlstack.cli.logs.follower import Follower
    from amlstack.cli.progress import Progress
    from amlstack.cli.rehearsal.scale import Extent
    from amlstack.diagnose import Diagnosis
    from amlstack.sandbox.scale import RehearsalScale

_TAGS = re.compile(r"(?:\[rank ?\d+\]: ?)+")
_HEADER = "Traceback (most recent call last)"
INTERRUPTED = 130
"""The exit status after Ctrl-C."""
_BEFORE = 30
"""Lines before the one that names the cause, in which its traceback may have begun."""


@dataclass(slots=True)
class JobOutcome:
    """One job, sweep or pipeline of a rehearsal.

    Attributes:
        name: As its file names it.
        status: As the service has it last; empty when it was not submitted.
        error: Why it failed, or was not submitted.
        job: The followed job.
        extents: What was declared and started of each part.
        unproven: What the rehearsal says nothing about.
        inputs: Files and folders of this machine by step and input.
        diagnosis: The first cause in its logs, if it failed.
    """

    name: str
    extents: tuple[Extent, ...]
    unproven: tuple[str, ...]
    inputs: Mapping[str, Mapping[str, Path]]
    status: str = ""
    error: str = ""
    job: Follower | None = None
    diagnosis: Diagnosis | None = field(default=None)

    @classmethod
    def of(
        cls,
        name: str,
        plan: jobs.Planned,
        inputs: Mapping[str, Mapping[str, Path]],
        scale: RehearsalScale | None,
    ) -> JobOutcome:
        """A job that is about to be submitted."""
        parts = tuple(scales.extents(plan, scale))
        return cls(name, parts, tuple(scales.unproven(parts)), inputs)

    @property
    def is_good(self) -> bool:
        """True where it completed."""
        return self.status == "Completed"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        job = self.job
        found: dict[str, Any] = {
            "name": self.name,
            "job": None if job is None else job.name,
            "status": self.status or "NotSubmitted",
            "error": self.error,
            "folder": None if job is None else str(job.folder),
            "scaled": [
                {"part": each.place, "declared": list(each.declared), "started": list(each.started)}
                for each in self.extents
            ],
            "unproven": list(self.unproven),
            "inputs": {
                ".".join(filter(None, (step, name))): str(path)
                for step, inputs in self.inputs.items()
                for name, path in inputs.items()
            },
            "diagnosis": None if self.diagnosis is None else self.diagnosis.as_dict(),
        }
        if job is None:
            return found
        children = [
            {"label": child.label, "job": name, "status": child.status, **_recorded(child.files.folder)}
            for name, child in job.children.items()
        ]
        return {**found, **_recorded(job.folder), "children": children}


@dataclass(slots=True)
class Outcomes:
    """A rehearsal of one file.

    Attributes:
        jobs: Those that it came to.
        error: Why the sandbox did not run them; empty where it did.
    """

    jobs: list[JobOutcome] = field(default_factory=list)
    error: str = ""

    def add(self, job: JobOutcome) -> None:
        """A job is next."""
        self.jobs.append(job)

    def failed(self, names: Sequence[str]) -> str | None:
        """The first of these jobs that has not completed; None for none."""
        return next((each.name for each in self.jobs if each.name in names and not each.is_good), None)

    def as_dict(self, findings: Sequence[Finding], exit_code: int) -> dict[str, Any]:
        """The values that ``--json`` prints.

        Args:
            findings: All that were printed.
            exit_code: Of the process.
        """
        submitted = any(each.status for each in self.jobs)
        verdict = "completed" if exit_code == 0 else "failed" if submitted else "refused"
        return {
            "verdict": verdict,
            "exit": exit_code,
            "error": self.error,
            "findings": [each.as_dict() for each in findings],
            "jobs": [each.as_dict() for each in self.jobs],
        }


@contextlib.contextmanager
def printed(*, as_json: bool) -> Iterator[Outcomes]:
    """The outcomes of what is done meanwhile; with ``as_json`` they are printed at its end, and all else to stderr."""
    outcomes = Outcomes()
    if not as_json:
        yield outcomes
        return
    code = 1
    with recorded_findings() as findings:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield outcomes
            code = 0
        except typer.Exit as ended:
            code = ended.exit_code
            raise
        except KeyboardInterrupt:
            code = INTERRUPTED
            raise
        finally:
            print_json(outcomes.as_dict(findings, code))


def summary(job: Follower) -> Iterator[str]:
    """A line for each child, in the order in which they were made, and one that names the best trial."""
    metric = str((job.record.get("objective") or {}).get("primaryMetric") or "")
    for name, child in job.children.items():
        values = (child.run.get("tags") or {}).get("hyperparameters")
        given = f" {values}" if values else ""
        logged = _logged(job, name, metric) if metric else ""
        yield f"{child.label}: {child.status}{given}{logged}; logs in {child.files.folder}"
    best = (job.record.get("properties") or {}).get("best_child_run_id")
    if best:
        yield f"best trial: {best} with {metric} = {job.record['properties']['score']}"
    elif metric:
        yield f"no trial logged {metric}, so that none is the best: log it with mlflow.log_metric"


def _logged(job: Follower, name: str, metric: str) -> str:
    path = f"{job.arm.endpoint}/mlflow/v1.0{job.workspace}/api/2.0/mlflow/runs/get"
    metrics = job.arm.request("GET", path, None, query={"run_id": name}).body["run"]["data"]["metrics"]
    return next((f", {metric} = {each['value']:g}" for each in metrics if each["key"] == metric), "")


def first_failed(job: Follower) -> Path | None:
    """The folder of the first child that failed and has no children; of a job without children its own."""
    if not job.children:
        return job.folder
    parents = {child.run["parentRunId"] for child in job.children.values()}
    failed = (each for each in job.children.values() if each.status == "Failed" and each.name not in parents)
    return next((each.files.folder for each in failed), None)


def cause_lines(verdict: Diagnosis, folder: Path) -> Iterator[str]:
    """The lines of the log that end with the cause, from its traceback's beginning on."""
    if verdict.file is None or verdict.line is None:
        return
    try:
        lines = (folder / verdict.file).read_text(errors="replace").splitlines()[: verdict.line]
    except OSError:
        return
    first = next((at for at in range(len(lines) - 1, -1, -1) if _HEADER in lines[at]), len(lines))
    begin = first if len(lines) - first <= _BEFORE else len(lines) - 1
    for line in lines[max(begin, 0) :]:
        yield _TAGS.sub("", line, count=1)


def show_diagnosis(progress: Progress, verdict: Diagnosis, folder: Path, job: str, *, whole: bool) -> Diagnosis:
    """Prints the first cause in one line, where it stands, and the command for more; with the author's files.

    Args:
        progress: Where to.
        verdict: The diagnosis.
        folder: The folder of the job whose logs were read.
        job: Its name.
        whole: Also the lines of the rank that failed: they have not been printed.
    """
    from amlstack.cli.workspace.job_folder import authors_files, with_authors_files
    from amlstack.diagnose.diagnosis import headline

    verdict = with_authors_files(verdict, [folder])
    progress.note(f"diagnosis ({verdict.confidence} confidence): {headline(verdict)}")
    who = "log" if verdict.rank is None else f"rank {verdict.rank}"
    named = authors_files([folder])
    for line in cause_lines(verdict, folder) if whole else ():
        progress.note(f"  [{who}] {named(line)}")
    if verdict.file is not None:
        progress.note(f"  {folder / verdict.file}:{verdict.line}: {verdict.text}")
    if verdict.source is not None:
        progress.note(f"  {verdict.source}")
    progress.note(f"evidence, victims and what to do: amlstack diagnose {job}")
    return verdict


def _recorded(folder: Path) -> dict[str, Any]:
    """Exit codes and outputs of a job, as its record has them."""
    try:
        record = json.loads((folder / "report.json").read_text())
    except (OSError, ValueError):
        record = {}
    ranks = [
        {**{key: each.get(key) for key in ("rank", "node", "local_rank")}, "exit": each.get("code")}
        for each in record.get("ranks") or ()
    ]
    files = [str(folder / name) for name in record.get("outputs") or () if isinstance(name, str)]
    return {"ranks": ranks, "outputs": {"files": files, "named": record.get("named_outputs") or {}}}
