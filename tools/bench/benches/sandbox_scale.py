"""Clusters and jobs on the sandbox: up, refresh and destroy, by the clock and in CPU, in two modes.

The same program runs against a provider in this process that takes everything, which leaves the engine's own cost. Of
the SDK it leaves out what this project's own program leaves out: else waiting for a thousand outputs, which takes the
longer the slower a provider answers, was a third of the CPU of an `up`. The sandbox holds the jobs in its queue, so
that none runs; they are submitted, read, and at the end cancelled one by one. CPU seconds are those of the engine, the
program, the providers and the sandbox's server.

The first rows are 20 clusters and 200 jobs as users run them: the engine writes its state after every step (a
checkpoint), on both sides. What is written grows with the square of the number of resources and is the same on both, so
it brings the ratio nearer to one, the more the larger the stack. The rows that name no checkpoints show what the
sandbox and the provider cost: 100 clusters and 1,000 jobs with `PULUMI_SKIP_CHECKPOINTS`, where the state is written at
the end only. With `--quick` it is 5 clusters and 50 jobs with checkpoints alone.

Where the time goes: a job costs two requests in an up and two in a destroy (cancel, and a look at how it ended; the
runs are listed once). A refresh asks for the first 32 jobs one by one and finds the others in a list of the workspace,
which serves for two seconds. On 2026-11-23 a look at a job took 0.33 ms of CPU in the provider's HTTP client and 0.52
ms in the server, a cancel 0.28 and 0.62, a submission 0.37 and 1.03; a refresh's messages from and to the engine 0.4 ms
for each job, and the engine itself takes half as much again or more than with the provider in this process. The start
of the two plugins takes 0.3 s of CPU in each step.

The refresh of 1,000 jobs without checkpoints, on the same day beside much other work (a load of 20 on two cores, where
CPU figures are high): 10.5 s of CPU before there was a list and 7.8 s with it, the accepting provider's 3.1 s both
times. The 7.8 s are the engine 3.2, the provider 2.4, the server 1.0, the stand-in of azure-native 0.6, the rest this
process; twice the anchor leaves 3.0 s for all but the engine.

An up of 1,000 jobs without checkpoints, on that day on a quiet machine, took 17.8 s of CPU, and 7.3 s with the
accepting provider: the provider 4.7 (a third of it HTTP, a third gRPC), the server 4.1 (half of it TLS, HTTP and the
framework, a tenth the scheduler's looks at 100 clusters), the program 3.9, the engine 3.5, the stand-in of azure-native
0.7, the rest this process. Program and engine alone are as much as the anchor. Twice the anchor leaves 6.4 s for
provider and server, 5.8 ms for a job's three questions of the engine and two requests; they take 8.8 ms.

A destroy of 1,000 jobs took 1.8 s of CPU in requests alone, and the accepting provider's whole destroy 1.2 s. A list
cannot take the place of the looks: the engine deletes as many jobs at once as it has workers, and a look has to follow
its cancel, so that each list would serve a handful of jobs. Two requests for each job are what a service asks for, and
twice the anchor's CPU is out of reach while they are made.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row

from amlstack import engine
from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST = 2.0
STEPS = {
    "up": ("up", "--yes", "--skip-preview"),
    "refresh": ("refresh", "--yes", "--skip-preview"),
    "destroy": ("destroy", "--yes", "--skip-preview"),
}
TICK = os.sysconf("SC_CLK_TCK")
PROGRAM = """\
import sys
import pulumi

sys.path.insert(0, PROJECT)
from infra.components import sdk

sdk.leave_out_unread()
GROUP, WORKSPACE = "scale", "scale"
HOME = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
HOME += f"/providers/Microsoft.MachineLearningServices/workspaces/{WORKSPACE}"
SCALE = {"minNodeCount": 0, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT10M"}
INNER = {"vmSize": "Standard_ND96isr_H100_v5", "scaleSettings": SCALE}
NAMES = {"resourceGroupName": GROUP, "workspaceName": WORKSPACE, "location": "eastus"}

clusters = []
for i in range(CLUSTERS):
    compute = {"computeType": "AmlCompute", "disableLocalAuth": True, "properties": INNER}
    inputs = {"computeName": f"cluster-{i}", **NAMES, "properties": compute}
    clusters.append(pulumi.CustomResource("azure-native:machinelearningservices:Compute", f"cluster-{i}", inputs))
record = pulumi.CustomResource("amlstack:stack:Record", "stack", {"stackId": "of-the-benchmark"})
known = {"workspace": HOME, "stackId": record.id}
guard = {"jobs": {f"job-{i}": "refuse" for i in range(JOBS)}}
guard |= {f"cluster:cluster-{i}": one.id for i, one in enumerate(clusters)}
runs = pulumi.CustomResource("amlstack:runs:Guard", "runs", {**known, **guard})
for i in range(JOBS):
    cluster = clusters[i % CLUSTERS]
    properties = {
        "jobType": "Command",
        "command": "python train.py --epochs 3 --learning-rate 0.1",
        "computeId": cluster.id,
        "limits": {"jobLimitsType": "Command", "timeout": "PT1H"},
        "environmentId": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/1",
        "resources": {"instanceCount": 2, "shmSize": "950g"},
        "environmentVariables": {"NCCL_DEBUG": "INFO", "UCX_TLS": "rc,self,sm"},
        "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 8},
        "experimentName": "scale",
        "tags": {"team": "a"},
    }
    declared = {"name": f"job-{i}", "declaration": {"job": i}, "body": {"properties": properties}}
    options = pulumi.ResourceOptions(depends_on=[runs])
    pulumi.CustomResource("amlstack:jobs:Job", f"job-{i}", {**known, **declared, "placedOn": [cluster.id]}, options)
"""


def run(*, quick: bool = False) -> Iterator[Row]:
    """Each step on both, with checkpoints and without."""
    for jobs, clusters, checkpoints in ((50, 5, True),) if quick else ((200, 20, True), (1000, 100, False)):
        yield from _compared(jobs, clusters, checkpoints=checkpoints)


def _compared(jobs: int, clusters: int, *, checkpoints: bool) -> Iterator[Row]:
    sys.path.insert(0, str(PROJECT))
    from tests.support.policies.accepting_provider import attached  # noqa: PLC0415 - reached by the path above

    with tempfile.TemporaryDirectory() as folder:
        with attached() as provider:
            environ = provider.environ | _mode(checkpoints=checkpoints)
            accepted = _measured(Path(folder) / "accepting", jobs, clusters, environ)
        with _sandbox(Path(folder) / "home") as (clients, server):
            environ = clients | _mode(checkpoints=checkpoints)
            taken = _measured(Path(folder) / "sandbox", jobs, clusters, environ, server)
    for step in STEPS:
        for what, ours, anchor in zip(("", ", CPU"), taken[step], accepted[step], strict=True):
            goal = f"at most {MOST:.0f} times as much"
            mode = "" if checkpoints else ", no checkpoints"
            name = f"{step} of {clusters} clusters and {jobs:,} jobs on the sandbox{mode}{what}"
            yield Row(name, ours, "s", "accepting provider", anchor, goal, ours <= MOST * anchor)


def _mode(*, checkpoints: bool) -> dict[str, str]:
    """Variables of the engine; a shell that forbids keeping bytecode would have every start of a plugin compile it."""
    return {"PYTHONDONTWRITEBYTECODE": "", **({} if checkpoints else {"PULUMI_SKIP_CHECKPOINTS": "1"})}


def _measured(
    folder: Path, jobs: int, clusters: int, environ: Mapping[str, str], server: int | None = None
) -> dict[str, tuple[float, float]]:
    """Step → seconds by the clock and of CPU."""
    from amlstack.sandbox.protocol.entra import SUBSCRIPTION  # noqa: PLC0415
    from tests.support.harness import STAND_IN, Stack  # noqa: PLC0415

    given = f"SUBSCRIPTION, CLUSTERS, JOBS, PROJECT = {SUBSCRIPTION!r}, {clusters}, {jobs}, {str(PROJECT)!r}\n"
    found = {}
    stack = Stack(given + PROGRAM, folder, engine.find().folders, env=environ, path=(STAND_IN,))
    try:
        for step, words in STEPS.items():
            start, before = time.monotonic(), _spent(server)
            stack.pulumi(*words).ok()
            found[step] = time.monotonic() - start, _spent(server) - before
            print(f"{step}: {found[step][0]:.1f} s, CPU {found[step][1]:.1f} s", file=sys.stderr, flush=True)
    finally:
        stack.close()
    return found


def _spent(server: int | None) -> float:
    """CPU seconds so far of this process, of its children that have ended, and of the sandbox's server."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    spent = sum(one.ru_utime + one.ru_stime for one in usages)
    if server is not None:
        words = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
        spent += (int(words[11]) + int(words[12])) / TICK
    return spent


@contextmanager
def _sandbox(home: Path) -> Iterator[tuple[dict[str, str], int]]:
    """A sandbox that holds its jobs, with a workspace: the variables of its clients, and its server's process."""
    from amlstack.sandbox.server import daemon  # noqa: PLC0415
    from tests.support.sandbox.sandbox_client import Arm  # noqa: PLC0415

    home.mkdir()
    endpoint = daemon.up(home, hold_jobs=True)
    try:
        Arm(endpoint).make_workspace("scale")
        yield {**endpoint.environ(), "AMLSTACK_HOME": str(home)}, endpoint.pid
    finally:
        daemon.down(home)
