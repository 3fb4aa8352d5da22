"""A stack as a Mermaid flowchart: data, jobs, what they wait for, and the clusters with their fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.base import text as text_module
from amlstack.catalog import sizes
from jobs.local_data import all_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infra.runs import Run
    from infra.settings import Settings


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
