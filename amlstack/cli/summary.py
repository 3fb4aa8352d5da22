"""What ``make up`` says at its end: what stands, what the policies said, how the job did, what Azure would charge."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from amlstack import paths
from amlstack.catalog import sizes
from amlstack.sandbox.store import job_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rich.console import Console

    from amlstack.engine import Outcome

_INDENT = 11
"""Columns of the headings."""


def show(
    console: Console, outcome: Outcome, outputs: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]
) -> None:
    """Print the summary.

    Args:
        console: Where to.
        outcome: What the engine did.
        outputs: The stack's outputs.
        records: Name → last record (ARM ``properties``) of each job.
    """
    console.print()
    for name, text in rows(outcome, outputs, records):
        # No word is ever broken: paths, ids and commands stay whole, to be copied.
        width = max(console.width - _INDENT, 40)
        first, *rest = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
        console.print(f"[bold]{name:<{_INDENT}}[/]{escape(first)}", soft_wrap=True)
        for line in rest:
            console.print(f"{'':<{_INDENT}}{escape(line)}", soft_wrap=True)


def rows(
    outcome: Outcome, outputs: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Pairs of heading and text."""
    workspace = outputs["workspace"]
    yield "workspace", f"{workspace['name']} in resource group {workspace['resource_group']}"
    for name, cluster in outputs["clusters"].items():
        yield "cluster", f"{name}: {cluster['min']}–{cluster['max']} nodes of {_described(cluster['size'])}"
        yield "on Azure", _cost(cluster)
    yield "policies", _verdict(outcome)
    yield from (("advice", line) for line in _advice(outcome))
    for name, job in outputs["jobs"].items():
        yield from _job(name, job, records.get(name, {}))
    for name, schedule in outputs.get("schedules", {}).items():
        yield "schedule", f"{name}: {schedule['starts']}{'' if schedule['enabled'] else ' (disabled)'}"
        for place, part in schedule["parts"].items():
            yield "", f"{place.removeprefix('jobs.') or 'job'}: {_ranks(part)}"
        yield "", "kept and judged; the sandbox starts none"
    yield "next", "edit examples/ddp_torchrun/train.py and `make up` again: an edited job is a new run"
    yield "", ".venv/bin/amlstack sandbox status · .venv/bin/amlstack --help · make test · make down"


def _described(name: str) -> str:
    size = sizes.get(name)
    if size is None:
        return name
    fabric = (
        f", {size.fabric.infiniband} InfiniBand {size.fabric.gbps_per_node:g} Gb/s" if size.fabric.infiniband else ""
    )
    return f"{size.name} ({size.gpus} × {size.gpu_model}{fabric})"


def _cost(cluster: Mapping[str, Any]) -> str:
    size = sizes.get(cluster["size"])
    price = size.price_per_hour if size else None
    if price is None:
        return f"price of {cluster['size']} not in the catalogue; up to {cluster['max']} nodes would be paid per hour"
    total = price.usd * cluster["max"]
    return f"up to {total:,.2f} USD per hour ({cluster['max']} nodes; {price.region}, {price.checked}, {price.source})"


def _verdict(outcome: Outcome) -> str:
    packs = (
        ", ".join(f"{name.split('|')[0]} {version}".strip() for name, version in sorted(outcome.packs.items()))
        or "pack"
    )
    refused = len(outcome.refusals)
    said = f"{refused} violation{'' if refused == 1 else 's'}" if refused else "no violation"
    return f"{packs}: {said} in {len(outcome.ops)} resources"


def _advice(outcome: Outcome) -> Iterator[str]:
    """One line for each policy that advises: what it says of the first of its resources, after its own description."""
    told: dict[str, list[Mapping[str, Any]]] = {}
    for said in outcome.advice:
        told.setdefault(said["policyName"], []).append(said)
    for policy, all_said in sorted(told.items()):
        names = ", ".join(dict.fromkeys(said["resourceUrn"].rsplit("::", 1)[-1] for said in all_said))
        description, *finding = all_said[0]["message"].strip().splitlines()
        yield f"{policy} ({names}): {' '.join(finding) or description}"


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
    """First and last loss of a job that writes ``outputs/metrics.json`` as the examples do; empty when it does not."""
    try:
        losses = [float(loss) for loss in json.loads((folder / "outputs" / "metrics.json").read_text())["losses"]]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f"{losses[0]:.4f} → {losses[-1]:.4f} over {len(losses)} epochs" if losses else ""
