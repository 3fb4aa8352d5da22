"""Which facts of a job, its text and its environment its rules judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from amlstack.catalog import images
from policies.checks.job import (
    environment_pin,
    environment_source,
    fabric_off,
    gpus_idle,
    image_runs,
    job_timeout,
    nebula_gone,
    processes,
    restart_checkpoint,
    secret,
    shared_memory,
    spot_checkpoint,
)
from policies.evaluation.binding import Binding, cluster_of, nodes_of, preemptible, size_of, timeout_of
from policies.evaluation.facts import Undecided, Unknown, open_part, wholly_known

if TYPE_CHECKING:
    from policies.evaluation.binding import Found
    from policies.evaluation.context import Context
    from policies.evaluation.subject import Subject


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
    if count is not None and (size := size_of(subject, context)):
        where = subject.facts.at("processes")
        nodes = 1 if isinstance(subject.nodes, Unknown) else subject.nodes
        yield processes.check(count, size, nodes=nodes, where=where)


def _gpus_idle(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    count = subject.facts.number("processes")
    if count is not None and (size := size_of(subject, context)):
        yield gpus_idle.check(count, size, where=subject.facts.at("processes"))


def _shm(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if (size := size_of(subject, context)) and size.gpus:
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
    switches = [(f"{where[0]}.{name}", variables[name]) for name in fabric_off.HARMFUL if name in variables]
    waiting = [one for one in (open_part(value, place) for place, value in (*switches, (where[1], given))) if one]
    known = {name: value for name, value in variables.items() if open_part(value, name) is None}
    if not waiting and not fabric_off.harmful(known, command, docker):
        return
    if later is not None:
        raise later
    yield from fabric_off.check(known, size, nodes=nodes_of(subject), command=command, docker_args=docker, where=where)
    if waiting:
        raise Undecided(waiting[0])


def _checkpoint(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    facts = subject.facts
    spot = _preemptible(subject, context)
    if not spot or nodes_of(subject) < 2:
        return
    modes = [_mode(output, f"{facts.at('outputs')}.{name}.mode") for name, output in facts.mapping("outputs").items()]
    yield spot_checkpoint.check(modes, preemptible=spot, nodes=nodes_of(subject), where=facts.at("outputs"))


def _image(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    facts = subject.facts
    environment = facts.text("environment")
    image = images.of(environment, context.images) if environment else None
    if image is not None:
        size = size_of(subject, context)
        yield from image_runs.check(
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
        yield nebula_gone.check(_text(facts.value("command")), where=facts.at("command"))
    else:
        yield nebula_gone.check(_text(facts.value("conda")), what="The conda file", where=facts.at("conda"))


def _restart(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    facts = subject.facts
    command, preemptible = _text(facts.value("command")), _preemptible(subject, context)
    if not preemptible and not restart_checkpoint.restarts(command):
        return  # nothing to wait for
    variables = facts.mapping("variables")
    yield restart_checkpoint.check(
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
    yield job_timeout.check(timeout_of(subject), hours=config["hours"], where=subject.facts.at("timeout"))


def _secret(subject: Subject, _: Mapping[str, Any], __: Context) -> Found:
    whole, where = subject.facts.value("whole"), subject.facts.at("whole")
    yield from secret.check(whole, where=where)
    for missing, name in () if wholly_known(whole) else _unknown_texts(whole, where, ""):
        if secret.may_be(name):
            raise Undecided(missing)


def _unknown_texts(value: Any, path: str, name: str) -> Iterable[tuple[Unknown, str]]:
    """Each value that is not known yet, with its name."""
    if (missing := open_part(value, path)) is not None:
        yield missing, name
    inner = value.items() if isinstance(value, Mapping) else ()
    for key, each in inner:
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


BINDINGS: tuple[Binding, ...] = (
    Binding(environment_source.RULE, frozenset({"job", "environment"}), _source),
    Binding(environment_pin.RULE, frozenset({"job", "environment"}), _pinned),
    Binding(processes.RULE, frozenset({"job"}), _processes),
    Binding(gpus_idle.RULE, frozenset({"job"}), _gpus_idle),
    Binding(shared_memory.RULE, frozenset({"job"}), _shm),
    Binding(fabric_off.RULE, frozenset({"job"}), _fabric_off),
    Binding(spot_checkpoint.RULE, frozenset({"job"}), _checkpoint),
    Binding(restart_checkpoint.RULE, frozenset({"job"}), _restart),
    Binding(image_runs.RULE, frozenset({"job"}), _image),
    Binding(nebula_gone.RULE, frozenset({"job", "environment"}), _nebula),
    Binding(job_timeout.RULE, frozenset({"job"}), _job_timeout),
    Binding(secret.RULE, frozenset({"text"}), _secret),
)
