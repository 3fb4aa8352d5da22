"""Remediation: the rules that have one safe answer write it into the resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.pulumi_wire import SIGNATURE, decode
from amlstack.catalog import sizes
from policies.checks.cluster import IDLE_TIME_RULE
from policies.checks.job_limits import SHARED_MEMORY_RULE
from policies.checks.resource import REQUIRED_TAGS_RULE, written_tags
from policies.evaluation.binding import cluster_of
from policies.evaluation.bindings import BINDINGS
from policies.evaluation.door import canonical
from policies.evaluation.facts import Undecided
from policies.evaluation.resource_subjects import subjects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.protobuf.struct_pb2 import Struct

    from policies.config import Config
    from policies.evaluation.subjects import Context, Subject

    Remedy = Callable[[Subject, Mapping[str, Any], Context], tuple[tuple[tuple[str, ...], Any], ...]]


def _idle(subject: Subject, config: Mapping[str, Any], _: Context) -> tuple[tuple[tuple[str, ...], Any], ...]:
    return ((subject.facts.path("idle"), f"PT{int(config['minutes'])}M"),)


def _tags(subject: Subject, config: Mapping[str, Any], _: Context) -> tuple[tuple[tuple[str, ...], Any], ...]:
    tags, values = subject.facts.mapping("tags"), config["values"] or {}
    there = written_tags(tags)
    path = subject.facts.path("tags")
    return tuple(
        ((*path, name), values[name]) for name in config["required"] if name.lower() not in there and name in values
    )


def _shm(subject: Subject, _: Mapping[str, Any], context: Context) -> tuple[tuple[tuple[str, ...], Any], ...]:
    name = subject.size if isinstance(subject.size, str) else None
    if name is None and subject.compute:
        cluster = cluster_of(subject, context)
        name = cluster.size if cluster else None
    size = sizes.get(name) if name else None
    value = size.shm_size() if size else None
    return ((subject.facts.path("shm"), value),) if value else ()


REMEDIES: Mapping[str, Remedy] = {
    IDLE_TIME_RULE.code: _idle,
    REQUIRED_TAGS_RULE.code: _tags,
    SHARED_MEMORY_RULE.code: _shm,
}
"""The rules that have one safe answer."""

_JUDGES = {binding.rule.code: binding for binding in BINDINGS}


def apply(code: str, resource_type: str, properties: Struct, config: Config, context: Context) -> bool:
    """Put right what one rule finds, in place.

    Args:
        code: The rule.
        resource_type: Pulumi's type token.
        properties: The resource's properties, off the wire.
        config: The pack's configuration.
        context: What is known of the stack.

    Returns:
        Whether anything was written. What is not known yet is left alone, and so is what is inside a list.
    """
    binding, changed = _JUDGES[code], False
    given = decode(properties)
    read, _ = canonical(given)
    # In another spelling of its names nothing is written: it would stand beside what is there.
    for subject in subjects(resource_type, read) if read is given else ():
        if subject.kind not in binding.kinds or not subject.facts.known:
            continue
        settings = config.settings(code)
        try:
            if not any(binding.judge(subject, settings, context)):
                continue
            for path, value in REMEDIES[code](subject, settings, context):
                if not any(part.isdigit() for part in path):
                    put(properties, path, value)
                    changed = True
        except Undecided:
            continue
    return changed


def put(struct: Struct, path: tuple[str, ...], value: Any) -> None:
    """Write one value into properties, in place; everything beside it stays as it is, secrets included.

    Args:
        struct: The properties.
        path: Property names, outermost first; maps on the way are made where they are missing.
        value: Text, a number, or a map of texts.
    """
    at = struct
    for name in path[:-1]:
        inner = at.fields[name]
        at = inner.struct_value
        if SIGNATURE in at.fields:  # a secret map: its content is one level further down
            at = at.fields["value"].struct_value
    if isinstance(value, dict):
        put_all = at.fields[path[-1]].struct_value
        put_all.Clear()
        put_all.update(value)
    else:
        at.update({path[-1]: value})
