"""Clusters and other machines as subjects, from azure-native's layout and the classic provider's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from policies.checks.size import SINGLE_NODE_TAG
from policies.evaluation.facts import ABSENT, Facts, Path, Unknown, dig, flag, number, size_of, text
from policies.evaluation.subjects import Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policies.evaluation.arm_ids import Address

INNER: dict[str, Path] = {
    "size": ("vmSize",),
    "most": ("scaleSettings", "maxNodeCount"),
    "least": ("scaleSettings", "minNodeCount"),
    "idle": ("scaleSettings", "nodeIdleTimeBeforeScaleDown"),
    "priority": ("vmPriority",),
    "public_ip": ("enableNodePublicIp",),
    "ssh": ("remoteLoginPortPublicAccess",),
    "subnet": ("subnet", "id"),
}
OUTER: dict[str, Path] = {
    "local_auth": ("properties", "disableLocalAuth"),
    "identity": ("identity", "type"),
    "tags": ("tags",),
    "name": ("computeName",),
}
CLASSIC: dict[str, Path] = {
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
    "region": ("location",),
    "tags": ("tags",),
    "name": ("name",),
}


COMPUTES: Mapping[str, str] = {
    "computeinstance": "vmSize",
    "aks": "agentVmSize",
    "virtualmachine": "virtualMachineSize",
}
"""Kinds of computes beside training clusters, in small letters, and the property that names their size."""

_WITHOUT_SIZE = frozenset({"kubernetes", "datafactory", "hdinsight", "databricks", "datalakeanalytics", "synapsespark"})
"""Kinds of computes that name no size; one of another name is read as a training cluster."""


def _in_properties(arm: str, classes: str, *path: str) -> tuple[str, tuple[Path, ...]]:
    """A type in ARM templates, and its path below ``properties`` and below the name in azure-native's older classes."""
    return f"microsoft.machinelearningservices/workspaces/{arm}", (("properties", *path), (classes, *path))


MACHINES: Mapping[str, tuple[str, tuple[Path, ...]]] = {
    "FeaturesetVersion": _in_properties(
        "featuresets/versions", "featuresetVersionProperties", "materializationSettings", "resource", "instanceType"
    ),
    "InferenceGroup": _in_properties("inferencepools/groups", "inferenceGroupProperties", "nodeSkuType"),
    "OnlineDeployment": _in_properties("onlineendpoints/deployments", "onlineDeploymentProperties", "instanceType"),
    "Schedule": _in_properties(
        "schedules", "scheduleProperties", "action", "monitorDefinition", "computeConfiguration", "instanceType"
    ),
}
"""azure-native's types of Azure ML that ask for nodes of a size outside computes and jobs: type in ARM, paths of sizes.

No job spans their nodes, so they are judged by what is true of a size anywhere: whether Azure still gives it out.
"""


def machine_subjects(props: Any, paths: Iterable[Path], at: Path = ()) -> Iterator[Subject]:
    """Nodes of a size outside training clusters, one subject for each place that names a size."""
    for path in paths:
        place = (*at, *path)
        size = size_of(dig(props, *place), place)
        if size is not None:
            yield Subject("machine", ".".join(place), size, 1, Facts(props, {"size": (place,)}))


def classic_cluster(props: Any, around: Address) -> Iterator[Subject]:
    """A cluster of a provider that Terraform's is bridged to, in a workspace."""
    if isinstance(blocks := props.get("scaleSettings"), list):
        several = Unknown("scaleSettings", "is written more than once", unresolved=True)
        props = {**props, "scaleSettings": blocks[0] if len(blocks) == 1 else several if blocks else None}
    name = text(props, "name")
    place = replace(
        around,
        name=name.lower() if isinstance(name, str) else None,
        unknown=name if isinstance(name, Unknown) else None,
    )
    yield from _cluster(props, {fact: (path,) for fact, path in CLASSIC.items()}, place, classic=True)


def compute_subjects(props: Any, at: Path, place: Address) -> Iterator[Subject]:
    """A compute of a workspace in ARM's layout: a training cluster, or another machine.

    Args:
        props: Properties in which it lies.
        at: Its path in them.
        place: Where it is.
    """
    kind = text(props, *at, "properties", "computeType")
    low = kind.lower() if isinstance(kind, str) else ""
    if low in COMPUTES:
        yield from machine_subjects(props, (("properties", "properties", COMPUTES[low]),), at)
    if low in COMPUTES or low in _WITHOUT_SIZE:
        return
    outer = dig(props, *at, "properties")
    if isinstance(outer, Mapping) and outer.get("scaleSettings") is not None:  # as updates of old API versions have it
        yield _grows(props, (*at, "properties", "vmSize"))
    yield from _cluster(props, _compute_paths(at), place)


@lru_cache(maxsize=64)
def _compute_paths(at: Path) -> Mapping[str, tuple[Path, ...]]:
    """The paths of a cluster's properties in ARM's layout; the same for every resource, so made once."""
    paths: dict[str, tuple[Path, ...]] = {
        fact: ((*at, "properties", "properties", *path),) for fact, path in INNER.items()
    }
    paths |= {fact: ((*at, *path),) for fact, path in OUTER.items()}
    paths["name"] = ((*at, "computeName"), (*at, "resourceName"), (*at, "name"))
    paths["location"] = ((*at, "location"), (*at, "properties", "computeLocation"))
    paths["region"] = tuple(reversed(paths["location"]))  # of the nodes: the first may be the workspace's
    return paths


def _cluster(
    props: Any, paths: Mapping[str, tuple[Path, ...]], place: Address, *, classic: bool = False
) -> Iterator[Subject]:
    size = size_of(dig(props, *paths["size"][0]), paths["size"][0])
    if size is None:
        if dig(props, *paths["most"][0][:-1]) is not None:
            yield _grows(props, paths["size"][0])
        return
    nodes = number(props, *paths["most"][0])
    yield Subject(
        kind="cluster",
        where=".".join(paths["size"][0]),
        size=size,
        nodes=nodes if nodes is not None else Unknown(".".join(paths["most"][0]), ABSENT),
        single_node_jobs=flag(props, *paths["tags"][0], SINGLE_NODE_TAG),
        facts=Facts(props, paths, classic=classic),
        place=place,
    )


def _grows(props: Any, size: Path) -> Subject:
    """An update of a cluster that exists grows it, and does not say of which size it is."""
    where = ".".join(size)
    unknown = Unknown(where, "is not written here, and the cluster may grow", unresolved=True)
    return Subject("cluster", where, unknown, 1, Facts(props, {}))
