"""The summary that ends ``amlstack up`` on the sandbox: workspace, clusters, jobs, schedules and the next step."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from amlstack.base import paths
from amlstack.catalog import sizes
from amlstack.cli.stack.runs import GOOD, statuses
from amlstack.sandbox.store.holdings import listed
from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rich.console import Console

    from infra.settings import Settings

FEW = 5
"""So many of a kind have their own lines; more are counted."""
_INDENT = 11
"""Columns of the headings."""


def show(
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
    for name, text in rows(outputs, records, again=again, edit=edit):
        # No word is ever broken: paths, ids and commands stay whole, to be copied. In a file a row is one line.
        width = max(console.width - _INDENT, 20) if console.is_terminal else len(text) + 1
        first, *rest = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
        console.print(f"[bold]{name:<{_INDENT}}[/]{escape(first)}", soft_wrap=True)
        for line in rest:
            console.print(f"{'':<{_INDENT}}{escape(line)}", soft_wrap=True)


def rows(
    outputs: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]], *, again: str, edit: str = ""
) -> Iterator[tuple[str, str]]:
    """Pairs of heading and text; of what there is a lot, numbers and the few that need a look."""
    workspace = outputs["workspace"]
    yield "workspace", f"{workspace['name']} in resource group {workspace['resource_group']}"
    yield from _clusters(outputs["clusters"])
    yield from _jobs(outputs["jobs"], records)
    yield from _schedules(outputs.get("schedules", {}))
    yield "next", _next(outputs["jobs"], records, again, edit)
    yield "", ".venv/bin/amlstack sandbox status · .venv/bin/amlstack --help · make test · make down"


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
    if len(clusters) <= FEW:
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
    if len(jobs) > FEW:
        yield "jobs", f"{len(jobs)}: {statuses(records)}"
        bad = [name for name in jobs if records.get(name, {}).get("status") not in GOOD]
        shown = bad[:FEW]
    for name in shown:
        yield from _job(name, jobs[name], records.get(name, {}))
    if len(jobs) > FEW and len(bad) > FEW:
        yield "", f"{len(bad) - FEW} more did not complete: .venv/bin/amlstack status"


def _schedules(schedules: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    if len(schedules) > FEW:
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
    folder = job_folder(paths.home(), job["jobId"].rsplit("/", 1)[-1])
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
