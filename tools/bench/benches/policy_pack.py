"""A preview of 1,000 clusters and jobs that keep all rules, without and with the whole pack, by the clock and in CPU.

The two are run in turns, three times each, and each figure is the median; the provider behind them takes everything.
The CPU seconds are the engine's, the program's and the pack's; a busy machine moves them less than the clock. One more
run has a pack that names as many rules and answers every question with nothing: what the engine spends on asking any
such pack and on noting each rule for each resource, and the least that ours can cost. By itself, asked the same 2,000
questions and once of the stack, our pack took 0.81 s of CPU on 2026-11-23 and the other 0.54 s: the rules are 0.03 of
the ratio, and all else is the engine's and gRPC's. How many rules a pack names made no difference. The memory is its
peak after 10,000 jobs, judged one by one and then as a stack, asked as the engine asks; their clusters are not in the
stack, so that the pack remembers every one.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Row

from amlstack import engine
from amlstack.base.paths import PROJECT
from policies.config import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMES = 3
RESOURCES = 1000
GOAL = 1.4
JOBS = 10_000
MOST_MB = 500
FULL: dict[str, Any] = {
    "node-ceiling": {"nodes": 16},
    "cluster-budget": {"gpus": 64, "vcpus": 1000},
    "stack-budget": {"gpus": 10**6},
    "region-approved": {"regions": ["westeurope"]},
    "tags-required": {"required": ["team"]},
    "managed-identity": "mandatory",
    "subnet-present": "mandatory",
    "environment-approved": {"registries": ["azureml"]},
}
SUBNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
INNER = {
    "vmSize": "Standard_ND96isr_H100_v5", "enableNodePublicIp": False, "remoteLoginPortPublicAccess": "Disabled",
    "subnet": {"id": SUBNET},
    "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT10M"},
}  # fmt: skip
CLUSTER = {
    "location": "westeurope", "tags": {"team": "a"}, "identity": {"type": "SystemAssigned"},
    "properties": {"computeType": "AmlCompute", "disableLocalAuth": True, "properties": INNER},
}  # fmt: skip
JOB: Any = {
    "jobType": "Command", "command": "python train.py", "computeId": "/x/computes/c1", "limits": {"timeout": "PT1H"},
    "environmentId": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7",
    "resources": {"instanceCount": 2, "shmSize": "950g"}, "environmentVariables": {"A": "b"},
    "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 8},
}  # fmt: skip
PROGRAM = f"""\
import pulumi

CLUSTER = {CLUSTER!r}
JOB = {JOB!r}
for i in range(COUNT):
    if i % 4:
        token = "azure-native:machinelearningservices:Compute"
        pulumi.CustomResource(token, f"c{{i}}", {{"computeName": f"c{{i}}", **CLUSTER}})
    else:
        pulumi.CustomResource("amlstack:jobs:Job", f"j{{i}}", {{"name": f"j{{i}}", "body": {{"properties": JOB}}}})
"""
NO_RULES = f"""\
#!{sys.executable}
import sys
sys.path.insert(0, {str(PROJECT)!r})
from amlstack.base import pulumi_messages
pulumi_messages.alone()
from concurrent import futures
import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2 as proto, analyzer_pb2_grpc, plugin_pb2

class Pack(analyzer_pb2_grpc.AnalyzerServicer):
    def GetAnalyzerInfo(self, request, context):
        about = {{"enforcementLevel": proto.ADVISORY, "policy_type": proto.POLICY_TYPE_RESOURCE}}
        rules = [proto.PolicyInfo(name=f"rule-{{i}}", **about) for i in range({len(ALL)})]
        return proto.AnalyzerInfo(name="empty", version="1.0.0", supportsConfig=True, policies=rules)
    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version="1.0.0")
    def Configure(self, request, context):
        return empty_pb2.Empty()
    def ConfigureStack(self, request, context):
        return proto.AnalyzerStackConfigureResponse()
    def Analyze(self, request, context):
        return proto.AnalyzeResponse()
    def Remediate(self, request, context):
        return proto.RemediateResponse()
    def AnalyzeStack(self, request, context):
        return proto.AnalyzeResponse()

server = grpc.server(futures.ThreadPoolExecutor(max_workers=1), options=[("grpc.max_receive_message_length", -1)])
analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Pack(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
server.wait_for_termination()
"""


def run(*, quick: bool) -> Iterator[Row]:
    """Preview in turns, then measure the pack alone."""
    sys.path.insert(0, str(PROJECT))
    from tests.support.harness import ANALYZER, Stack  # noqa: PLC0415
    from tests.support.policies.accepting_provider import attached  # noqa: PLC0415 - reached by the path above

    with tempfile.TemporaryDirectory() as folder, attached() as azure:
        chosen, empty = Path(folder) / "full.json", Path(folder) / "no-rules"
        chosen.write_text(json.dumps(FULL))
        empty.write_text(NO_RULES)
        empty.chmod(0o755)
        pack = ("--policy-pack", str(ANALYZER), "--policy-pack-config", str(chosen))
        program = PROGRAM.replace("COUNT", str(RESOURCES // 5 if quick else RESOURCES))
        keeps = {"PYTHONDONTWRITEBYTECODE": ""}  # only the first start of a program compiles it
        stack = Stack(program, Path(folder) / "stack", engine.find().folders, env={**azure.environ, **keeps})
        try:
            turns = [[_seconds(stack, words) for words in ((), pack)] for _ in range(1 if quick else TIMES)]
            least, cpu_least = _seconds(stack, ("--policy-pack", str(empty)))
        finally:
            stack.close()
        jobs = JOBS // 10 if quick else JOBS
        peak = _peak(str(ANALYZER), Path(folder), jobs)
    (bare, cpu_bare), (taken, cpu) = (
        map(statistics.median, zip(*column, strict=True)) for column in zip(*turns, strict=True)
    )
    goal = f"at most {GOAL} times as long (now {taken / bare:.2f}; a pack of as many empty rules {least / bare:.2f})"
    yield Row("preview with the full pack", taken, "s", "the same without it", bare, goal, taken <= GOAL * bare)
    yield Row("its CPU seconds", cpu, "s", "the same without it", cpu_bare)
    yield Row("its CPU seconds", cpu, "s", "the same with as many empty rules", cpu_least)
    goal = f"under {MOST_MB} MB"
    yield Row(f"peak memory of the pack, {jobs:,} jobs", peak, "MB", goal=goal, met=peak < MOST_MB)


def _peak(analyzer: str, folder: Path, jobs: int) -> float:
    """Peak memory in MB of the pack's process over a stack of jobs."""
    import grpc  # noqa: PLC0415 - half of the benchmarks need none of it
    from google.protobuf.struct_pb2 import Struct  # noqa: PLC0415
    from pulumi.runtime.proto import analyzer_pb2 as proto  # noqa: PLC0415
    from pulumi.runtime.proto import analyzer_pb2_grpc  # noqa: PLC0415

    process = subprocess.Popen([analyzer, "127.0.0.1:1"], cwd=folder, stdout=subprocess.PIPE, text=True)
    if process.stdout is None:  # never, by the words above
        raise RuntimeError(analyzer)
    with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
        asked = analyzer_pb2_grpc.AnalyzerStub(channel)
        configured = proto.ConfigureAnalyzerRequest()
        configured.policyConfig["stack-budget"].enforcementLevel = proto.MANDATORY
        configured.policyConfig["stack-budget"].properties.update(FULL["stack-budget"])
        asked.Configure(configured)
        stack = proto.AnalyzeStackRequest()
        for number in range(jobs):
            name = f"j{number}"
            properties = Struct()
            properties.update({"name": name, "body": {"properties": JOB}})
            kind, urn = "amlstack:jobs:Job", f"urn:pulumi:s::p::amlstack:jobs:Job::{name}"
            asked.Analyze(proto.AnalyzeRequest(type=kind, name=name, urn=urn, properties=properties))
            stack.resources.add(type=kind, name=name, urn=urn, properties=properties)
        asked.AnalyzeStack(stack)
    process.terminate()  # an interrupt would be lost where a shell starts this in the background
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024


def _seconds(stack: object, words: tuple[str, ...]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU, of all processes of one preview."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    stack.pulumi("preview", "--non-interactive", *words).ok()  # type: ignore[attr-defined]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - start, spent
