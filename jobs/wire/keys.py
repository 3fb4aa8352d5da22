"""The keys of a command job: field of `Job` ↔ path in a job file ↔ path in the body of the REST API.

Body, readers, writers and the places of findings derive from this table. It holds facts only and imports neither
readers nor renderers.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from amlstack.base.text import camel, snake

Holder = Literal["run", "trial", "sweep", "job"]
"""The place where a sweep keeps a key: with what names every run, in its trial, beside the trial, or nowhere."""


class Key(NamedTuple):
    """One key.

    Attributes:
        field: Field of `Job`, dotted where it is one of a field's own fields.
        file: Dotted path in a job file.
        wire: Dotted path in a body's properties; empty for what is not sent.
        holder: Where a sweep keeps it.
    """

    field: str
    file: str
    wire: str
    holder: Holder = "run"

    @property
    def in_file(self) -> str:
        """The last name of the path in a file."""
        return self.file.rpartition(".")[2]

    @property
    def on_wire(self) -> str:
        """The last name of the path in a body."""
        return self.wire.rpartition(".")[2]


def _key(field: str, holder: Holder = "run", *, file: str | None = None, wire: str | None = None) -> Key:
    file = file or field
    return Key(field, file, camel(file) if wire is None else wire, holder)


def _resource(field: str, name: str | None = None) -> Key:
    return _key(field, "trial", file=f"resources.{name or field}")


RESOURCES = (
    _resource("nodes", "instance_count"),
    _resource("instance_type"),
    _resource("locations"),
    _resource("max_instance_count"),
    _resource("shm_size"),
    _resource("docker_args"),
    _resource("resource_properties", "properties"),
)
"""The fields that make up Azure ML's `resources`."""
JOB = (
    _key("name", wire=""),
    _key("display_name"),
    _key("description"),
    _key("experiment_name"),
    _key("tags"),
    _key("properties"),
    _key("command", "trial"),
    _key("code", "trial", wire="codeId"),
    _key("environment", "trial", wire="environmentId"),
    _key("inputs", "sweep"),
    _key("outputs", "sweep"),
    _key("environment_variables", "trial"),
    _key("compute", "sweep", wire="computeId"),
    _key("launcher", "trial", file="distribution"),
    *RESOURCES,
    _key("limits", "job"),
    _key("queue_settings", "sweep"),
    _key("identity", "sweep"),
    _key("services", "job"),
    _key("parent_job_name", "sweep"),
)
"""All keys, in the order in which people write a file."""
INNER = (
    _key("launcher", "trial", file="distribution.process_count_per_instance"),
    Key("docker_args", "resources.docker_args", "resources.dockerArgsList", "trial"),
    _key("queue_settings.job_tier", "sweep"),
    _key("queue_settings.priority", "sweep"),
    _key("limits.trial_timeout", "sweep"),
)
"""Keys inside a block that findings name."""

PLACES = {key.field: tuple(key.file.split(".")) for key in JOB}
"""Field to the keys in a file."""
BLOCKS = {key.file.partition(".")[0]: key.wire.partition(".")[0] for key in JOB}
"""Outermost key of a file to the one of a body, in the order of a file."""
_FIELDS = {
    spelling: key.field for key in (*INNER, *JOB) for spelling in (key.wire, snake(key.wire), key.file) if spelling
}


def blocks(*holders: Holder) -> tuple[str, ...]:
    """The outermost keys of a file that the given holders keep; `resources` is one of them."""
    return tuple(dict.fromkeys(key.file.partition(".")[0] for key in JOB if key.holder in holders))


def wire_blocks(*holders: Holder) -> tuple[str, ...]:
    """The same on the wire."""
    return tuple(BLOCKS[block] for block in blocks(*holders) if BLOCKS[block])


def field_of(path: str) -> str:
    """The field of a job for a path in a body, in a pipeline's node or in a component; the path itself for others."""
    spelling = path
    while spelling:
        if spelling in _FIELDS:
            return _FIELDS[spelling] + path.removeprefix(spelling)
        spelling = spelling.rpartition(".")[0]
    return path
