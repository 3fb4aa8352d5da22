"""A job's plan as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import jobs
    from jobs.planning.plans import Cost


def panel(plan: jobs.Plan, name: str, price: Cost | None = None, *, after: Sequence[str] = ()) -> Group:
    """The parts of a run and their targets; each added value stands below with its reason.

    Args:
        plan: The plan.
        name: What the job is called.
        price: What it may cost, where the catalogue knows.
        after: What must have completed before it is submitted.
    """
    return Group(_facts(plan, name, price, after), *_added(plan), Text())


def when(plan: jobs.SchedulePlan) -> Table:
    """The times at which a schedule starts the runs shown below it."""
    from jobs.model.pipeline import trigger_text

    job = f"{plan.job.create_job}, which ran before" if plan.started is None else None
    return _table({"schedule": plan.job.name, "starts": trigger_text(plan.job.trigger), "job": job})


def _table(rows: Mapping[str, str | None]) -> Table:
    """A row for each fact that there is."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for heading, text in rows.items():
        if text is not None:
            table.add_row(heading, Text(text))
    return table


def _facts(plan: jobs.Plan, name: str, price: Cost | None, after: Sequence[str]) -> Table:
    size = plan.target.facts
    where = plan.target.cluster or plan.job.compute or "serverless"
    ranks = "unknown" if plan.processes_per_node is None else str(plan.processes_per_node)
    world = "" if plan.world_size is None else f" = {plan.world_size} rank{'' if plan.world_size == 1 else 's'}"
    nodes = f"{plan.nodes} node{'' if plan.nodes == 1 else 's'}"
    rows = {
        "job": name,
        "runs on": f"{where}: {size.name}, {size.describe()}" if size else f"{where}: size not known",
        "ranks": f"{nodes} x {ranks} per node{world}",
        "launcher": plan.job.launcher.type,
        "environment": _environment(plan) or None,
        "command": plan.enriched.command,
        "after": ", ".join(after) or None,
        "cost": None if price is None else str(price),
    }
    return _table(rows)


def _environment(plan: jobs.Plan) -> str:
    """The name and real packages of a curated environment; empty for every other one."""
    from amlstack.catalog import environments

    asked = plan.enriched.environment
    known = environments.curated(asked) if isinstance(asked, str) else None
    if known is None:
        return ""
    note = f". {known.note}" if known.note else ""
    return f"{known.name}: {known.describe()} ({known.changed:%Y-%m}){note}"


def _added(plan: jobs.Plan) -> Iterator[RenderableType]:
    if not plan.added:
        yield Text("added nothing: the job runs as it was written", style="dim")
        return
    yield Text("added", style="bold")
    for each in plan.added:
        name = each.what.removeprefix("environment_variables.")
        value = "as above" if each.what == "command" else _text(each.value)
        yield Padding(Text.assemble((name, "cyan"), f" = {value}  ", (f"({each.by})", "dim")), (0, 0, 0, 2))
        yield Padding(Text(each.why, style="dim"), (0, 0, 0, 6))


def _text(value: object) -> str:
    return ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)
