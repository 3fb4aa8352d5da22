"""What a resource is to the rules: the sizes it asks for, whatever the provider calls them.

The same cluster has many type tokens: azure-native's current, versioned and local-package form, the classic provider's,
the generic resource of ARM. Jobs name a size only when they are serverless; inside a pipeline each step may.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies.reading import ABSENT, Unknown, dig, flag, names, number, text

if TYPE_CHECKING:
    from collections.abc import Iterator

SINGLE_NODE_JOBS_TAG = "amlstack:single_node_jobs"
"""Tag on a cluster resource (value ``"true"``): no job on it spans nodes. Azure ML has no property for that."""

_AZURE_NATIVE = re.compile(
    r"azure-native(?:_[a-z]+_v\w+)?:(?P<module>machinelearningservices|resources)(?:/v\w+)?:(?P<type>\w+)"
)
_CLASSIC_CLUSTER = "azure:machinelearning/computeCluster:ComputeCluster"
_OWN_JOB = "amlstack:jobs:Job"
_COMPUTE = (("computeId",), ("compute",), ("settings", "defaultCompute"), ("settings", "default_compute"))


@dataclass(frozen=True, slots=True)
class Subject:
    """One size that a resource asks for.

    Attributes:
        kind: ``cluster`` or ``job``.
        where: Path of the size in the resource's properties.
        size: The size's name as it was written.
        nodes: Most nodes that one job can get on it: a cluster's maximum, a job's instance count.
        single_node_jobs: Whether the cluster says that no job on it spans nodes; False for a job.
    """

    kind: str
    where: str
    size: str | Unknown
    nodes: int | Unknown
    single_node_jobs: bool | Unknown = False


def subjects(resource_type: str, props: Any) -> tuple[Subject, ...]:
    """The sizes that a resource asks for; empty for resources that ask for none.

    Args:
        resource_type: Pulumi's type token.
        props: The properties as the SDK hands them over.
    """
    if resource_type == _OWN_JOB:
        return tuple(_job(props, "body", "properties"))
    if resource_type == _CLASSIC_CLUSTER:
        return tuple(_cluster(props, (), ("tags",)))
    token = _AZURE_NATIVE.fullmatch(resource_type)
    if token is None:
        return ()
    match token["module"], token["type"]:
        case "machinelearningservices", "Compute" | "MachineLearningCompute":
            return tuple(_aml_compute(props))
        case "machinelearningservices", "Job":
            # The first since azure-native's default version of 2025-12-01, the second in the older ones.
            return (*_job(props, "properties"), *_job(props, "jobBaseProperties"))
        case "machinelearningservices", "Schedule":
            inner = ("action", "jobDefinition")
            return (*_job(props, "properties", *inner), *_job(props, "scheduleProperties", *inner))
        case "resources", "Resource":
            return tuple(_generic(props))
    return ()


def _aml_compute(props: Any) -> Iterator[Subject]:
    kind = text(props, "properties", "computeType")
    if isinstance(kind, str) and kind.lower() != "amlcompute":
        return
    yield from _cluster(props, ("properties", "properties"), ("tags",))


def _cluster(props: Any, path: tuple[str, ...], tags: tuple[str, ...]) -> Iterator[Subject]:
    size = text(props, *path, "vmSize")
    if size is None:
        return
    nodes = number(props, *path, "scaleSettings", "maxNodeCount")
    yield Subject(
        kind="cluster",
        where=".".join((*path, "vmSize")),
        size=size,
        nodes=nodes if nodes is not None else Unknown(".".join((*path, "scaleSettings.maxNodeCount")), ABSENT),
        single_node_jobs=flag(props, *tags, SINGLE_NODE_JOBS_TAG),
    )


def _job(props: Any, *path: str, inherited: Any = None) -> Iterator[Subject]:
    """A job's own size, then those of the jobs inside it: a sweep's trial, the steps of a pipeline.

    Args:
        props: The resource's properties.
        path: Where the job stands in them.
        inherited: The compute of the job around it, on which it runs when it names none.
    """
    whole = dig(props, *path)
    if isinstance(whole, Unknown):
        yield Subject(kind="job", where=".".join(path), size=whole, nodes=1)
    if not isinstance(whole, Mapping):
        return
    compute = next(filter(None, (dig(props, *path, *name) for name in _COMPUTE)), inherited)
    for size_name, count_name in (("instanceType", "instanceCount"), ("instance_type", "instance_count")):
        size = text(props, *path, "resources", size_name)
        if size is None:
            continue
        serverless = _is_serverless(whole, compute)
        if serverless:
            nodes = number(props, *path, "resources", count_name)
            yield Subject(
                kind="job",
                where=".".join((*path, "resources", size_name)),
                size=serverless if isinstance(serverless, Unknown) else size,
                nodes=1 if nodes is None else nodes,
            )
        break
    for inner in ((*path, "trial"), *((*path, "jobs", name) for name in names(props, *path, "jobs"))):
        yield from _job(props, *inner, inherited=compute)
    if isinstance(steps := dig(props, *path, "jobs"), Unknown):
        yield Subject(kind="job", where=".".join((*path, "jobs")), size=steps, nodes=1)


def _is_serverless(job: Any, compute: Any) -> bool | Unknown:
    """Whether a job with a size is serverless: elsewhere the instance type is the compute's affair, not a VM size.

    Spark jobs bring their own pool and train nothing over the fabric.
    """
    if dig(job, "jobType") == "Spark" or dig(job, "type") == "spark":
        return False
    if isinstance(compute, Unknown):
        return compute
    return not compute or str(compute).rsplit("/", 1)[-1].lower() in {"serverless", "azureml:serverless"}


def _generic(props: Any) -> Iterator[Subject]:
    provider = text(props, "resourceProviderNamespace")
    kind = text(props, "resourceType")
    if not isinstance(provider, str) or provider.lower() != "microsoft.machinelearningservices":
        return
    last = kind.rsplit("/", 1)[-1].lower() if isinstance(kind, str) else ""
    if last == "computes":
        yield from _aml_compute(props)
    elif last == "jobs":
        yield from _job(props, "properties")
    elif last == "schedules":
        yield from _job(props, "properties", "action", "jobDefinition")
