"""What a resource is to the rules: clusters, jobs, environments, whatever the provider calls them.

The same cluster has many type tokens: azure-native's current, versioned and local-package form, the classic provider's,
the generic resource of ARM, a line in an ARM template. Jobs name a size only when they are serverless.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from policies.job_view import complete, component_key, jobs_in
from policies.reading import ABSENT, ELSEWHERE, Facts, Path, Unknown, dig, flag, number, text

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["cluster", "job", "environment", "resource", "text"]

SINGLE_NODE_JOBS_TAG = "amlstack:single_node_jobs"
"""Tag on a cluster resource (value ``"true"``): no job on it spans nodes. Azure ML has no property for that."""

_AZURE_NATIVE = re.compile(r"azure-native(?:_[a-z]+_v\w+)?:(?P<module>\w+)(?:/v\w+)?:(?P<type>\w+)")
_CLASSIC_CLUSTER = "azure:machinelearning/computeCluster:ComputeCluster"
_OWN_COMPONENT = "amlstack:components:Version"
_OWN_ENVIRONMENT = "amlstack:environments:Version"
_OWN_JOBS: Mapping[str, Path] = {
    "amlstack:jobs:Job": ("body", "properties"),
    "amlstack:schedules:Schedule": ("body", "properties", "action", "jobDefinition"),
}
"""Resources of our own that hold a job, and where."""

_OURS = frozenset({*_OWN_JOBS, _OWN_ENVIRONMENT, _OWN_COMPONENT, _CLASSIC_CLUSTER})
_JUDGED = {
    ("machinelearningservices", "Compute"),
    ("machinelearningservices", "MachineLearningCompute"),
    ("machinelearningservices", "Job"),
    ("machinelearningservices", "Schedule"),
    ("machinelearningservices", "EnvironmentVersion"),
    ("machinelearningservices", "ComponentVersion"),
    ("resources", "Resource"),
    ("resources", "Deployment"),
    ("network", "VirtualNetwork"),
}
_JOBS_AT: tuple[Path, ...] = (
    *_OWN_JOBS.values(),
    ("properties",),
    ("jobBaseProperties",),
    ("properties", "action", "jobDefinition"),
    ("scheduleProperties", "action", "jobDefinition"),
)
_ML = "microsoft.machinelearningservices/"

_INNER: dict[str, Path] = {
    "size": ("vmSize",),
    "most": ("scaleSettings", "maxNodeCount"),
    "least": ("scaleSettings", "minNodeCount"),
    "idle": ("scaleSettings", "nodeIdleTimeBeforeScaleDown"),
    "priority": ("vmPriority",),
    "public_ip": ("enableNodePublicIp",),
    "ssh": ("remoteLoginPortPublicAccess",),
    "subnet": ("subnet", "id"),
}
_OUTER: dict[str, Path] = {
    "local_auth": ("properties", "disableLocalAuth"),
    "identity": ("identity", "type"),
    "tags": ("tags",),
    "name": ("computeName",),
}
_CLASSIC: dict[str, Path] = {
    "size": ("vmSize",),
    "most": ("scaleSettings", "maxNodeCount"),
    "least": ("scaleSettings", "minNodeCount"),
    "idle": ("scaleSettings", "scaleDownNodesAfterIdleDuration"),
    "priority": ("vmPriority",),
    "public_ip": ("nodePublicIpEnabled",),
    "ssh": ("sshPublicAccessEnabled",),
    "local_auth": ("localAuthEnabled",),
    "identity": ("identity", "type"),
    "subnet": ("subnetResourceId",),
    "location": ("location",),
    "tags": ("tags",),
    "name": ("name",),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that a resource asks for.

    Attributes:
        kind: What it is to the rules.
        where: Path of the size in the resource's properties, or of the thing where it has none.
        size: The size's name as it was written; None where it names none.
        nodes: Most nodes that one job can get on it: a cluster's maximum, a job's instance count.
        single_node_jobs: Whether the cluster says that no job on it spans nodes; False for a job.
        facts: What else it says.
        compute: What a job runs on, as it was written; None for serverless and for all else.
    """

    kind: Kind
    where: str
    size: str | Unknown | None
    nodes: int | Unknown
    facts: Facts
    single_node_jobs: bool | Unknown = False
    compute: Any = None


def judged(resource_type: str, *, everything: bool = False) -> bool:
    """Whether any rule may speak about resources of a type; cheap, so that the others are never read.

    Args:
        resource_type: Pulumi's type token.
        everything: Whether a rule on all Azure resources (tags, regions) is configured.
    """
    if resource_type in _OURS:
        return True
    token = _AZURE_NATIVE.fullmatch(resource_type)
    return token is not None and (everything or (token["module"], token["type"]) in _JUDGED)


def component(resource_type: str, props: Any) -> tuple[str, Mapping[str, Any]] | None:
    """The key and the spec of a component version; None for every other resource."""
    if not resource_type.endswith((_OWN_COMPONENT, ":ComponentVersion")):
        return None
    spec = next(
        (
            found
            for at in ("body", "properties", "componentVersionProperties")
            if isinstance(found := dig(props, at, "componentSpec"), Mapping)
        ),
        None,
    )
    key = component_key(f"{dig(props, 'name')}:{dig(props, 'version')}")
    return None if spec is None or key is None else (key, spec)


def fill(resource_type: str, props: Any, components: Mapping[str, Any]) -> None:
    """Write the stack's components into the steps of a job, in place, so that their commands are judged."""
    if components and resource_type.endswith((":Job", ":Schedule")):
        for at in _JOBS_AT:
            complete(dig(props, *at), components)


def subjects(resource_type: str, props: Any) -> tuple[Subject, ...]:
    """What a resource asks for; empty for resources that no rule speaks about.

    Args:
        resource_type: Pulumi's type token.
        props: The properties off the wire.
    """
    return tuple(_subjects(resource_type, props))


def _subjects(resource_type: str, props: Any) -> Iterator[Subject]:
    if resource_type in _OWN_JOBS:
        yield from _jobs(props, _OWN_JOBS[resource_type])
        return
    if resource_type == _OWN_ENVIRONMENT:
        yield from _environment(props, ("body",))
        return
    if resource_type == _CLASSIC_CLUSTER:
        yield from _cluster(props, {fact: (path,) for fact, path in _CLASSIC.items()}, classic=True)
        yield from _located(props, ())
        return
    token = _AZURE_NATIVE.fullmatch(resource_type)
    if token is None:
        return
    match token["module"], token["type"]:
        case "machinelearningservices", "Compute" | "MachineLearningCompute":
            yield from _aml_compute(props, ())
        case "machinelearningservices", "Job":
            # The first since azure-native's default version of 2025-12-01, the second in the older ones.
            yield from _jobs(props, ("properties",))
            yield from _jobs(props, ("jobBaseProperties",))
        case "machinelearningservices", "Schedule":
            yield from _jobs(props, ("properties", "action", "jobDefinition"))
            yield from _jobs(props, ("scheduleProperties", "action", "jobDefinition"))
        case "machinelearningservices", "EnvironmentVersion":
            yield from _environment(props, ("properties",))
            yield from _environment(props, ("environmentVersionProperties",))
        case "resources", "Resource":
            provider, kind = text(props, "resourceProviderNamespace"), text(props, "resourceType")
            if isinstance(provider, str) and isinstance(kind, str):
                # The parents of a generic resource stand elsewhere or before it: the last part says what it is.
                yield from _arm(f"{provider}/workspaces/{kind.rsplit('/', 1)[-1]}", props, ())
        case "resources", "Deployment":
            yield from _template(props, ("properties",), "")
            return
    yield from _located(props, ())


def _located(props: Any, at: Path) -> Iterator[Subject]:
    """Any Azure resource that lies somewhere, and clusters anyway: what tags and regions are judged on."""
    if dig(props, *at, "location") is not None or dig(props, *at, "properties", "computeType") is not None:
        paths = {"location": ((*at, "location"),), "tags": ((*at, "tags"),)}
        yield Subject("resource", ".".join((*at, "location")), None, 0, Facts(props, paths))


def _aml_compute(props: Any, at: Path) -> Iterator[Subject]:
    kind = text(props, *at, "properties", "computeType")
    if isinstance(kind, str) and kind.lower() != "amlcompute":
        return
    yield from _cluster(props, _compute_paths(at))


@lru_cache(maxsize=64)
def _compute_paths(at: Path) -> Mapping[str, tuple[Path, ...]]:
    """Where a cluster in ARM's layout says what; the same for every resource, so made once."""
    paths: dict[str, tuple[Path, ...]] = {
        fact: ((*at, "properties", "properties", *path),) for fact, path in _INNER.items()
    }
    paths |= {fact: ((*at, *path),) for fact, path in _OUTER.items()}
    paths["name"] = ((*at, "computeName"), (*at, "resourceName"), (*at, "name"))
    paths["location"] = ((*at, "location"), (*at, "properties", "computeLocation"))
    return paths


def _cluster(props: Any, paths: Mapping[str, tuple[Path, ...]], *, classic: bool = False) -> Iterator[Subject]:
    size = text(props, *paths["size"][0])
    if size is None:
        return
    nodes = number(props, *paths["most"][0])
    yield Subject(
        kind="cluster",
        where=".".join(paths["size"][0]),
        size=size,
        nodes=nodes if nodes is not None else Unknown(".".join(paths["most"][0]), ABSENT),
        single_node_jobs=flag(props, *paths["tags"][0], SINGLE_NODE_JOBS_TAG),
        facts=Facts(props, paths, classic=classic),
    )


def _jobs(props: Any, at: Path) -> Iterator[Subject]:
    if isinstance(dig(props, *at), Mapping):
        yield Subject("text", ".".join(at), None, 0, Facts(props, {"whole": (at,)}))
    for found in jobs_in(props, at):
        yield Subject("job", found.where, found.size, found.nodes, found.facts, compute=found.compute)


def _environment(props: Any, at: Path) -> Iterator[Subject]:
    if isinstance(dig(props, *at), Mapping | Unknown):
        yield Subject("environment", ".".join((*at, "image")), None, 0, Facts(props, {"image": ((*at, "image"),)}))


def _arm(kind: str, props: Any, at: Path) -> Iterator[Subject]:
    """One resource in ARM's own layout: azure-native's generic resource, or one of a template."""
    match kind.lower().removeprefix(_ML):
        case "workspaces/computes":
            yield from _aml_compute(props, at)
        case "workspaces/jobs":
            yield from _jobs(props, (*at, "properties"))
        case "workspaces/schedules":
            yield from _jobs(props, (*at, "properties", "action", "jobDefinition"))
        case "workspaces/environments/versions" | "workspaces/versions":
            yield from _environment(props, (*at, "properties"))


def _template(props: Any, at: Path, parent: str) -> Iterator[Subject]:
    """The resources of an ARM template, nested deployments and child resources included.

    Args:
        props: The properties of the deployment.
        at: Where ``template`` and ``templateLink`` stand in them, or a parent with its own ``resources``.
        parent: Type of the resource around it; empty at the top of a template.
    """
    if not parent and dig(props, *at, "templateLink") is not None:
        missing = Unknown(".".join((*at, "templateLink")), ELSEWHERE)
        yield Subject("cluster", missing.path, missing, 1, Facts(props, {}))
    path = at if parent else (*at, "template")
    listed = dig(props, *path, "resources")
    if isinstance(listed, Unknown) or isinstance(dig(props, *path), Unknown):
        missing = listed if isinstance(listed, Unknown) else Unknown(".".join(path))
        yield Subject("cluster", missing.path, missing, 1, Facts(props, {}))
        return
    keys = map(str, listed) if isinstance(listed, Mapping) else map(str, range(len(listed or ())))
    for key in keys:
        inner = (*path, "resources", key)
        kind = text(props, *inner, "type")
        if not isinstance(kind, str):
            continue
        whole = kind if "." in kind.split("/", 1)[0] else f"{parent}/{kind}"
        if whole.lower() == "microsoft.resources/deployments":
            yield from _template(props, (*inner, "properties"), "")
            continue
        yield from _arm(whole, props, inner)
        yield from _located(props, inner)
        yield from _template(props, inner, whole)
