"""Why a job has not started: its cluster's nodes, the jobs that hold them, and the quota, with numbers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.code_reading import starters
from amlstack.provider.arm import ArmError
from amlstack.provider.arm.functions import of_regions
from infra.compute.quota import OF_REGION, usage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.cli.workspace.job_search import WorkspaceJob
    from amlstack.provider.arm import ArmClient

WAITING: Final = frozenset({"NotStarted", "Queued", "Provisioning", "Preparing", "Starting"})
_HOLDING: Final = frozenset({"Running", "Finalizing", "CancelRequested", "Preparing", "Starting"})
_LOW_PRIORITY: Final = "TotalLowPriorityCores"
_SHOWN: Final = 3


def nodes_of(properties: Mapping[str, Any]) -> int:
    """The number of nodes that a job asks for."""
    return _int((properties.get("resources") or {}).get("instanceCount")) or 1


def processes_of(properties: Mapping[str, Any]) -> int | None:
    """The number of processes Azure ML starts for a job on all nodes; None where its body does not say."""
    distribution = properties.get("distribution") or {}
    kind = distribution.get("distributionType")
    if kind in {"PyTorch", "Mpi"}:
        return nodes_of(properties) * (_int(distribution.get("processCountPerInstance")) or 1)
    if kind == "TensorFlow":
        return (_int(distribution.get("workerCount")) or 1) + (_int(distribution.get("parameterServerCount")) or 0)
    return None


def ranks_of(properties: Mapping[str, Any]) -> int | None:
    """The number of ranks a job trains with; None where neither its body nor its command says.

    A launcher in the command (torchrun, accelerate, mpirun …) starts ranks of its own in each process of Azure ML, as
    many as its options say.
    """
    processes, nodes = processes_of(properties), nodes_of(properties)
    command = str(properties.get("command") or "").split()
    for at, word in enumerate(command):
        program, rest = word.rpartition("/")[2], command[at + 1 :]
        if program in starters.PROGRAMS and starters.launch_of(program, rest)[0]:
            per_node = starters.per_node(program, rest, nodes)
            return per_node * (processes or 1) if per_node else None
    return processes


@dataclass(slots=True)
class Queue:
    """Answers why jobs wait; each cluster and each region is asked for once.

    Attributes:
        arm: Azure Resource Manager.
        jobs: What is known of the other jobs.
    """

    arm: ArmClient
    jobs: Iterable[WorkspaceJob] = ()
    _clusters: dict[str, Any] = field(default_factory=dict)
    _regions: dict[tuple[str, str], Any] = field(default_factory=dict)

    def why(self, job: WorkspaceJob) -> str:
        """In words; empty for a job that does not wait, or where nothing is known."""
        properties = job.record.properties
        if job.record.status not in WAITING:
            return ""
        compute = str(properties.get("computeId") or "")
        if job.kind in {"Sweep", "Pipeline"} and not compute:
            return ""
        if "/computes/" not in compute:
            size = (properties.get("resources") or {}).get("instanceType")
            return f"waits for {_nodes(nodes_of(properties))} of serverless compute{f' ({size})' if size else ''}"
        cluster = self._cluster(compute)
        if isinstance(cluster, str):
            return cluster
        return self._of_nodes(job, compute, cluster)

    def _of_nodes(self, job: WorkspaceJob, compute: str, cluster: Mapping[str, Any]) -> str:
        wanted, name = nodes_of(job.record.properties), compute.rpartition("/")[2]
        scale, counts = cluster.get("scaleSettings") or {}, cluster.get("nodeStateCounts") or {}
        most, busy = _int(scale.get("maxNodeCount")), _int(counts.get("runningNodeCount")) or 0
        coming = _int(counts.get("preparingNodeCount")) or 0
        if most is not None and wanted > most:
            return f"asks for {_nodes(wanted)}, and `{name}` has at most {most}: it never starts there"
        if errors := _errors(cluster):
            return f"`{name}` cannot grow: {errors}"
        if most is not None and busy + wanted > most:
            others = self._holders(job, compute)
            return f"waits for {_nodes(wanted)}: {busy} of at most {most} of `{name}` run other jobs{others}"
        missing = wanted - (_int(counts.get("idleNodeCount")) or 0)
        if missing > 0 and (short := self._quota(compute, cluster, missing)):
            return short
        if coming:
            return f"{_nodes(coming)} of `{name}` {'is' if coming == 1 else 'are'} being prepared, it asks for {wanted}"
        there = _int(cluster.get("currentNodeCount")) or 0
        bound = "" if most is None else f" of at most {most}"
        return f"waits for {_nodes(wanted)}: `{name}` has {there}{bound} now, {busy} busy"

    def _holders(self, job: WorkspaceJob, compute: str) -> str:
        names = [
            f"`{each.name}`"
            for each in self.jobs
            if each.record.status in _HOLDING and each.name != job.name and compute.lower() in each.record.computes
        ]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f" ({', '.join(names[:_SHOWN])}{more})" if names else ""

    def _quota(self, compute: str, cluster: Mapping[str, Any], nodes: int) -> str:
        """The shortage of the subscription's vCPUs; empty where there is none, or it cannot be asked."""
        region, size = str(cluster["location"]), str(cluster.get("vmSize") or "")
        answer = self._region(compute.split("/")[2], region, size)
        offered = (answer["sizes"].get(size) or {}) if answer else {}
        vcpus = _int(offered.get("vcpus"))
        if not answer or not vcpus:
            return ""
        low = cluster.get("vmPriority") == "LowPriority"
        for pool in (_LOW_PRIORITY,) if low else (str(offered.get("family") or ""), OF_REGION):
            usage = usage_of(pool, answer["usages"]) if pool else None
            if usage is not None and usage["limit"] >= 0 and usage["current"] + vcpus > usage["limit"]:
                named = "low priority" if low else pool
                used = f"{usage['current']} of {usage['limit']} vCPUs of {named} in {region} are in use"
                return f"quota: {used}, and it asks for {nodes * vcpus} more ({_nodes(nodes)} of {size})"
        return ""

    def _cluster(self, compute: str) -> Any:
        """The service's answer about a cluster, with its region under ``location``; text where it is none."""
        key = compute.lower()
        if key not in self._clusters:
            name = compute.rpartition("/")[2]
            try:
                answer = self.arm.look(compute)
            except ArmError:
                self._clusters[key] = ""
            else:
                outer = answer.body.get("properties") or {} if answer.status != 404 else {}
                inner = dict(outer.get("properties") or {})
                region = str(outer.get("computeLocation") or answer.body.get("location") or "")
                found: Any = {**inner, "location": region.replace(" ", "").lower()}
                if answer.status == 404:
                    found = f"there is no compute `{name}`: it never starts"
                elif not inner.get("vmSize"):
                    found = ""
                elif errors := _errors({"errors": outer.get("provisioningErrors")}):
                    found = f"`{name}` is {outer.get('provisioningState')}: {errors}"
                self._clusters[key] = found
        return self._clusters[key]

    def _region(self, subscription: str, region: str, size: str) -> Any:
        if (region, size) not in self._regions:
            asked = {"subscription": subscription, "regions": {region: [size]}}
            answer = of_regions(self.arm, asked, threading.Event())["regions"][region]
            self._regions[region, size] = None if answer["problem"] else answer
        return self._regions[region, size]


def _errors(found: Mapping[str, Any]) -> str:
    """The first of the service's errors about a compute; empty for none."""
    for each in found.get("errors") or ():
        error = each.get("error") if isinstance(each, dict) else None
        error = error if isinstance(error, dict) else each
        if isinstance(error, dict) and (error.get("message") or error.get("code")):
            return str(error.get("message") or error.get("code")).strip().splitlines()[0]
    return ""


def _nodes(number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'}"


def _int(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
