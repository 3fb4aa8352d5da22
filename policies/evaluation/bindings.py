"""Which facts of which subject each rule judges: the one place where wire forms and check functions meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding
from amlstack.catalog import sizes
from policies.checks import (
    Rule,
    cluster_budget,
    environment_pin,
    environment_source,
    fabric,
    fabric_off,
    gpus_idle,
    hourly_cost,
    identity,
    idle_time,
    job_cost,
    job_timeout,
    local_auth,
    node_ceiling,
    processes,
    public_ip,
    region,
    required_tags,
    retiring_size,
    scale_to_zero,
    secret,
    shared_memory,
    spot_checkpoint,
    ssh,
    subnet_overlap,
    subnet_present,
)
from policies.checks.duration import seconds
from policies.evaluation.facts import Undecided, Unknown, is_expression, last_part, open_part

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size
    from policies.evaluation.subjects import Subject

Found = Iterable[Finding | None]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is remembered of a cluster of the stack, for the jobs on it.

    Attributes:
        size: Name of its size.
        low_priority: Whether its nodes may be taken away.
        single_node_jobs: Whether it is declared for jobs of one node only.
    """

    size: str
    low_priority: bool
    single_node_jobs: bool | Unknown = False


@dataclass(frozen=True, slots=True)
class Early:
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
    """What rules know beside the subject.

    Attributes:
        on: The day of the judgement.
        clusters: Clusters of the stack seen so far, by name in small letters.
        networks: Address ranges of virtual networks seen so far, by name in small letters.
        groups: Locations of resource groups seen so far, by name in small letters.
        components: Specs of component versions seen so far, by name and version.
        early: Jobs that name a cluster which had not been seen when they were judged.
    """

    on: date
    clusters: dict[str, Cluster] = field(default_factory=dict)
    networks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: dict[str, str | None] = field(default_factory=dict)
    components: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    early: list[Early] = field(default_factory=list)


Judge = Callable[["Subject", Mapping[str, Any], Context], Found]


@dataclass(frozen=True, slots=True)
class Binding:
    """A rule, the kinds of subject that it judges, and how."""

    rule: Rule
    kinds: frozenset[str]
    judge: Judge


def _size(subject: Subject, context: Context) -> Size | None:
    """The catalogue's row: of the subject's own size, or of the cluster that a job names."""
    if isinstance(subject.size, Unknown):
        raise Undecided(subject.size)
    name = subject.size
    if name is None:
        cluster = cluster_of(subject, context)
        name = cluster.size if cluster else None
    return sizes.get(name) if name else None


def cluster_of(subject: Subject, context: Context) -> Cluster | None:
    """The cluster of the stack that a job runs on; None where it is serverless or its cluster has not been seen.

    Raises:
        Undecided: What it runs on is not known yet.
    """
    compute = subject.compute
    return context.clusters.get(last_part(compute, subject.where).lower()) if compute else None


def _nodes(subject: Subject) -> int:
    if isinstance(subject.nodes, Unknown):
        raise Undecided(subject.nodes)
    return subject.nodes


def _where_nodes(subject: Subject) -> str:
    return subject.facts.at("most" if subject.kind == "cluster" else "nodes")


def _promise(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    if subject.nodes == 1 or not any(one.single_node_jobs for one in context.clusters.values()):
        return  # whatever it runs on, there is no promise to break, and nothing to wait for
    cluster = cluster_of(subject, context)
    if cluster is None or not cluster.single_node_jobs:
        return
    if isinstance(cluster.single_node_jobs, Unknown):
        raise Undecided(cluster.single_node_jobs)
    yield fabric.check_job(
        _nodes(subject),
        cluster=last_part(subject.compute, subject.where),
        single_node_jobs=True,
        where=_where_nodes(subject),
    )


def _retiring(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    size = _size(subject, context) if subject.size is not None else None
    if size is not None:
        yield retiring_size.check(size, on=context.on, days=int(config["days"]), where=subject.where)


def _least(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    facts = subject.facts
    yield scale_to_zero.check(facts.number("least") or 0, nodes=int(config["nodes"]), where=facts.at("least"))


def _idle(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    facts = subject.facts
    yield idle_time.check(facts.text("idle"), minutes=int(config["minutes"]), where=facts.at("idle"))


def _ceiling(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    if config["nodes"] is not None and subject.size is not None:
        yield node_ceiling.check(_nodes(subject), nodes=int(config["nodes"]), where=_where_nodes(subject))


def _budget(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if _configured(config) and subject.size is not None and (size := _size(subject, context)):
        yield cluster_budget.check(size, nodes=_nodes(subject), where=_where_nodes(subject), **config)


def _per_hour(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if _configured(config) and subject.size is not None and (size := _size(subject, context)):
        yield hourly_cost.check(size, nodes=_nodes(subject), usd=config["usd"], where=_where_nodes(subject))


def _per_job(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if _configured(config) and (size := _size(subject, context)):
        facts = subject.facts
        at_once, timeout = _bound(subject)
        yield job_cost.check(
            size, nodes=at_once * _nodes(subject), timeout=timeout, usd=config["usd"], where=facts.at("timeout")
        )


def _region(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    if config["regions"] and (location := subject.facts.text("location")):
        yield region.check(location, regions=config["regions"], where=subject.facts.at("location"))


def _tags(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    if config["required"]:
        tags = subject.facts.mapping("tags")
        yield required_tags.check(
            tags, required=config["required"], values=config["values"], where=subject.facts.at("tags")
        )


def _public_ip(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    yield public_ip.check(subject.facts.boolean("public_ip"), where=subject.facts.at("public_ip"))


def _ssh(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    # The classic provider has a switch, which is off when absent.
    access = ("Enabled" if facts.boolean("ssh") else "Disabled") if facts.classic else facts.text("ssh")
    yield ssh.check(access, where=facts.at("ssh"))


def _local_auth(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    said = facts.boolean("local_auth")
    disabled = (None if said is None else not said) if facts.classic else said
    yield local_auth.check(disabled, where=facts.at("local_auth"))


def _identity(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    yield identity.check(subject.facts.text("identity"), where=subject.facts.at("identity"))


def _subnet(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    yield subnet_present.check(subject.facts.reference("subnet"), where=subject.facts.at("subnet"))


def _overlap(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    size = _size(subject, context)
    if size is None or not size.fabric.rdma:
        return
    name = subject.facts.named("subnet", "virtualNetworks")
    given = {key.lower(): value for key, value in config["networks"].items()}
    outside = tuple(part.strip() for part in given.get(name, "").split(",") if part.strip())
    prefixes = (*context.networks.get(name, ()), *outside)
    yield subnet_overlap.check(size, prefixes=prefixes, where=subject.facts.at("subnet"))


def _source(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    facts = subject.facts
    if subject.kind == "job":
        if config["registries"] and (environment := facts.text("environment")):
            where = facts.at("environment")
            yield environment_source.check(environment, registries=config["registries"], where=where)
    elif config["images"] and (image := facts.text("image")):
        yield environment_source.check_image(image, images=config["images"], where=facts.at("image"))


def _pinned(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    if subject.kind == "job":
        if environment := facts.text("environment"):
            yield environment_pin.check(environment, where=facts.at("environment"))
    elif image := facts.text("image"):
        yield environment_pin.check_image(image, where=facts.at("image"))


def _processes(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    count = subject.facts.number("processes")
    if count is not None and (size := _size(subject, context)):
        where = subject.facts.at("processes")
        nodes = 1 if isinstance(subject.nodes, Unknown) else subject.nodes
        yield processes.check(count, size, nodes=nodes, where=where)


def _gpus_idle(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    count = subject.facts.number("processes")
    if count is not None and (size := _size(subject, context)):
        yield gpus_idle.check(count, size, where=subject.facts.at("processes"))


def _shm(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if (size := _size(subject, context)) and size.gpus:
        facts = subject.facts
        yield shared_memory.check(
            facts.text("shm"),
            size,
            docker_args=_docker(subject),
            gib_per_gpu=float(config["gib_per_gpu"]),
            where=facts.at("shm"),
        )


def _fabric_off(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    size, later = None, None
    try:
        size = _size(subject, context)
    except Undecided as undecided:
        later = undecided
    if size is not None and not (size.gpus and size.fabric.usable):
        return
    facts = subject.facts
    where = (facts.at("variables"), facts.at("command"), facts.at("docker"))
    variables = facts.mapping("variables")
    given = facts.value("command")
    command, docker = given if isinstance(given, str) else "", _docker(subject)
    switches = [(f"{where[0]}.{name}", variables.get(name)) for name in fabric_off.HARMFUL]
    waiting = [one for one in (open_part(value, place) for place, value in (*switches, (where[1], given))) if one]
    known = {name: value for name, value in variables.items() if open_part(value, name) is None}
    if not waiting and not fabric_off.harmful(known, command, docker):
        return
    if later is not None:
        raise later
    yield from fabric_off.check(known, size, nodes=_nodes(subject), command=command, docker_args=docker, where=where)
    if waiting:
        raise Undecided(waiting[0])


def _checkpoint(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    facts = subject.facts
    cluster = cluster_of(subject, context) if subject.size is None else None
    spot = (facts.text("tier") or "").lower() == "spot" or (cluster is not None and cluster.low_priority)
    if not spot or _nodes(subject) < 2:
        return
    modes = [_mode(output, f"{facts.at('outputs')}.{name}.mode") for name, output in facts.mapping("outputs").items()]
    yield spot_checkpoint.check(modes, preemptible=spot, nodes=_nodes(subject), where=facts.at("outputs"))


def _job_timeout(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    yield job_timeout.check(_timeout(subject), hours=config["hours"], where=subject.facts.at("timeout"))


def _secret(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    yield from secret.check(facts.value("whole"), where=facts.at("whole"))
    for missing, name in _unknown_texts(facts.value("whole"), facts.at("whole"), ""):
        if secret.may_be(name):
            raise Undecided(missing)


def _unknown_texts(value: Any, path: str, name: str) -> Iterable[tuple[Unknown, str]]:
    """Each value that is not known yet, with its name."""
    if (missing := open_part(value, path)) is not None:
        yield missing, name
    inner = value.items() if isinstance(value, Mapping) else ()
    for key, each in inner:
        yield from _unknown_texts(each, f"{path}.{key}", str(key))


def _configured(config: Mapping[str, Any]) -> bool:
    return any(value is not None for value in config.values())


def _docker(subject: Subject) -> str:
    value = subject.facts.value("docker")
    for index, one in enumerate(value if isinstance(value, list) else [value]):
        if (missing := open_part(one, f"{subject.facts.at('docker')}.{index}")) is not None:
            raise Undecided(missing)
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else ""


def _mode(output: Any, where: str) -> str | None:
    mode = output.get("mode") if isinstance(output, Mapping) else None
    if (missing := open_part(mode, where)) is not None:
        raise Undecided(missing)
    return mode if isinstance(mode, str) else None


def _timeout(subject: Subject) -> int | None:
    """Seconds; a step of a pipeline writes them as a number, the wire as an ISO duration."""
    return _seconds(subject.facts.value("timeout"), subject.facts.at("timeout"))


def _seconds(value: Any, where: str) -> int | None:
    if isinstance(value, str) and is_expression(value):
        raise Undecided(Unknown(where, "is an expression that Azure resolves later"))
    if isinstance(value, str):
        return seconds(value)
    return int(value) if isinstance(value, int | float) else None


def _bound(subject: Subject) -> tuple[int, int | None]:
    """How many trials of a sweep run at once, and for how long at most; of any other job one and its timeout."""
    facts = subject.facts
    timeout, trials = _timeout(subject), facts.number("trials")
    if not trials:
        return 1, timeout
    at_once = min(facts.number("at_once") or trials, trials)
    one = _seconds(facts.value("trial_timeout"), facts.at("trial_timeout"))
    # All trials together may end before the sweep's own timeout does.
    rounds = math.ceil(trials * one / at_once) if one else None
    whole = None if facts.path("timeout") == facts.path("trial_timeout") else timeout
    return at_once, min((bound for bound in (rounds, whole) if bound), default=None)


_CLUSTER, _JOB, _ASKING = frozenset({"cluster"}), frozenset({"job"}), frozenset({"cluster", "job"})
_LOCATED, _ENVIRONMENTS = frozenset({"resource"}), frozenset({"job", "environment"})

BINDINGS: tuple[Binding, ...] = (
    Binding(fabric.RULE, _JOB, _promise),
    Binding(retiring_size.RULE, _ASKING | {"machine"}, _retiring),
    Binding(scale_to_zero.RULE, _CLUSTER, _least),
    Binding(idle_time.RULE, _CLUSTER, _idle),
    Binding(node_ceiling.RULE, _ASKING, _ceiling),
    Binding(cluster_budget.RULE, _ASKING, _budget),
    Binding(hourly_cost.RULE, _ASKING, _per_hour),
    Binding(job_cost.RULE, _JOB, _per_job),
    Binding(region.RULE, _LOCATED, _region),
    Binding(required_tags.RULE, _LOCATED, _tags),
    Binding(public_ip.RULE, _CLUSTER, _public_ip),
    Binding(ssh.RULE, _CLUSTER, _ssh),
    Binding(local_auth.RULE, _CLUSTER, _local_auth),
    Binding(identity.RULE, _CLUSTER, _identity),
    Binding(subnet_present.RULE, _CLUSTER, _subnet),
    Binding(subnet_overlap.RULE, _CLUSTER, _overlap),
    Binding(environment_source.RULE, _ENVIRONMENTS, _source),
    Binding(environment_pin.RULE, _ENVIRONMENTS, _pinned),
    Binding(processes.RULE, _JOB, _processes),
    Binding(gpus_idle.RULE, _JOB, _gpus_idle),
    Binding(shared_memory.RULE, _JOB, _shm),
    Binding(fabric_off.RULE, _JOB, _fabric_off),
    Binding(spot_checkpoint.RULE, _JOB, _checkpoint),
    Binding(job_timeout.RULE, _JOB, _job_timeout),
    Binding(secret.RULE, frozenset({"text"}), _secret),
)
"""Every rule on single resources. `policies.evaluation.verdicts` judges sizes by three rules
together; of those, only what a cluster promised of the jobs on it is here."""
