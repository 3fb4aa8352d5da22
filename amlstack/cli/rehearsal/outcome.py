"""The outcome of a rehearsal: lines for a person, plain data for a program, and the named outputs of earlier ones.

An output with a path of its own is one folder for all rehearsals of its job: there checkpoints are found again.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from amlstack.base import paths
from amlstack.cli import console
from amlstack.cli.console import Progress, print_json, recorded_findings
from amlstack.cli.rehearsal.inputs import rehearsal_workspace
from amlstack.sandbox.contract import RefusedError
from amlstack.sandbox.files.storage import Location, Storage
from amlstack.sandbox.store.folders import folder, private
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    import jobs
    from amlstack.base.findings import Finding
    from amlstack.cli.logs.follower import Follower
    from amlstack.cli.rehearsal.scale import Extent, JoinedWorld
    from amlstack.diagnose import Diagnosis

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
        worlds: The process groups that its ranks joined.
    """

    name: str
    extents: tuple[Extent, ...]
    unproven: tuple[str, ...]
    inputs: Mapping[str, Mapping[str, Path]]
    status: str = ""
    error: str = ""
    job: Follower | None = None
    diagnosis: Diagnosis | None = None
    worlds: tuple[JoinedWorld, ...] = ()

    @property
    def is_good(self) -> bool:
        """True where it completed, and its ranks trained together."""
        return self.status == "Completed" and not self.alone

    @property
    def alone(self) -> list[str]:
        """The reasons why its ranks did not train together; empty where they did, or nobody knows."""
        return [f"{each.label}: {each.error}".removeprefix(": ") for each in self.worlds if each.error]

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
            "joined": [each.as_dict() for each in self.worlds],
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


SET_ASIDE = "set-aside-"
"""Prefix of the folders, beside those of the storage accounts, to which ``--fresh`` moves earlier outputs."""


@dataclass(frozen=True, slots=True)
class EarlierOutput:
    """The files that earlier rehearsals left in a named output.

    Attributes:
        label: ``NAME`` or ``STEP.NAME``.
        place: In the sandbox's storage.
        files: How many files they are.
        users: Jobs that have not ended and write there.
    """

    label: str
    place: Location
    files: int
    users: tuple[str, ...] = ()


def output_lines(job: Follower) -> Iterator[str]:
    """A line for the folder of each named output, of trials and steps too."""
    children = {child.files.folder: f"{child.label} · " for child in job.children.values()}
    for path, label in ({job.folder: ""} | children).items():
        try:
            report = json.loads((path / "report.json").read_text())
        except (OSError, ValueError):
            continue
        for output, places in (report.get("named_outputs") or {}).items():
            first, *more = places
            rest = f" (and {len(more)} more, one of each node)" if more else ""
            yield f"{label}output {output}: {first}{rest}"


def earlier_outputs(home: Path, workspace: str, plans: Sequence[jobs.Planned]) -> tuple[EarlierOutput, ...]:
    """The outputs of earlier rehearsals that a rehearsal would find; each place once."""
    if not (folder(home) / "state.db").is_file():
        return ()
    found: dict[Location, EarlierOutput] = {}
    with closing(Store(home)) as store:
        storage = Storage(store, workspace)
        active = store.jobs.list(active=True)
        for label, uri in (pair for plan in plans for pair in _declared(plan)):
            try:
                place = storage.locate(uri, f"The output {label!r}")
            except RefusedError:
                continue
            if not isinstance(place, Location) or not place.path or place in found:
                continue
            names = {name for name, _ in storage.files(place)}
            mount = folder(home) / "mounts" / place.account / place.container / place.path
            names |= {str(file.relative_to(mount)) for file in mount.rglob("*") if file.is_file()}
            users = tuple(row.name for row in active if uri.rstrip("/") in _written(row.properties))
            if names:
                found[place] = EarlierOutput(label, place, len(names), users)
    return tuple(found.values())


def set_aside(home: Path, workspace: str, outputs: Sequence[EarlierOutput]) -> Path:
    """Moves earlier outputs out of the way, out of the storage too; the folder that holds them from now on."""
    mounts = private(folder(home) / "mounts")
    kept = Path(tempfile.mkdtemp(prefix=f"{SET_ASIDE}{time.strftime('%Y%m%d-%H%M%S')}-", dir=mounts))
    with closing(Store(home)) as store:
        storage = Storage(store, workspace)
        for each in outputs:
            place = each.place
            target = kept / place.container / place.path
            target.parent.mkdir(parents=True, exist_ok=True)
            storage.mount(place).rename(target)
            below = store.blobs.under(place.account, place.container, f"{place.path}/")
            for blob in (*below, store.blobs.get(place.account, place.container, place.path)):
                if blob is not None:
                    store.blobs.delete(blob)
    return kept


def start_afresh(progress: Progress, plans: Sequence[jobs.Planned], *, yes: bool) -> None:
    """Sets aside what earlier rehearsals left in the named outputs; on a terminal after a question.

    Raises:
        typer.Exit: With 1: a job that has not ended writes there, or the answer was no.
    """
    home, workspace = paths.home(), rehearsal_workspace()
    earlier = earlier_outputs(home, workspace, plans)
    if not earlier:
        progress.step("no earlier outputs: nothing to set aside")
        return
    if users := sorted({name for each in earlier for name in each.users}):
        progress.fail(f"{', '.join(users)} still writes to these outputs: wait for its end, or `amlstack cancel` it")
        raise typer.Exit(1)
    progress.step("set aside, so that the rehearsal starts without them:")
    for each in earlier:
        progress.note(f"output {each.label}: {each.files} file{'' if each.files == 1 else 's'} of earlier rehearsals")
    if not yes and console.on_a_terminal() and not console.confirmed("Set these aside?"):
        progress.note("nothing was set aside, nothing was submitted")
        raise typer.Exit(1)
    progress.note(f"they are kept in {set_aside(home, workspace, earlier)}")


def _declared(plan: jobs.Planned) -> Iterator[tuple[str, str]]:
    """Label and address of each named output that has an address of its own."""
    whole = {"": getattr(plan.job, "outputs", {})}
    parts = {place.removeprefix("jobs."): part.job.outputs for place, part in plan.parts.items()}
    for step, outputs in (whole | parts).items():
        for name, output in outputs.items():
            if path := getattr(output, "path", None):
                yield f"{step}.{name}".lstrip("."), str(path)


def _written(properties: Mapping[str, Any]) -> set[str]:
    """Addresses of the outputs of a job's body."""
    return {str((each or {}).get("uri") or "").rstrip("/") for each in (properties.get("outputs") or {}).values()}
