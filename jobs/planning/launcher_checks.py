"""Launchers in a command and in the scripts that it starts, held against nodes, GPUs and the distribution."""

from __future__ import annotations

import os
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, Level
from amlstack.code_reading.launches import LIGHTNING, VARIABLE, launches_in
from jobs.launchers.base import MpiDistribution, PyTorchDistribution
from jobs.launchers.per_node import Lightning
from jobs.planning.launcher_rules import Machines, judged
from jobs.values import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.launchers.base import Lowered
    from jobs.model.job import Job
    from jobs.planning.plans import Target

_INPUT = re.compile(r"\$\{\{\s*inputs\.(\w+)\s*\}\}")
_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)


@cache
def _rows() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("launchers.toml").read_text(encoding="utf-8"))


def launchers(job: Job, lowered: Lowered, target: Target, base: Path) -> Iterator[Finding]:
    """Findings on the launchers that a command starts.

    Args:
        job: As declared.
        lowered: Its own launcher in Azure ML's words.
        target: Where it runs; counts of GPUs are judged where its size is known.
        base: Folder that its code is relative to.
    """
    if any(each.code == "launcher-in-command" for each in lowered.findings):
        return
    code = job.code.path if job.code is not None and job.code.local else None
    folder = None if code is None else os.path.join(base, code)  # noqa: PTH118 - of each of many jobs
    found = tuple(launches_in(filled(job), job.environment_variables, folder))
    if not found:
        return
    machines = _machines(job, lowered, target, folder)
    made: dict[Finding, None] = {}
    for each in found:
        if each.name == VARIABLE and any(one.name != VARIABLE for one in found):
            continue
        if each.name == LIGHTNING and isinstance(job.launcher, Lightning):  # which has compared them
            continue
        file = os.path.normpath(os.path.join(str(folder), each.script)) if each.script else None  # noqa: PTH118 - as above
        for name, values in judged(each, machines):
            words = {**_words(machines), "launcher": each.name, **values}
            row = _rows()[name]
            seen, rule, remedy = (row[part].format_map(words) for part in ("seen", "rule", "remedy"))
            level = Level(values.get("level", row.get("level", Level.ERROR)))
            made[Finding(row["code"], "command", seen, rule, remedy, level, file, each.line or None)] = None
    yield from made


def _machines(job: Job, lowered: Lowered, target: Target, folder: str | None) -> Machines:
    size, distribution = target.facts, lowered.distribution
    started = getattr(distribution, "process_count_per_instance", None) or 1
    return Machines(
        nodes=None if job.max_instance_count or isinstance(job.nodes, str) else job.nodes or 1,
        gpus=size.gpus if size else None,
        size=size.name if size else "",
        started=started if isinstance(started, int) else None,
        kind=distribution.type if isinstance(distribution, PyTorchDistribution | MpiDistribution) else "",
        folder=folder,
    )


def _words(machines: Machines) -> dict[str, Any]:
    """The words of every text."""
    nodes, gpus = machines.nodes, machines.gpus
    words = {name: value or name.upper() for name, value in machines._asdict().items()}
    total = nodes * gpus if nodes and gpus else "NODES × GPUS"
    several = {"s": "" if nodes == 1 else "s", "s_gpus": "" if gpus == 1 else "s"}
    return words | several | {"total": total, "kind": machines.kind or "pytorch"}


def filled(job: Job) -> str:
    """The command with the inputs filled in that are plain values."""

    def value(found: re.Match[str]) -> str:
        given = job.inputs.get(found[1])
        return found[0] if given is None or isinstance(given, Input) or "${{" in str(given) else str(given)

    def kept(found: re.Match[str]) -> str:
        return found[1] if all(name in job.inputs for name in _INPUT.findall(found[1])) else ""

    command = job.command
    return _INPUT.sub(value, _OPTIONAL.sub(kept, command)) if "{{" in command or "[[" in command else command
