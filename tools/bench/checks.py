"""Starts of a process, job files and settings: the time until something is judged."""

from __future__ import annotations

import functools
import inspect
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from measure import PROJECT, Row, cpu_of, environ, taken

import jobs
from amlstack.cli.jobfiles.judgement import check_file, plan_gate
from amlstack.cli.targets import Targets
from infra.runs import CodeFolders
from tests.support.jobs import oracle

AMLSTACK = str(Path(sys.executable).with_name("amlstack"))
IMPORTS = ("jobs", "jobs.azureml.read.command", "infra.settings", "policies.checks", "amlstack.cli.commands.check")
OTHERS = ("pydantic", "pulumi", "pulumi_azure_native.machinelearningservices")
TURN = 50
SIZE = "Standard_ND96asr_v4"
CLUSTERS = 20
_ANCHOR = """\
import inspect, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.support.jobs import oracle
for file in sys.argv[2:]:
    inspect.unwrap(oracle.body)(Path(file))
"""
_JOB = """\
command: python train.py --lr ${{{{inputs.lr}}}} --seed {number}
code: ../src
environment: azureml:own
compute: azureml:c{cluster}
experiment_name: bench
inputs:
  lr: 0.01
distribution:
  type: pytorch
  process_count_per_instance: 8
resources:
  instance_count: 2
limits:
  timeout: 3600
"""
_JUDGE = """\
import sys, time
from datetime import date
from pathlib import Path
from infra.declaration import declare
from infra.settings.reading import read_file
root, began = Path(sys.argv[1]), time.process_time()
declared = declare(read_file(root / "Pulumi.big.yaml"), on=date(2026, 1, 1), root=root)
if not declared.ok or len(declared.runs) != int(sys.argv[2]):
    sys.exit(str(declared.findings[:3]))
print(time.process_time() - began)
"""


def start(*, quick: bool) -> Iterator[Row]:
    """CPU seconds of one process from start to end, median of seven; the anchors are in the same turn."""
    times, few = (1, 1) if quick else (7, 3)
    bare = cpu_of([sys.executable, "-c", "pass"], times=times, warm=not quick)
    figure = cpu_of([AMLSTACK, "--help"], times=times, warm=not quick)
    yield Row("`amlstack --help`", figure, "s", "`python -c pass`", bare, "under 0.3 s", figure < 0.3)
    for verb in ("check", "show", "sizes"):
        yield Row(f"`amlstack {verb} --help`", cpu_of([AMLSTACK, verb, "--help"], times=times, warm=not quick), "s")
    heavy = _import("azure.ai.ml", few)
    for module in IMPORTS:
        yield Row(f"`import {module}`", _import(module, times), "s", "`import azure.ai.ml`", heavy)
    for module in OTHERS:
        yield Row(f"`import {module}` (not ours)", _import(module, few), "s", "`import azure.ai.ml`", heavy)


def _import(module: str, times: int) -> float:
    return cpu_of([sys.executable, "-W", "ignore", "-c", f"import {module}"], times=times, warm=times > 1)


def job_files(*, quick: bool) -> Iterator[Row]:
    """1,000 generated command job files, read by both in turns of 50, in one process, after both are warm.

    Ours is what `amlstack check` does with a file: read it with the places of its keys, plan it against a size,
    judge it. The anchor is azure-ai-ml's `load_job` and its conversion to the REST body.

    Where the time of a file goes with the rules of the pack, by cProfile on 2026-11-23: YAML with places 10 %, the
    model 17 %, the plan 17 %, the body 7 %, the rules 43 %. No part is large, and each is asked for. Counted in
    instructions (cachegrind, which other work on the machine does not move), a check of one file takes 1,444
    million, and one of 1,000 files takes 4,607 million, 3.2 for each further file: of that the start is three
    tenths. Both were counted with a second reader of YAML, which is gone (docs/adr/0005): for 1,000 files it saved
    7 % of the processor time. On 2026-11-27, with scripts and packages read as well, a check of one file took 1,264
    million, and each further file 4.9: of the first, pydantic and typer are 550 and PyYAML is 90.

    The floor of the row of all files: a tenth of azure-ai-ml's time for 1,000 files, 6.4 s on that day, leaves 0.64
    s. The start of a process with typer and pydantic takes 0.3 of them, so that 0.34 ms are left for each file. To
    read a file and to make its model takes 0.14 ms, with the plan and the rules on sizes 0.48, with all rules of
    the pack 0.65; printing the findings and the costs comes on top. The anchor judges nothing.
    """
    where, day = Targets(size=SIZE), date(2026, 1, 1)
    gate, folders = plan_gate(where, day), CodeFolders()

    def check(file: Path) -> Any:
        checked = check_file(file, where, gate=gate, folders=folders)
        if not checked.plans:
            raise RuntimeError(checked.findings)
        return checked

    def rendered(file: Path) -> Any:
        return jobs.body(check(file).plans[0].enriched)

    with tempfile.TemporaryDirectory() as folder:
        count = 100 if quick else 1_000
        files = _files(Path(folder), count)
        anew = inspect.unwrap(oracle.body)  # tests keep its answers
        spent = dict.fromkeys((check, rendered, anew), 0.0)
        for work in spent:
            _all(work, files[:20])
        for first in range(0, count, TURN):
            turn = files[first : first + TURN]
            for work in spent:
                spent[work] += taken(functools.partial(_all, work, turn))[1]
        ours, body, theirs = (seconds * 1_000 / count for seconds in spent.values())
        name = "load_job + REST body"
        yield Row("check, per file", ours, "ms", name, theirs, "10× faster", theirs >= 10 * ours)
        yield Row("check + REST body, per file", body, "ms", name, theirs, "10× faster", theirs >= 10 * body)
        names = [str(file) for file in files]
        for title, some, times in (("all", names, 3), ("one", names[:1], 5)):
            # Both have run in this process: with `quick` no run goes before the one that counts.
            ours = cpu_of([AMLSTACK, "check", "--size", SIZE, *some], times=1 if quick else times, warm=not quick)
            theirs = cpu_of([sys.executable, "-c", _ANCHOR, str(PROJECT), *some], times=1, warm=not quick)
            what = f"`amlstack check` of {title} with the rules of the pack, process start included"
            goal, met = ("10× faster", theirs >= 10 * ours) if len(some) > 1 else ("under 0.3 s", ours < 0.3)
            yield Row(what, ours, "s", f"{name}, import included", theirs, goal, met)


def _all(work: Any, files: list[Path]) -> None:
    for file in files:
        work(file)


def _files(folder: Path, count: int) -> list[Path]:
    """Job files as people write them: from a handful of keys to nearly all of them, some with an environment inline."""
    rng = random.Random(20)  # noqa: S311 - the same files in every run
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("")
    (folder / "conda.yml").write_text("dependencies: [python=3.11, pip]\n")
    files = []
    for number in range(count):
        file = folder / f"job{number}.yml"
        file.write_text(_commented(yaml.safe_dump(_job(rng, number), sort_keys=False, width=1_000), rng))
        files.append(file)
    return files


def _job(rng: random.Random, number: int) -> dict[str, Any]:
    inputs: dict[str, Any] = {f"p{index}": rng.choice([1, 0.01, True, "text"]) for index in range(rng.randrange(6))}
    command = " ".join(["python train.py", *(f"--{name} ${{{{inputs.{name}}}}}" for name in inputs)])
    job: dict[str, Any] = {
        "$schema": "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json",
        "command": command,
        "code": "src",
        "environment": rng.choice(
            ["azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest", {"image": "i:1", "conda_file": "conda.yml"}]
        ),
        "compute": "azureml:gpu",
        "display_name": f"run-{number}",
        "experiment_name": "bench",
    }
    if rng.random() < 0.6:
        path = "azureml://datastores/d/paths/x"
        inputs["data"] = {"type": "uri_folder", "path": path, "mode": "ro_mount"}
    if inputs:
        job["inputs"] = inputs
    more: tuple[tuple[float, str, Any], ...] = (
        (0.4, "outputs", {"model": {"type": "uri_folder", "mode": "rw_mount"}}),
        (0.7, "distribution", {"type": rng.choice(["pytorch", "mpi"]), "process_count_per_instance": 8}),
        (0.7, "resources", {"instance_count": rng.randrange(1, 5), "shm_size": "64g"}),
        (0.5, "environment_variables", {"NCCL_DEBUG": "INFO", "SEED": number}),
        (0.3, "limits", {"timeout": 3600}),
        (0.3, "services", {"board": {"type": "tensor_board", "log_dir": "outputs"}, "editor": {"type": "vs_code"}}),
        (0.2, "identity", {"type": "user_identity"}),
        (0.4, "tags", {"team": "a", "number": str(number)}),
        (0.4, "description", "A run of the benchmark."),
    )
    return {**job, **{key: value for chance, key, value in more if rng.random() < chance}}


def _commented(text: str, rng: random.Random) -> str:
    return "".join(f"{line}  # why\n" if rng.random() < 0.1 else f"{line}\n" for line in text.splitlines())


def settings(*, quick: bool) -> Iterator[Row]:
    """Settings of 10,000 jobs over 20 clusters, parsed and judged as before an `up`, and the same of 1,000.

    The jobs are listed in an included file, as the engine cannot hand over so many. Each job has a file of its own,
    all have one code folder and one environment. Each size is a process of its own, so that its peak memory is
    known; the figures are medians.
    """
    few, many = (200, 1_000) if quick else (1_000, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        roots = {count: _stack(Path(folder, str(count)), count) for count in (few, many)}
        figures: dict[int, list[tuple[float, float, float]]] = {few: [], many: []}
        for _ in range(1 if quick else 2):
            for count, root in roots.items():
                figures[count].append(_judged(root, count))
    whole, work = (
        {count: statistics.median(each[which] for each in runs) for count, runs in figures.items()} for which in (0, 1)
    )
    memory = max(each[2] for each in figures[many])
    what = f"settings with {many:,} jobs over {CLUSTERS} clusters parsed and judged, process start included"
    yield Row(what, whole[many], "s", goal="under 10 s", met=whole[many] < 10)
    each, before = (work[count] * 1_000 / count for count in (many, few))
    yield Row(
        "the same, per job without process start",
        each,
        "ms",
        f"with {few:,} jobs",
        before,
        "≤ 1.2 times",
        each <= 1.2 * before,
    )
    yield Row("the same, peak memory", memory, "MB", goal="under 1,500 MB", met=memory < 1_500)


def _judged(root: Path, count: int) -> tuple[float, float, float]:
    """CPU seconds of a process that declares a stack, those of the declaration alone, and its peak memory in MB."""
    env = environ(PYTHONPATH=str(PROJECT))
    process = subprocess.Popen(
        [sys.executable, "-c", _JUDGE, str(root), str(count)], cwd=PROJECT, env=env, stdout=subprocess.PIPE, text=True
    )
    work = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the declaration of {count} jobs ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, float(work), usage.ru_maxrss / 1_024


def _stack(root: Path, count: int) -> Path:
    """A stack of so many jobs in a folder."""
    (root / "src").mkdir(parents=True)
    (root / "src" / "train.py").write_text("print('trained')\n")
    (root / "jobs").mkdir()
    lines = ["config:", "  amlstack:workspace: big", "  amlstack:location: westeurope", "  amlstack:clusters:"]
    for number in range(CLUSTERS):
        nodes = "nodes: {min: 0, max: 8}"
        lines.append(f"    - {{name: c{number:02}, size: Standard_ND96asr_v4, {nodes}, node_public_ip: false}}")
    image = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04:20240101.v1"
    lines += ["  amlstack:environments:", f"    - {{name: own, image: {image!r}}}"]
    lines += ["  amlstack:jobs:", "    - include: jobs.yml"]
    listed = []
    for number in range(count):
        name = f"jobs/train_{number:05}.yml"
        (root / name).write_text(_JOB.format(number=number, cluster=f"{number % CLUSTERS:02}"))
        listed.append(f"- file: {name}\n")
    (root / "jobs.yml").write_text("".join(listed))
    (root / "Pulumi.big.yaml").write_text("\n".join(lines) + "\n")
    return root
