"""Settings of 10,000 jobs over 20 clusters, parsed and judged as before an `up`, and the same of 1,000.

The jobs are listed in an included file, as the engine cannot hand over so many. Each job has a file of its own, all
have one code folder and one environment. Each size is a process of its own, so that its peak memory is known; the
figures are medians.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

FEW, MANY, CLUSTERS, TIMES = 1_000, 10_000, 20, 2
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
from infra.settings.parsing import read_file
root, began = Path(sys.argv[1]), time.process_time()
declared = declare(read_file(root / "Pulumi.big.yaml"), on=date(2026, 1, 1), root=root)
if not declared.ok or len(declared.runs) != int(sys.argv[2]):
    sys.exit(str(declared.findings[:3]))
print(time.process_time() - began)
"""


def run(*, quick: bool) -> Iterator[Row]:
    """Measure both sizes in turns."""
    few, many = (FEW // 5, MANY // 10) if quick else (FEW, MANY)
    with tempfile.TemporaryDirectory() as folder:
        roots = {count: generate(Path(folder, str(count)), count) for count in (few, many)}
        taken: dict[int, list[tuple[float, float, float]]] = {few: [], many: []}
        for _ in range(1 if quick else TIMES):
            for count, root in roots.items():
                taken[count].append(_judged(root, count))
    whole, work = (
        {count: statistics.median(each[which] for each in figures) for count, figures in taken.items()}
        for which in (0, 1)
    )
    memory = max(each[2] for each in taken[many])
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
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, "-c", _JUDGE, str(root), str(count)],
        cwd=PROJECT,
        env={**env, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    work = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"the declaration of {count} jobs ended with {process.returncode}"
        raise RuntimeError(message)
    return usage.ru_utime + usage.ru_stime, float(work), usage.ru_maxrss / 1_024


def generate(root: Path, count: int) -> Path:
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
