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

from policies.checks.size.fabric import SINGLE_NODE_TAG
from policies.evaluation.facts import ABSENT, Facts, Path, Unknown, dig, flag, number, text
from policies.evaluation.job_subjects import complete, component_key, jobs_in
from policies.resource_types import machines

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["cluster", "job", "environment", "resource", "text", "network", "group", "machine"]

_AZURE_NATIVE = re.compile(r"azure-native(?:_[a-z]+_v\w+)?:(?P<module>\w+)(?:/v\w+)?:(?P<type>\w+)")
_CLASSIC_CLUSTER = "azure:machinelearning/computeCluster:ComputeCluster"
_OWN_COMPONENT = "amlstack:components:Version"
_OWN_ENVIRONMENT = "amlstack:environments:Version"
_OWN_JOBS: Mapping[str, Path] = {
    "amlstack:jobs:Job": ("body", "properties"),
    "amlstack:schedules:Schedule": ("body", "properties", "action", "jobDefinition"),
}
"""Resources of our own that hold a job, and where."""

_OURS = frozenset({*_OWN_JOBS, _OWN_ENVIRONMENT, _OWN_COMPONENT, _CLASSIC_CLUSTER, *machines.CLASSIC})
_JUDGED = {
    ("machinelearningservices", "Compute"),
    ("machinelearningservices", "MachineLearningCompute"),
    ("machinelearningservices", "Job"),
    ("machinelearningservices", "Schedule"),
    ("machinelearningservices", "EnvironmentVersion"),
    ("machinelearningservices", "ComponentVersion"),
    ("resources", "Resource"),
    ("resources", "ResourceGroup"),
    ("network", "VirtualNetwork"),
}
_TEMPLATES = re.compile(
    r"(?:DeploymentAt|DeploymentStack|TemplateSpecVersion|TemplateArtifact)\w*|"
    r"ApplicationDefinition|ContentTemplate|VendorSkus|ManagementConfiguration"
)
"""Types of azure-native that hold a template, in whatever module; beside ``resources:Deployment``."""
_CLASSIC_TEMPLATE = re.compile(r"azure:\w+/(?:\w*[tT]emplateDeployment):\w*TemplateDeployment")
_NONE: Mapping[str, Any] = {}
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


@lru_cache(maxsize=1024)  # a stack has few types and many resources
def judged(resource_type: str, *, everything: bool = False) -> bool:
    """Whether any rule may speak about resources of a type; cheap, so that the others are never read.

    Args:
        resource_type: Pulumi's type token.
        everything: Whether a rule on all Azure resources (tags, regions) is configured.
    """
    if resource_type in _OURS:
        return True
    kind = _azure_native_type(resource_type)
    if kind is None:
        return resource_type.endswith("TemplateDeployment") and _CLASSIC_TEMPLATE.fullmatch(resource_type) is not None
    return everything or kind in _JUDGED or kind in machines.MACHINES or _holds_template(*kind)


@lru_cache(maxsize=1024)
def _holds_template(module: str, kind: str) -> bool:
    return (module, kind) == ("resources", "Deployment") or _TEMPLATES.fullmatch(kind) is not None


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


def subjects(resource_type: str, props: Any, groups: Mapping[str, Any] = _NONE) -> tuple[Subject, ...]:
    """What a resource asks for; empty for resources that no rule speaks about.

    Args:
        resource_type: Pulumi's type token.
        props: The properties off the wire.
        groups: Locations of the stack's resource groups, by name in small letters.
    """
    return tuple(_subjects(resource_type, props, groups))


def _subjects(resource_type: str, props: Any, groups: Mapping[str, Any]) -> Iterator[Subject]:
    if resource_type in _OWN_JOBS:
        yield from _jobs(props, _OWN_JOBS[resource_type])
    elif resource_type == _OWN_ENVIRONMENT:
        yield from _environment(props, ("body",))
    elif resource_type == _CLASSIC_CLUSTER:
        yield from _cluster(props, {fact: (path,) for fact, path in _CLASSIC.items()}, classic=True)
        yield from _located(props, ())
    elif resource_type in machines.CLASSIC:
        yield from _machines(props, machines.CLASSIC[resource_type])
        yield from _located(props, ())
    elif (token := _azure_native_type(resource_type)) is not None:
        yield from _azure_native(*token, props, groups)
    elif _CLASSIC_TEMPLATE.fullmatch(resource_type):
        yield from _template("", props, groups)


@lru_cache(maxsize=1024)
def _azure_native_type(resource_type: str) -> tuple[str, str] | None:
    """Module and type of a token of azure-native's; None for any other."""
    token = _AZURE_NATIVE.fullmatch(resource_type)
    return None if token is None else (token["module"], token["type"])


def _azure_native(module: str, kind: str, props: Any, groups: Mapping[str, Any]) -> Iterator[Subject]:
    if (known := machines.MACHINES.get((module, kind))) is not None:
        yield from _machines(props, known.paths)
    if _holds_template(module, kind):
        yield from _template(f"{module}:{kind}", props, groups)
        return
    match module, kind:
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
            yield from _generic(props)
        case "resources", "ResourceGroup":
            facts = Facts(props, {"name": (("resourceGroupName",),), "location": (("location",),)})
            yield Subject("group", "location", None, 0, facts)
        case "network", "VirtualNetwork":
            yield from _network(props, ("virtualNetworkName",), ("addressSpace", "addressPrefixes"))
    yield from _located(props, ())


def _generic(props: Any) -> Iterator[Subject]:
    """azure-native's resource of any type, by the parts of that type."""
    provider, kind = text(props, "resourceProviderNamespace"), text(props, "resourceType")
    if not isinstance(provider, str) or not isinstance(kind, str):
        return
    parents = text(props, "parentResourcePath")
    # ``workspaces/w`` around ``computes``: types and names in turn; some write the whole type instead.
    around = parents.strip("/").split("/")[::2] if isinstance(parents, str) and "/" not in kind else []
    whole = "/".join(part for part in (provider, *around, kind) if part)
    if provider.lower() == _ML.strip("/") and len(whole.split("/")) < 3:
        whole = f"{provider}/workspaces/{kind}"
    yield from _arm(whole, props, ())


def _network(props: Any, name: Path, ranges: Path) -> Iterator[Subject]:
    yield Subject("network", ".".join(ranges), None, 0, Facts(props, {"name": (name,), "ranges": (ranges,)}))


def _machines(props: Any, paths: tuple[Path, ...], at: Path = ()) -> Iterator[Subject]:
    """Nodes of a size outside training clusters, one subject for each place that names a size."""
    for path in paths:
        for place in machines.places(props, (*at, *path)):
            size = text(props, *place)
            if size is not None:
                yield Subject("machine", ".".join(place), size, 1, Facts(props, {"size": (place,)}))


def _located(props: Any, at: Path) -> Iterator[Subject]:
    """Any Azure resource that lies somewhere, and clusters anyway: what tags and regions are judged on."""
    if dig(props, *at, "location") is not None or dig(props, *at, "properties", "computeType") is not None:
        paths = {"location": ((*at, "location"),), "tags": ((*at, "tags"),)}
        yield Subject("resource", ".".join((*at, "location")), None, 0, Facts(props, paths))


def _aml_compute(props: Any, at: Path) -> Iterator[Subject]:
    kind = text(props, *at, "properties", "computeType")
    if isinstance(kind, str) and kind.lower() != "amlcompute":
        if kind.lower() in machines.COMPUTES:
            yield from _machines(props, (("properties", "properties", machines.COMPUTES[kind.lower()]),), at)
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
        single_node_jobs=flag(props, *paths["tags"][0], SINGLE_NODE_TAG),
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
        case "microsoft.network/virtualnetworks":
            yield from _network(props, (*at, "name"), (*at, "properties", "addressSpace", "addressPrefixes"))
    if (known := machines.OF_ARM.get(kind.lower())) is not None:
        paths = known.paths
        if known.inner:
            paths = tuple(path if path[0] == "sku" else ("properties", *path) for path in paths)
        yield from _machines(props, paths, at)


def _read_whole(kind: str) -> bool:
    return kind.startswith(_ML) or kind == "microsoft.network/virtualnetworks" or kind in machines.OF_ARM


def _template(token: str, props: Any, groups: Mapping[str, Any]) -> Iterator[Subject]:
    """Whatever the templates in a resource deploy, jobs after all else, as a template keeps no order."""
    # Most stacks have no template, and then nothing of this is loaded.
    from policies.templates import deployed, forms  # noqa: PLC0415

    last: list[Subject] = []
    for source in forms.sources(forms.of(token), props, groups):
        for piece in deployed.pieces(source, _read_whole):
            if isinstance(piece, Unknown):
                yield Subject("cluster", piece.path, piece, 1, Facts(props, {}))
                continue
            found = (*_arm(piece.kind, piece.props, piece.at), *_located(piece.props, piece.at))
            yield from (subject for subject in found if subject.kind != "job")
            last += (subject for subject in found if subject.kind == "job")
    yield from last
