"""A preview of 1,000 clusters and jobs that keep all rules, without and with the whole pack, by the clock and in CPU.

The two are run in turns, three times each, and each figure is the median; the provider behind them takes everything.
The CPU seconds are the engine's, the program's and the pack's; a busy machine moves them less than the clock.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row

from amlstack import engine
from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMES = 3
RESOURCES = 1000
GOAL = 1.4
FULL = {
    "node-ceiling": {"nodes": 16},
    "cluster-budget": {"gpus": 64, "vcpus": 1000},
    "stack-budget": {"gpus": 10**6},
    "region-approved": {"regions": ["westeurope"]},
    "tags-required": {"required": ["team"]},
    "managed-identity": "mandatory",
    "subnet-present": "mandatory",
    "environment-approved": {"registries": ["azureml"]},
}
PROGRAM = """\
import pulumi

SUBNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
INNER = {
    "vmSize": "Standard_ND96isr_H100_v5", "enableNodePublicIp": False, "remoteLoginPortPublicAccess": "Disabled",
    "subnet": {"id": SUBNET},
    "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT10M"},
}
CLUSTER = {
    "location": "westeurope", "tags": {"team": "a"}, "identity": {"type": "SystemAssigned"},
    "properties": {"computeType": "AmlCompute", "disableLocalAuth": True, "properties": INNER},
}
JOB = {
    "jobType": "Command", "command": "python train.py", "computeId": "/x/computes/c1", "limits": {"timeout": "PT1H"},
    "environmentId": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7",
    "resources": {"instanceCount": 2, "shmSize": "950g"}, "environmentVariables": {"A": "b"},
    "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 8},
}
for i in range(COUNT):
    if i % 4:
        token = "azure-native:machinelearningservices:Compute"
        pulumi.CustomResource(token, f"c{i}", {"computeName": f"c{i}", **CLUSTER})
    else:
        pulumi.CustomResource("amlstack:jobs:Job", f"j{i}", {"name": f"j{i}", "body": {"properties": JOB}})
"""


def run(*, quick: bool) -> Iterator[Row]:
    """Preview in turns."""
    sys.path.insert(0, str(PROJECT))
    from tests.support.harness import ANALYZER, Stack  # noqa: PLC0415
    from tests.support.policies.accepting_provider import attached  # noqa: PLC0415 - reached by the path above

    with tempfile.TemporaryDirectory() as folder, attached() as azure:
        chosen = Path(folder) / "full.json"
        chosen.write_text(json.dumps(FULL))
        pack = ("--policy-pack", str(ANALYZER), "--policy-pack-config", str(chosen))
        program = PROGRAM.replace("COUNT", str(RESOURCES // 5 if quick else RESOURCES))
        stack = Stack(program, Path(folder) / "stack", engine.find().folders, env=azure.environ)
        try:
            bare, judged = [], []
            for _ in range(1 if quick else TIMES):
                bare.append(_seconds(stack, ()))
                judged.append(_seconds(stack, pack))
        finally:
            stack.close()
    (without, cpu_without), (taken, cpu) = (
        map(statistics.median, zip(*turns, strict=True)) for turns in (bare, judged)
    )
    goal = f"at most {GOAL} times as long (now {taken / without:.2f})"
    yield Row("preview with the full pack", taken, "s", "the same without it", without, goal, taken <= GOAL * without)
    yield Row("its CPU seconds", cpu, "s", "the same without it", cpu_without)


def _seconds(stack: object, words: tuple[str, ...]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU, of all processes of one preview."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    stack.pulumi("preview", "--non-interactive", *words).ok()  # type: ignore[attr-defined]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - start, spent
