"""Subjects of the rules, from every layout that declares them: clusters, other machines and jobs.

A subject says what a resource asks for, where it lies, and what is remembered of the stack.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote

from amlstack.base.pulumi_wire import UNKNOWN
from policies.checks.size import SINGLE_NODE_TAG
from policies.evaluation.facts import (
    ABSENT,
    AT_RUN,
    GAP,
    Facts,
    Gapped,
    Path,
    Undecided,
    Unknown,
    dig,
    flag,
    is_expression,
    names,
    number,
    number_of,
    open_part,
    size_of,
    text,
)

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.images import Registered

_BEFORE = re.compile(r"\s*azureml:(?:/*(?=/subscriptions|subscriptions))?", re.IGNORECASE)
_UNWRITTEN = "-"
"""Stands for a name that a declaration does not know yet."""


@lru_cache(maxsize=4096)
def segments(text: str) -> tuple[str, ...]:
    """The parts of an id or a path between its slashes, decoded, in small letters.

    Args:
        text: The id, in any spelling that a server takes for it.
    """
    for _ in range(3):  # a server decodes once
        text = unquote(text) if "%" in text else text
    found: list[str] = []
    for part in re.split(r"[?#]", text, maxsplit=1)[0].replace("\\", "/").split("/"):
        one = part.strip().lower()
        if one == "..":
            del found[-1:]
        elif one and one != ".":
            found.append(one)
    return tuple(found)


def resource_type(parts: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Type and names of what an id's parts name, such as ``microsoft.x/outer/inner`` and both names.

    Args:
        parts: Of the whole id, or from its provider on. A name at the end may be missing.
    """
    inner = list(parts)
    while "providers" in inner:
        del inner[: inner.index("providers") + 1]
    return "/".join(inner[:1] + inner[1::2]), tuple(inner[2::2])


class Address(NamedTuple):
    """The place of something in a workspace; a part that is not known is None.

    Attributes:
        subscription: Its subscription.
        group: Its resource group.
        workspace: Its workspace.
        name: Its own name.
        unknown: Why its own name is not known.
    """

    subscription: str | None = None
    group: str | None = None
    workspace: str | None = None
    name: str | None = None
    unknown: Unknown | None = None

    def may_be(self, other: Address) -> bool:
        """True where both may be one resource as far as their places are known; names are compared by the caller."""
        for one, two in zip(self._around, other._around, strict=True):
            if one is not None and two is not None and one != two:
                return False
        return True

    def agrees(self, other: Address) -> int:
        """In how many parts of their places both are known to be equal."""
        return sum(one is not None and one == two for one, two in zip(self._around, other._around, strict=True))

    def within(self, around: Address | None) -> Address:
        """The same; what it does not say of itself is that of what names it."""
        if around is None or self.workspace is not None:
            return self
        return Address(around.subscription, around.group, around.workspace, self.name, self.unknown)

    @property
    def _around(self) -> tuple[str | None, str | None, str | None]:
        return self.subscription, self.group, self.workspace


@lru_cache(maxsize=4096)
def address_of(reference: str) -> Address:
    """The address that a reference names: an id of any length, a name, or a child's full name.

    Args:
        reference: As it was written; parts may be gaps.
    """
    parts = segments(_BEFORE.sub("", reference, count=1))
    name = parts[-1] if parts else ""
    if "computes" in parts[:-1]:
        name = parts[parts.index("computes") + 1]
    workspace = _after(parts, "workspaces")
    if workspace is None and len(parts) == 2:
        workspace = _known(parts[0])
    return Address(_after(parts, "subscriptions"), _after(parts, "resourcegroups"), workspace, name)


def name_of(reference: str) -> str:
    """The name at the end of a reference, in small letters."""
    return address_of(reference).name or ""


def _after(parts: tuple[str, ...], word: str) -> str | None:
    return _known(parts[parts.index(word) + 1]) if word in parts[:-1] else None


def _known(part: str) -> str | None:
    return None if GAP in part or part == _UNWRITTEN else part


Kind = Literal["cluster", "job", "environment", "resource", "text", "network", "group", "machine"]


class KnownCluster(NamedTuple):
    """Facts on a cluster of the stack, kept for the jobs on it.

    Attributes:
        size: Name of its size.
        low_priority: Whether its nodes may be taken away.
        single_node_jobs: Whether it is declared for jobs of one node only.
        nodes: Most nodes for which its size has been judged; 0 for a cluster that is declared elsewhere.
        region: Where its nodes are; None where that is not known.
    """

    size: str
    low_priority: bool
    single_node_jobs: bool | Unknown = False
    nodes: int | Unknown = 0
    region: str | None = None


class Subject(NamedTuple):
    """One thing that a resource asks for.

    Attributes:
        kind: What it is to the rules.
        where: Path of the size in the resource's properties, or of the thing where it has none.
        size: The size's name as it was written; None where it names none.
        nodes: Most nodes that one job can get on it: a cluster's maximum, a job's instance count.
        single_node_jobs: Whether the cluster says that no job on it spans nodes; False for a job.
        facts: What else it says.
        compute: What a job runs on, as it was written; None for serverless and for all else.
        place: Where a cluster is; of a job, in which workspace.
        on: The cluster of the stack that a job runs on, once it is chosen among several.
    """

    kind: Kind
    where: str
    size: str | Unknown | None
    nodes: int | Unknown
    facts: Facts
    single_node_jobs: bool | Unknown = False
    compute: Any = None
    place: Address | None = None
    on: KnownCluster | None = None


NO_COMPUTE = ""
"""Name under which a gate may know the size for jobs that name neither a compute nor a size."""


@dataclass(slots=True)
class Clusters:
    """The clusters of a stack seen so far.

    Attributes:
        promised: Whether one of them is, or may be, declared for jobs of one node only.
    """

    promised: bool = False
    _by_name: dict[str, dict[Hashable, tuple[Address, KnownCluster]]] = field(default_factory=dict)
    _nameless: dict[Hashable, tuple[Address, KnownCluster]] = field(default_factory=dict)

    def add(self, place: Address, known: KnownCluster, by: Hashable = "") -> None:
        """Remember a cluster; what was remembered of the same resource goes.

        Args:
            place: Where it is.
            known: What is remembered.
            by: The resource that declares it.
        """
        self.promised = self.promised or known.single_node_jobs is not False
        same = self._nameless if place.name is None else self._by_name.setdefault(place.name, {})
        same[by] = place, known

    def named(self, name: str) -> dict[Hashable, tuple[Address, KnownCluster]]:
        """All of a name, wherever they are, by what declares them."""
        return self._by_name.get(name.lower(), {})

    def at(self, place: Address) -> list[KnownCluster]:
        """Those that a place may mean: of one name, those whose places are known to agree most.

        Raises:
            Undecided: The only one that it may be has a name that is not known, and holds jobs to one node.
        """
        same = self.named(place.name or "")
        if len(same) == 1:  # as almost always
            ((one, known),) = same.values()
            if one.may_be(place):
                return [known]
        found = [(one.agrees(place), known) for one, known in same.values() if one.may_be(place)]
        if not found:
            for one, known in self._nameless.values() if place.name else ():
                if one.unknown is not None and one.may_be(place) and known.single_node_jobs is not False:
                    raise Undecided(one.unknown)
        best = max((agrees for agrees, _ in found), default=0)
        return [known for agrees, known in found if agrees == best]


class Early(NamedTuple):
    """A job that was judged before its cluster was seen.

    Attributes:
        subject: The job.
        found: Code and place of what was found then.
        name: The resource's name.
        urn: Its URN, as far as it is known.
    """

    subject: Subject
    found: frozenset[tuple[str, str]]
    name: str
    urn: str


@dataclass(slots=True)
class Context:
    """The facts that rules know beside the subject.

    Attributes:
        on: The day of the judgement.
        clusters: Clusters of the stack seen so far.
        networks: Address ranges of virtual networks seen so far, by name in small letters.
        groups: Locations of resource groups seen so far, by name in small letters.
        components: Specs of component versions seen so far, by name and version.
        images: Images of environments seen so far, by name and version.
        early: Jobs that name a cluster which had not been seen when they were judged.
    """

    on: date
    clusters: Clusters = field(default_factory=Clusters)
    networks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: dict[str, str | None] = field(default_factory=dict)
    components: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    images: dict[str, Registered] = field(default_factory=dict)
    early: list[Early] = field(default_factory=list)


def clusters_of(subject: Subject, context: Context) -> list[KnownCluster]:
    """The clusters of the stack that a job may run on; empty where it is serverless or its cluster has not been seen.

    Raises:
        Undecided: What it runs on is not known yet.
    """
    if subject.on is not None:
        return [subject.on]
    compute = subject.compute
    if not compute:
        return context.clusters.at(Address(name=NO_COMPUTE))
    if isinstance(compute, Unknown):
        raise Undecided(compute)
    text = str(compute)
    if is_expression(text):
        raise Undecided(Unknown(subject.where, AT_RUN))
    place = address_of(text)
    if isinstance(compute, Gapped) and GAP in (place.name or "") and (missing := open_part(compute, subject.where)):
        raise Undecided(missing)
    return context.clusters.at(place.within(subject.place))


def _tables() -> dict[str, dict[str, tuple[Path, ...]]]:
    """The paths of each fact by the layout that has it: of a job on the wire, and in the words of a job file."""
    layouts = json.loads(pathlib.Path(__file__).with_name("facts.json").read_text("utf-8"))
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
_COMPONENT = r"(?:.*/components/(?P<name>[^/]+)/versions/|(?:azureml:)?(?P<short>[^/:@]+):)(?P<version>[^/:@]+)"

_LOOSE = r"(?:.*/components/(?P<name>[^/]+)(?:/labels/[^/]+)?|azureml:(?P<short>[^/:@]+)(?:@[^/:@]+)?)"
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
    found = re.fullmatch(_COMPONENT, "/".join(segments(reference))) if isinstance(reference, str) else None
    return f"{found['name'] or found['short']}/{found['version']}" if found else None


def _named(reference: Any, components: Mapping[str, Any]) -> Any:
    """The spec that a step names; of a component without a version or with a label, the last one of the stack."""
    if (key := component_key(reference)) is not None:
        return components.get(key)
    loose = re.fullmatch(_LOOSE, "/".join(segments(reference))) if isinstance(reference, str) else None
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
