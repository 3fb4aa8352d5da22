"""CPU seconds of one process from start to end, median of seven; the anchors are in the same turn of measurements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row, cpu_of

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMES = 7
IMPORTS = ("jobs", "jobs.azureml.read.command", "infra.settings", "policies.checks", "amlstack.cli.commands.check")
OTHERS = ("pydantic", "pulumi", "pulumi_azure_native.machinelearningservices")


def run(*, quick: bool) -> Iterator[Row]:
    """Time the console script's help, and imports."""
    times, few = (1, 1) if quick else (TIMES, 3)
    bare = cpu_of([sys.executable, "-c", "pass"], times=times, warm=not quick)
    amlstack = str(Path(sys.executable).with_name("amlstack"))
    taken = cpu_of([amlstack, "--help"], times=times, warm=not quick)
    yield Row("`amlstack --help`", taken, "s", "`python -c pass`", bare, "under 0.3 s", taken < 0.3)
    for verb in ("check", "show", "sizes"):
        taken = cpu_of([amlstack, verb, "--help"], times=times, warm=not quick)
        yield Row(f"`amlstack {verb} --help`", taken, "s")
    heavy = _import("azure.ai.ml", few)
    for module in IMPORTS:
        yield Row(f"`import {module}`", _import(module, times), "s", "`import azure.ai.ml`", heavy)
    for module in OTHERS:
        yield Row(f"`import {module}` (not ours)", _import(module, few), "s", "`import azure.ai.ml`", heavy)


def _import(module: str, times: int) -> float:
    return cpu_of([sys.executable, "-W", "ignore", "-c", f"import {module}"], times=times, warm=times > 1)
