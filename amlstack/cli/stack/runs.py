"""The runs of a stack: waited for while it is deployed, then followed to their end, and the summary that ends `up`."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape

from amlstack.base import paths
from amlstack.catalog import sizes
from amlstack.cli.logs.files import Logs, ProcessKind
from amlstack.cli.logs.follower import Follower, InProgress, SandboxLogs, with_reason
from amlstack.provider.runs import TERMINAL, Runs
from amlstack.sandbox.files import environments
from amlstack.sandbox.store.folders import folder, job_folder
from amlstack.sandbox.store.store import Store, listed
from amlstack.sandbox.store.store import job_folder as store_job_folder

if TYPE_CHECKING:
    from rich.console import Console

    from amlstack.cli.console import Progress
    from amlstack.cli.stack_files import State
    from amlstack.provider.arm import ArmClient
    from amlstack.sandbox.server.daemon import Endpoint
    from infra.settings import Settings

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
            run not in shown and _ended(arm, job_id) >= since
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
        environments.write_code(home, run, {"": folders})


def _ended(arm: ArmClient, job_id: str) -> float:
    """The time at which a run ended, in seconds since the epoch; 0 where its history has none."""
    workspace, name = job_id.rsplit("/jobs/", 1)
    ended = (Runs(arm).plane.details(workspace, name) or {}).get("endTimeUtc")
    return dt.datetime.fromisoformat(ended).timestamp() if ended else 0.0


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
            return Logs(
                job_folder(self.home, row.id), ProcessKind.of(row.properties), environments.code_of(store, row), _RANK
            )


FEW_OF_A_KIND = 5
"""So many of a kind have their own lines; more are counted."""
_INDENT = 11
"""Columns of the headings."""


def show_summary(
    console: Console,
    outputs: Mapping[str, Any],
    records: Mapping[str, Mapping[str, Any]],
    *,
    again: str,
    edit: str = "",
) -> None:
    """Print the summary.

    Args:
        console: Where to.
        outputs: The stack's outputs.
        records: Name → last record (ARM ``properties``) of each job.
        again: The command that was run.
        edit: The file whose edit is another run; empty for a stack without jobs.
    """
    console.print()
    for name, text in summary_rows(outputs, records, again=again, edit=edit):
        # No word is ever broken: paths, ids and commands stay whole, to be copied. In a file a row is one line.
        width = max(console.width - _INDENT, 20) if console.is_terminal else len(text) + 1
        first, *rest = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
        console.print(f"[bold]{name:<{_INDENT}}[/]{escape(first)}", soft_wrap=True)
        for line in rest:
            console.print(f"{'':<{_INDENT}}{escape(line)}", soft_wrap=True)


def summary_rows(
    outputs: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]], *, again: str, edit: str = ""
) -> Iterator[tuple[str, str]]:
    """Pairs of heading and text; of what there is a lot, numbers and the few that need a look."""
    workspace = outputs["workspace"]
    yield "workspace", f"{workspace['name']} in resource group {workspace['resource_group']}"
    yield from _clusters(outputs["clusters"])
    yield from _jobs(outputs["jobs"], records)
    yield from _schedules(outputs.get("schedules", {}))
    yield "next", _next(outputs["jobs"], records, again, edit)
    yield "", ".venv/bin/amlstack sandbox status · .venv/bin/amlstack --help · .venv/bin/amlstack down"


def edited_file(settings: Settings | None) -> str:
    """The file or folder whose edit is another run: of the stack's first job."""
    first = settings.jobs[0].file if settings and settings.jobs else ""
    return f"{first.rpartition('/')[0]}/train.py" if first == "examples/ddp_torchrun/job.py" else first


def _next(
    jobs: Mapping[str, Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]], again: str, edit: str
) -> str:
    """The next step for a person: look at the failures, else edit."""
    bad = [name for name in jobs if records.get(name, {}).get("status") not in {*GOOD, "Canceled", None}]
    if bad:
        run = jobs[bad[0]]["jobId"].rsplit("/", 1)[-1]
        return f".venv/bin/amlstack diagnose {run} names the first cause; edit the job and `{again}` again: a new run"
    what = f"edit {edit}" if edit else "name a job file under amlstack:jobs in the stack's settings"
    return f"{what} and `{again}` again: an edited job is a new run"


def _clusters(clusters: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    if len(clusters) <= FEW_OF_A_KIND:
        for name, cluster in clusters.items():
            yield "cluster", f"{name}: {cluster['min']}–{cluster['max']} nodes of {_described(cluster['size'])}"
        return
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for cluster in clusters.values():
        alike.setdefault(cluster["size"], []).append(cluster)
    for size, same in alike.items():
        least, most = sum(each["min"] for each in same), sum(each["max"] for each in same)
        yield "clusters", f"{len(same)} of {_described(size)}, {least}–{most} nodes together"


def _jobs(jobs: Mapping[str, Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    shown = list(jobs)
    if len(jobs) > FEW_OF_A_KIND:
        yield "jobs", f"{len(jobs)}: {statuses(records)}"
        bad = [name for name in jobs if records.get(name, {}).get("status") not in GOOD]
        shown = bad[:FEW_OF_A_KIND]
    for name in shown:
        yield from _job(name, jobs[name], records.get(name, {}))
    if len(jobs) > FEW_OF_A_KIND and len(bad) > FEW_OF_A_KIND:
        yield "", f"{len(bad) - FEW_OF_A_KIND} more did not complete: .venv/bin/amlstack status"


def _schedules(schedules: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    if len(schedules) > FEW_OF_A_KIND:
        yield "schedules", f"{len(schedules)}, kept and judged; the sandbox starts none: {listed(list(schedules))}"
        return
    for name, schedule in schedules.items():
        yield "schedule", f"{name}: {schedule['starts']}{'' if schedule['enabled'] else ' (disabled)'}"
        for place, part in schedule["parts"].items():
            yield "", f"{place.removeprefix('jobs.') or 'job'}: {_ranks(part)}"
        yield "", "kept and judged; the sandbox starts none"


def _described(name: str) -> str:
    size = sizes.get(name)
    if size is None:
        return name
    fabric = (
        f", {size.fabric.infiniband} InfiniBand {size.fabric.gbps_per_node:g} Gb/s" if size.fabric.infiniband else ""
    )
    return f"{size.name} ({size.gpus} × {size.gpu_model}{fabric})"


def _job(name: str, job: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    status = record.get("status", job["status"])
    parts = job.get("parts")
    if parts is None:
        yield "job", f"{name}: {status}; {_ranks(job)}"
    else:
        yield "job", f"{name}: {status}"
        for place, part in parts.items():
            yield "", f"{place.removeprefix('jobs.')}: {_ranks(part)}"
    if best := (record.get("properties") or {}).get("best_child_run_id"):
        metric = record["objective"]["primaryMetric"]
        yield "best trial", f"{best}: {metric} = {record['properties']['score']}"
    folder = store_job_folder(paths.home(), job["jobId"].rsplit("/", 1)[-1])
    if loss := _losses(folder):
        yield "loss", loss
    if message := record.get("error"):
        yield "error", message
    yield "logs", str(folder / ("user_logs" if parts is None else "children"))


def _ranks(plan: Mapping[str, Any]) -> str:
    return f"{plan['nodes']} nodes × {plan['processesPerNode']} processes per node = world size {plan['worldSize']}"


def _losses(folder: Path) -> str:
    """First and last loss of a job: of ``outputs/metrics.json`` as the examples write it, else as rank 0 printed it.

    Empty where it did neither.
    """
    try:
        losses = [float(loss) for loss in json.loads((folder / "outputs" / "metrics.json").read_text())["losses"]]
        axis = "epochs"
    except (OSError, ValueError, KeyError, TypeError):
        from amlstack.report import logs

        log = folder / "user_logs" / "std_log_process_00.txt"
        printed = next((one for one in logs.from_log(log, log.name, 0) if one.loss), None)
        losses = [y for _, y in printed.points] if printed else []
        axis = f"{printed.axis}s" if printed else ""
    if len(losses) < 2:
        return ""
    over = f"{len(losses)} {axis}" if axis == "epochs" else f"the {axis} that rank 0 printed"
    return f"{losses[0]:.4f} → {losses[-1]:.4f} over {over}"
