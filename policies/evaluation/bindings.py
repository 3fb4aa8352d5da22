"""The facts of each subject that each rule judges: the one place where wire forms and check functions meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from amlstack.base import text
from amlstack.base.findings import Finding
from amlstack.catalog import images, regions, sizes
from policies import checks
from policies.checks.own import Binding
from policies.evaluation.facts import Facts, Undecided, Unknown, is_expression, last_part, open_part
from policies.evaluation.subjects import Context, KnownCluster, Subject, clusters_of

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

Found = Iterable[Finding | None]
Judge = Callable[["Subject", Mapping[str, Any], "Context"], Found]


def size_of(subject: Subject, context: Context) -> Size | None:
    """The catalogue's row: of the subject's own size, or of the cluster that a job names."""
    if isinstance(subject.size, Unknown):
        raise Undecided(subject.size)
    name = subject.size
    if name is None:
        cluster = cluster_of(subject, context)
        name = cluster.size if cluster else None
    return sizes.get(name) if name else None


def cluster_of(subject: Subject, context: Context) -> KnownCluster | None:
    """The cluster of the stack that a job runs on; None where it is serverless or its cluster has not been seen.

    Raises:
        Undecided: What it runs on is not known yet.
    """
    return next(iter(clusters_of(subject, context)), None)


def region_of(subject: Subject) -> str | None:
    """The region of a cluster's nodes or a serverless job's, as programs write it; None where it is not known."""
    facts = subject.facts
    try:
        given = facts.text("region") or facts.value("locations")
    except Undecided:
        return None
    first = next(iter(given), None) if isinstance(given, list) else given
    return regions.code(first) if isinstance(first, str) else None


def preemptible(subject: Subject, cluster: KnownCluster | None = None) -> bool:
    """True where nodes may be taken away: of a cluster, of a serverless job, of a job on the cluster.

    Raises:
        Undecided: Its priority or tier is not known yet.
    """
    if cluster is not None and cluster.low_priority:
        return True
    priority = subject.facts.text("priority") or subject.facts.text("tier") or ""
    return priority.lower() in {"lowpriority", "spot"}


def paid_as(subject: Subject, cluster: KnownCluster | None = None) -> tuple[str | None, bool]:
    """Region and low priority, by which nodes are paid; what is not known counts as no region, and as dedicated."""
    region = region_of(subject) if cluster is None else cluster.region
    try:
        return region, preemptible(subject, cluster)
    except Undecided:
        return region, False


def nodes_of(subject: Subject) -> int:
    """Its number of nodes; Undecided while that is not known."""
    if isinstance(subject.nodes, Unknown):
        raise Undecided(subject.nodes)
    return subject.nodes


def where_nodes(subject: Subject) -> str:
    """Path of its number of nodes."""
    return subject.facts.at("most" if subject.kind == "cluster" else "nodes")


def timeout_of(subject: Subject) -> int | None:
    """Seconds; a step of a pipeline writes them as a number, the wire as an ISO duration."""
    return seconds_of(subject.facts.value("timeout"), subject.facts.at("timeout"))


def seconds_of(value: Any, where: str) -> int | None:
    """Seconds of an ISO duration or a number; Undecided for an expression."""
    if isinstance(value, str) and is_expression(value):
        raise Undecided(Unknown(where, "is an expression that Azure resolves later"))
    if isinstance(value, str):
        found = text.seconds(value.strip().upper())
        return None if found is None else int(found)
    return int(value) if isinstance(value, int | float) else None


def _promise(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    if subject.nodes == 1 or not context.clusters.promised:
        return  # whatever it runs on, there is no promise to break, and nothing to wait for
    cluster = cluster_of(subject, context)
    if cluster is None or not cluster.single_node_jobs:
        return
    if isinstance(cluster.single_node_jobs, Unknown):
        raise Undecided(cluster.single_node_jobs)
    yield checks.size.check_fabric_job(
        nodes_of(subject),
        cluster=last_part(subject.compute, subject.where),
        single_node_jobs=True,
        where=where_nodes(subject),
    )


def _by_age(check: Callable[..., Finding | None]) -> Judge:
    """A judge of a size by the day: retired soon, closed."""

    def judge(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
        if subject.size is not None and (size := size_of(subject, context)):
            yield check(size, on=context.on, where=subject.where, **config)

    return judge


def _by_fact(check: Callable[..., Finding | None], fact: str, read: Callable[[Facts, str], Any]) -> Judge:
    """A judge of one fact by the rule's settings."""

    def judge(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
        yield check(read(subject.facts, fact), where=subject.facts.at(fact), **config)

    return judge


_retiring = _by_age(checks.size.check_retiring_size)
_closed = _by_age(checks.size.check_closed_size)
_idle = _by_fact(checks.cluster.check_idle_time, "idle", Facts.text)
_public_ip = _by_fact(checks.cluster.check_public_ip, "public_ip", Facts.boolean)
_identity = _by_fact(checks.cluster.check_managed_identity, "identity", Facts.text)
_subnet = _by_fact(checks.cluster.check_subnet_present, "subnet", Facts.reference)
_tags = _by_fact(checks.governance.check_required_tags, "tags", Facts.mapping)


def _least(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    facts = subject.facts
    yield checks.cluster.check_scale_to_zero(
        facts.number("least") or 0, nodes=int(config["nodes"]), where=facts.at("least")
    )


def _ceiling(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    if subject.size is not None:
        yield checks.cluster.check_node_ceiling(
            nodes_of(subject), nodes=int(config["nodes"]), where=where_nodes(subject)
        )


def _ssh(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    # The classic provider has a switch, which is off when absent.
    access = ("Enabled" if facts.boolean("ssh") else "Disabled") if facts.classic else facts.text("ssh")
    yield checks.cluster.check_ssh(access, where=facts.at("ssh"))


def _local_auth(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    enabled = facts.boolean("local_auth")
    disabled = (None if enabled is None else not enabled) if facts.classic else enabled
    yield checks.cluster.check_local_auth(disabled, where=facts.at("local_auth"))


def _overlap(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    size = size_of(subject, context)
    if size is None or not size.fabric.rdma:
        return
    name = subject.facts.named("subnet", "virtualNetworks")
    given = {key.lower(): value for key, value in config["networks"].items()}
    outside = tuple(part.strip() for part in given.get(name, "").split(",") if part.strip())
    prefixes = (*context.networks.get(name, ()), *outside)
    yield checks.cluster.check_subnet_overlap(size, prefixes=prefixes, where=subject.facts.at("subnet"))


def _budget(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if subject.size is not None and (size := size_of(subject, context)):
        yield checks.governance.check_cluster_budget(
            size, nodes=nodes_of(subject), where=where_nodes(subject), **config
        )


def _per_hour(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if subject.size is not None and (size := size_of(subject, context)):
        region, low = paid_as(subject)
        nodes = nodes_of(subject)
        yield checks.governance.check_hourly_cost(
            size, nodes=nodes, usd=config["usd"], region=region, low_priority=low, where=where_nodes(subject)
        )


def _per_job(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if size := size_of(subject, context):
        facts = subject.facts
        at_once, timeout = _bound(subject)
        region, low = paid_as(subject, cluster_of(subject, context) if subject.size is None else None)
        nodes = at_once * nodes_of(subject)
        usd = config["usd"]
        yield checks.governance.check_job_cost(
            size, nodes=nodes, timeout=timeout, usd=usd, region=region, low_priority=low, where=facts.at("timeout")
        )


def _bound(subject: Subject) -> tuple[int, int | None]:
    """The number of trials of a sweep at once, and their longest time; of any other job one and its timeout."""
    facts = subject.facts
    timeout, trials = timeout_of(subject), facts.number("trials")
    if not trials:
        return 1, timeout
    at_once = min(facts.number("at_once") or trials, trials)
    one = seconds_of(facts.value("trial_timeout"), facts.at("trial_timeout"))
    # All trials together may end before the sweep's own timeout does.
    rounds = math.ceil(trials * one / at_once) if one else None
    whole = None if facts.path("timeout") == facts.path("trial_timeout") else timeout
    return at_once, min((bound for bound in (rounds, whole) if bound), default=None)


def _region(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    if location := subject.facts.text("location"):
        yield checks.governance.check_region(location, regions=config["regions"], where=subject.facts.at("location"))


def _source(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    facts = subject.facts
    if subject.kind == "job":
        if config["registries"] and (environment := facts.text("environment")):
            where = facts.at("environment")
            yield checks.job.check_environment_source(environment, registries=config["registries"], where=where)
    elif config["images"] and (image := facts.text("image")):
        yield checks.job.check_environment_source_image(image, images=config["images"], where=facts.at("image"))


def _pinned(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    if subject.kind == "job":
        if environment := facts.text("environment"):
            yield checks.job.check_environment_pin(environment, where=facts.at("environment"))
    elif image := facts.text("image"):
        yield checks.job.check_environment_pin_image(image, where=facts.at("image"))


def _processes(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    count = subject.facts.number("processes")
    if count is not None and (size := size_of(subject, context)):
        where = subject.facts.at("processes")
        nodes = 1 if isinstance(subject.nodes, Unknown) else subject.nodes
        yield checks.job.check_processes(count, size, nodes=nodes, where=where)


def _gpus_idle(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    count = subject.facts.number("processes")
    if count is not None and (size := size_of(subject, context)):
        facts = subject.facts
        yield checks.job.check_gpus_idle(count, size, facts.mapping("variables"), where=facts.at("processes"))


def _shm(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if (size := size_of(subject, context)) and size.gpus:
        facts = subject.facts
        gib_per_gpu = float(config["gib_per_gpu"])
        yield checks.job.check_shared_memory(
            facts.text("shm"), size, docker_args=_docker(subject), gib_per_gpu=gib_per_gpu, where=facts.at("shm")
        )


def _fabric_off(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    size, later = None, None
    try:
        size = size_of(subject, context)
    except Undecided as undecided:
        later = undecided
    if size is not None and not (size.gpus and size.fabric.usable):
        return
    facts = subject.facts
    where = (facts.at("variables"), facts.at("command"), facts.at("docker"))
    variables = facts.mapping("variables")
    given = facts.value("command")
    command, docker = given if isinstance(given, str) else "", _docker(subject)
    switches = [(f"{where[0]}.{name}", variables[name]) for name in checks.job.HARMFUL if name in variables]
    waiting = [one for one in (open_part(value, place) for place, value in (*switches, (where[1], given))) if one]
    known = {name: value for name, value in variables.items() if open_part(value, name) is None}
    if not waiting and not checks.job.harmful(known, command, docker):
        return
    if later is not None:
        raise later
    yield from checks.job.check_fabric_off(
        known, size, nodes=nodes_of(subject), command=command, docker_args=docker, where=where
    )
    if waiting:
        raise Undecided(waiting[0])


def _checkpoint(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    facts = subject.facts
    spot = _preemptible(subject, context)
    if not spot or nodes_of(subject) < 2:
        return
    modes = [_mode(output, f"{facts.at('outputs')}.{name}.mode") for name, output in facts.mapping("outputs").items()]
    yield checks.job.check_spot_checkpoint(modes, preemptible=spot, nodes=nodes_of(subject), where=facts.at("outputs"))


def _image(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    facts = subject.facts
    environment = facts.text("environment")
    image = images.image_of(environment, context.images) if environment else None
    if image is not None:
        size = size_of(subject, context)
        yield from checks.job.check_image_runs(
            image,
            # A retired size is a finding of its own, and the one in its place has other GPUs.
            None if size is None or size.retired_on(context.on) else size,
            command=_text(facts.value("command")),
            variables=facts.mapping("variables"),
            where=facts.at("environment"),
        )


def _nebula(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    facts = subject.facts
    if subject.kind == "job":
        yield checks.job.check_nebula_gone(_text(facts.value("command")), where=facts.at("command"))
    else:
        yield checks.job.check_nebula_gone(_text(facts.value("conda")), what="The conda file", where=facts.at("conda"))


def _restart(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    facts = subject.facts
    command, preemptible = _text(facts.value("command")), _preemptible(subject, context)
    if not preemptible and not checks.job.restarts(command):
        return  # nothing to wait for
    variables = facts.mapping("variables")
    yield checks.job.check_restart_checkpoint(
        command,
        names=(*variables, *map(str, variables.values()), *facts.mapping("inputs")),
        outputs=len(facts.mapping("outputs")),
        preemptible=preemptible,
        nodes=nodes_of(subject),
        timeout=timeout_of(subject),
        hours=float(config["hours"]),
        where=facts.at("command"),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _preemptible(subject: Subject, context: Context) -> bool:
    return preemptible(subject, cluster_of(subject, context) if subject.size is None else None)


def _job_timeout(subject: Subject, config: Mapping[str, Any], _: Context) -> Found:
    yield checks.job.check_job_timeout(timeout_of(subject), hours=config["hours"], where=subject.facts.at("timeout"))


def _secret(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    whole, where = subject.facts.value("whole"), subject.facts.at("whole")
    yield from checks.job.check_secret(whole, where=where)
    for missing, name in _unknown_texts(whole, where, ""):
        if checks.job.may_be_secret(name):
            raise Undecided(missing)


_KNOWN = frozenset({str, int, float, bool, list, type(None)})
"""The types of most values in a job: what has one of them is known, and holds no mapping."""


def _unknown_texts(value: Any, path: str, name: str) -> Iterable[tuple[Unknown, str]]:
    """Each value that is not known yet, with its name."""
    if (missing := open_part(value, path)) is not None:
        yield missing, name
    for key, each in value.items() if isinstance(value, Mapping) else ():
        if type(each) not in _KNOWN:
            yield from _unknown_texts(each, f"{path}.{key}", str(key))


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


_JUDGES: Mapping[str, Judge] = {
    "sriov-fabric": _promise,
    "size-retiring": _retiring,
    "size-closed": _closed,
    "scale-to-zero": _least,
    "idle-time": _idle,
    "node-ceiling": _ceiling,
    "node-public-ip": _public_ip,
    "ssh-closed": _ssh,
    "local-auth-off": _local_auth,
    "managed-identity": _identity,
    "subnet-present": _subnet,
    "subnet-overlap": _overlap,
    "cluster-budget": _budget,
    "cost-per-hour": _per_hour,
    "cost-per-job": _per_job,
    "region-approved": _region,
    "tags-required": _tags,
    "environment-approved": _source,
    "environment-pinned": _pinned,
    "processes-beyond-gpus": _processes,
    "gpus-idle": _gpus_idle,
    "shared-memory": _shm,
    "fabric-switched-off": _fabric_off,
    "spot-checkpoint": _checkpoint,
    "restart-without-checkpoint": _restart,
    "image-cannot-run-here": _image,
    "nebula-gone": _nebula,
    "job-timeout": _job_timeout,
    "secret-in-job": _secret,
}
BINDINGS = (
    *(Binding(checks.OURS[code], judge) for code, judge in _JUDGES.items()),
    *checks.OWN,
)
"""Every rule on single resources. `policies.evaluation.verdicts` judges sizes by three rules together; of those, only
what a cluster promised of the jobs on it is here."""
