"""Clusters, other machines and jobs as the rules see them, from every layout that declares them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.base.pulumi_wire import UNKNOWN
from policies.checks.size import SINGLE_NODE_TAG
from policies.evaluation.facts import ABSENT, Facts, Path, Unknown, dig, flag, names, number, number_of, size_of, text
from policies.evaluation.subjects import Subject, name_of, segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policies.evaluation.subjects import Address


def _tables() -> dict[str, dict[str, tuple[Path, ...]]]:
    """The paths of each fact by the layout that has it: of a job on the wire, and in the words of a job file."""
    layouts = json.loads(files(__package__).joinpath("facts.json").read_text("utf-8"))
    return {
        layout: {fact: tuple(tuple(path.split(".")) for path in paths.split()) for fact, paths in facts.items()}
        for layout, facts in layouts.items()
    }


FACTS = _tables()
_CLUSTER, _CLASSIC, OWN = FACTS["cluster"], FACTS["classic cluster"], FACTS["job"]
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
    place = around._replace(
        name=name.lower() if isinstance(name, str) else None,
        unknown=name if isinstance(name, Unknown) else None,
    )
    yield from _cluster(props, _CLASSIC, place, classic=True)


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
    paths: dict[str, tuple[Path, ...]] = {fact: ((*at, *path),) for fact, (path,) in _CLUSTER.items()}
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


_COMPUTE = (("computeId",), ("compute",), ("settings", "defaultCompute"), ("settings", "default_compute"))

STRUCTURE = frozenset(
    {"type", "jobType", "componentId", "component", "trial", "jobs", "settings", "defaultCompute", "default_compute",
     "action", "mode"}
)  # fmt: skip
"""Names in a job that say where something stands, beside those of `OWN`."""
_HOLD_JOBS = frozenset({"trial", "jobs", "component"})
_NO_COMMAND = frozenset({"pipeline", "sweep", "spark", "parallel", "automl", "import", "data_transfer"})
_OVER_NODES = frozenset({"automl", "parallel"})
"""Kinds without a command of their own that spread over nodes."""
_COMPONENT = re.compile(
    r"(?:.*/components/(?P<name>[^/]+)/versions/|(?:azureml:)?(?P<short>[^/:@]+):)(?P<version>[^/:@]+)"
)

_LOOSE = re.compile(r"(?:.*/components/(?P<name>[^/]+)(?:/labels/[^/]+)?|azureml:(?P<short>[^/:@]+)(?:@[^/:@]+)?)")
"""A reference without a version: Azure takes the latest, or that of a label."""


class FoundJob(NamedTuple):
    """One job: path of its size, the size when it is serverless, its nodes, its other facts, its compute."""

    where: str
    size: str | Unknown | None
    nodes: int | Unknown
    facts: Facts
    compute: Any = None


def component_key(reference: Any) -> str | None:
    """Name and version of a component, of its id as of its short reference; None for what names none."""
    found = _COMPONENT.fullmatch("/".join(segments(reference))) if isinstance(reference, str) else None
    return f"{found['name'] or found['short']}/{found['version']}" if found else None


def _named(reference: Any, components: Mapping[str, Any]) -> Any:
    """The spec that a step names; of a component without a version or with a label, the last one of the stack."""
    if (key := component_key(reference)) is not None:
        return components.get(key)
    loose = _LOOSE.fullmatch("/".join(segments(reference))) if isinstance(reference, str) else None
    if loose is None:
        return None
    before = f"{loose['name'] or loose['short']}/"
    return next((spec for key, spec in reversed([*components.items()]) if key.startswith(before)), None)


def complete(job: Any, components: Mapping[str, Any]) -> None:
    """Write the components of the stack into the steps that name them, in place: a step's command is in there.

    Args:
        job: A job's properties.
        components: Specs by `component_key`.
    """
    if not isinstance(job, dict):
        return
    if (spec := _named(job.get("componentId"), components)) is not None:
        job.setdefault("component", spec)
    complete(job.get("trial"), components)
    for holder in (job, job.get("component")):
        if isinstance(holder, dict) and isinstance(steps := holder.get("jobs"), dict):
            for step in steps.values():
                complete(step, components)


def jobs_in(props: Any, at: Path, *, inherited: Any = None, around: tuple[Path, ...] = ()) -> Iterator[FoundJob]:
    """A job, then those inside it.

    Args:
        props: The resource's properties.
        at: Its path in them.
        inherited: The compute of the job around it, on which it runs when it names none.
        around: Paths of what completes it: for a trial, its sweep.
    """
    whole = dig(props, *at)
    if isinstance(whole, Unknown):
        yield FoundJob(".".join(at), whole, 1, Facts(props, {}))
    if not isinstance(whole, Mapping):
        return
    compute = next(filter(None, (dig(props, *at, *name) for name in _COMPUTE if name[0] in whole)), inherited)
    yield from _own(props, at, whole, compute, around)
    yield from _offered(props, at, whole, compute)
    if not _HOLD_JOBS & whole.keys():  # as most
        return
    yield from jobs_in(props, (*at, "trial"), inherited=compute, around=(at,))
    for inner in ((*at, "jobs"), (*at, "component", "jobs")):  # those of a pipeline that is a step of another too
        for name in names(props, *inner):
            yield from jobs_in(props, (*inner, name), inherited=compute)
    if (steps := dig(props, *at, "jobs")) is not None and not isinstance(steps, Mapping):
        where = ".".join((*at, "jobs"))
        steps = steps if isinstance(steps, Unknown) else Unknown(where, "names no steps", unresolved=True)
        yield FoundJob(where, steps, 1, Facts(props, {}))


def _own(props: Any, at: Path, whole: Any, compute: Any, around: tuple[Path, ...]) -> Iterator[FoundJob]:
    # A step is completed by its component.
    places = (at, (*at, "component"), *around) if isinstance(whole.get("component"), Mapping) else (at, *around)
    facts = Facts(props, _paths(places))
    at_size, value = facts.found("size")
    size = _either(whole, "size", at) or size_of(value, at_size)
    compute = _either(whole, "compute", at) or compute
    serverless = False if size is None else _is_serverless(whole, compute, at)
    says_nothing = facts.found("command")[1] is None and not _runs_component(whole)
    kinds = _kinds(whole)
    if not serverless and says_nothing and not kinds & _OVER_NODES:
        return
    yield FoundJob(
        where=".".join(at_size),
        size=serverless if isinstance(serverless, Unknown) else size if serverless else None,
        nodes=_either(whole, "nodes", at) or _nodes(facts, automl="automl" in kinds),
        facts=facts,
        compute=compute,
    )


def _offered(props: Any, at: Path, whole: Any, compute: Any) -> Iterator[FoundJob]:
    """The sizes among which a job lets Azure choose, as one that tunes a model may."""
    held = whole.get("resources")
    for name in OWN["sizes"] if isinstance(held, Mapping) else ():
        path = (*at, *name)
        listed = dig(props, *path)
        if listed is None or not _is_serverless(whole, compute, at):
            continue
        nodes = _nodes(Facts(props, _paths((at,))), automl=False)
        for index, one in enumerate(listed if isinstance(listed, list) else [listed]):
            size = one if isinstance(one, Unknown) else size_of(dig(props, *path, str(index)), path)
            yield FoundJob(".".join(path), size, nodes, Facts(props, {}))


def _nodes(facts: Facts, *, automl: bool) -> int | Unknown:
    """Most nodes that a job may get: as it begins, as it may grow, or over all trials of an AutoML job."""
    counts: list[int] = []
    for fact in ("nodes", "most_nodes", "automl_nodes") if automl else ("nodes", "most_nodes"):
        at, value = facts.found(fact)
        count = number_of(value, at)
        if isinstance(count, Unknown):
            return count
        counts += [] if count is None else [count]
    return max(counts, default=1)


def _either(whole: Mapping[str, Any], fact: str, at: Path) -> Unknown | None:
    """A fact that is written in both of its spellings, with two values; None where it is not."""
    one, two = OWN[fact]
    holder = whole.get(one[0]) if len(one) > 1 else whole
    if not isinstance(holder, Mapping) or one[-1] not in holder or two[-1] not in holder:  # as nearly always
        return None
    if holder[one[-1]] is None or holder[two[-1]] is None or holder[one[-1]] == holder[two[-1]]:
        return None
    return Unknown(".".join((*at, *one)), "is written in two spellings with two values", unresolved=True)


@lru_cache(maxsize=64)  # most jobs have the same few paths
def _paths(places: tuple[Path, ...]) -> Mapping[str, tuple[Path, ...]]:
    """Paths at which each fact of a job may be.

    Args:
        places: The job's path, then the paths of what completes it.
    """
    paths = {
        fact: tuple((*base, *name) for base in places for name in known)
        for fact, known in OWN.items()
        if fact != "command"
    }
    paths["command"] = ((*places[0], "command"), (*places[0], "component", "command"))
    return paths


def _kinds(job: Mapping[str, Any]) -> frozenset[str]:
    """The job's own kind, in small letters; a kind that is not known yet may be any with a command."""
    named = (job.get("type"), job.get("jobType"))
    return frozenset(str(each).lower() for each in named if each is UNKNOWN or each) or frozenset({"command"})


def _runs_component(job: Mapping[str, Any]) -> bool:
    """True where it is a step or trial that runs a component registered elsewhere, whose command is not known here."""
    return not _kinds(job) <= _NO_COMMAND and any(job.get(key) is not None for key in ("componentId", "component"))


def _is_serverless(job: Any, compute: Any, at: Path) -> bool | Unknown:
    """True where a job with a size is serverless: elsewhere the instance type is the compute's affair, not a VM size.

    Spark jobs bring their own pool and train nothing over the fabric.
    """
    if _kinds(job) == {"spark"}:
        return False
    if isinstance(compute, Unknown) or not compute:
        return compute or True
    if not isinstance(compute, str):
        return Unknown(".".join((*at, *OWN["compute"][0])), "names no compute", unresolved=True)
    return name_of(compute) in {"", "serverless"}  # blank text and slashes name nothing
