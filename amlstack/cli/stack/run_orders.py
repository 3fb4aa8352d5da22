"""The graph of a stack; ``after`` in job files, judged against the stack that lists a file, else within the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.base import text as text_module
from amlstack.catalog import sizes
from infra.runs import Run, order
from infra.runs.order import Order, OrderedRun, sequence
from jobs.local_data import all_inputs

if TYPE_CHECKING:
    import jobs
    from amlstack.base.findings import Finding
    from amlstack.cli.jobfiles.judgement import Checked
    from amlstack.cli.targets import Targets
    from infra.settings import Reading, Settings


def findings(checked: Sequence[Checked], where: Targets) -> tuple[Finding, ...]:
    """The findings about the order of the files' jobs.

    The other files of a stack are read only where something in these files comes after something.

    Args:
        checked: The files.
        where: The stack.
    """
    found = [each for one in checked for each in order.misplaced(_loaded(one))]
    listed = _listed(where)
    inside: dict[Path, Checked] = {}
    for one in checked:
        if (path := one.file.resolve()) in listed:
            inside[path] = one
        else:
            found += within(one)
    if where.reading is None or where.settings is None or not _ordered(inside, listed, where.settings):
        return tuple(found)
    return (*found, *_of_stack(inside, where, where.reading, where.settings).findings)


def within(checked: Checked) -> tuple[Finding, ...]:
    """The same within one file alone: jobs that come after themselves, or after each other."""
    if not any(getattr(plan.job, "after", ()) for plan in checked.plans):
        return ()
    return Order.of(order.alone(_loaded(checked), checked.file), complete=False).findings


def in_order(plans: Sequence[jobs.Planned], file: Path) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The jobs of one file by their place in it, each behind those of them that it comes after, with these."""
    first: dict[str, int] = {}
    for index, plan in enumerate(plans):
        first.setdefault(plan.job.name or file.stem, index)
    before = {
        index: tuple(at for name in getattr(plan.job, "after", ()) if (at := first.get(name, index)) != index)
        for index, plan in enumerate(plans)
    }
    return tuple((index, before[index]) for index in sequence(before))


def elsewhere(plans: Sequence[jobs.Planned], file: Path) -> Iterator[str]:
    """A line for each job that comes after jobs which are not in its file, or not meant."""
    here = {plan.job.name or file.stem for plan in plans}
    for plan in plans:
        if others := [f"`{name}`" for name in getattr(plan.job, "after", ()) if name not in here]:
            yield f"{plan.job.name or file.stem} comes after {', '.join(others)}, which this rehearsal does not run"


def _of_stack(inside: dict[Path, Checked], where: Targets, reading: Reading, settings: Settings) -> Order:
    import jobs

    members: list[OrderedRun] = []
    complete = not reading.doubts("jobs")
    for index, job_file in enumerate(settings.jobs):
        path = where.root / job_file.file
        known = inside.get(path.resolve())
        loaded = jobs.load(path) if known is None else _loaded(known)
        more = order.members(loaded, path, job_file, reading, index)
        complete = complete and bool(more)
        members += more
    return Order.of(members, complete=complete)


def _listed(where: Targets) -> dict[Path, int]:
    files = where.settings.jobs if where.settings is not None else ()
    return {(where.root / each.file).resolve(): index for index, each in enumerate(files)}


def _ordered(inside: dict[Path, Checked], listed: dict[Path, int], settings: Settings) -> bool:
    return any(
        settings.jobs[listed[path]].after or any(getattr(plan.job, "after", ()) for plan in one.plans)
        for path, one in inside.items()
    )


def _loaded(checked: Checked) -> jobs.Loaded:
    import jobs

    return jobs.Loaded(tuple(plan.job for plan in checked.plans), (), checked.source)


def mermaid(settings: Settings, runs: Sequence[Run]) -> Iterator[str]:
    """The lines of the chart; the same declaration always gives the same ones.

    Args:
        settings: Of the stack, for its clusters.
        runs: Its jobs and schedules.
    """
    yield "flowchart LR"
    nodes: dict[tuple[str, str], str] = {}

    def node(kind: str, name: str) -> str:
        return nodes.setdefault((kind, name), f"{kind}{sum(each == kind for each, _ in nodes)}")

    for cluster in settings.clusters:
        size = sizes.get(cluster.size)
        low = ", low priority" if cluster.priority == "low_priority" else ""
        words = (cluster.name, f"{cluster.nodes.min} to {cluster.nodes.max} × {cluster.size}{low}")
        yield f"  {node('cluster', cluster.name)}[/{_label(*words, *([size.describe()] if size else ()))}/]"
    edges: list[str] = []
    for run in runs:
        own, parts = node("run", run.name), run.plan.parts.values()
        ranks = {f"{part.job.nodes} node{'' if part.job.nodes == 1 else 's'}" for part in parts}
        words = (
            run.name,
            *(["schedule"] if run.is_schedule else []),
            *(ranks if len(parts) == 1 else [f"{len(parts)} steps"]),
        )
        yield f"  {own}({_label(*words)})"
        for path in dict.fromkeys(each.path for each in all_inputs(run.declared).values() if each.path):
            if ("data", path) not in nodes:
                yield f"  {node('data', path)}[({_label(path)})]"
            edges.append(f"  {node('data', path)} --> {own}")
        edges += (f"  {node('run', name)} -- then --> {own}" for name in run.after)
        targets = dict.fromkeys(part.target.cluster or part.target.size or "serverless" for part in parts)
        for name in targets:
            if ("cluster", name) not in nodes:
                yield f"  {node('cluster', name)}[/{_label(name, 'not of this stack')}/]"
            edges.append(f"  {own} -.-> {node('cluster', name)}")
    yield from edges


_CODES: Final = (("#", "#35;"), ('"', "#quot;"), ("&", "#amp;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;"))
"""Mermaid's codes (mermaid.js.org, "Entity codes to escape characters"), the one of `#` first."""


def _label(*lines: str) -> str:
    """A text in quotes, in which Mermaid reads neither markup nor an end."""
    found = []
    for line in lines:
        plain = " ".join(text_module.text(line).split())
        for sign, code in _CODES:
            plain = plain.replace(sign, code)
        found.append(plain)
    return f'"{"<br>".join(found)}"'
