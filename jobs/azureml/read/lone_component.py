"""A command component in a file of its own, read as the command job that it would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Level
from jobs.azureml.read import command
from jobs.model.component import PRIMITIVES, NotGiven

if TYPE_CHECKING:
    from jobs.azureml.cursor import Cursor
    from jobs.model.component import Port
    from jobs.model.job import Job

path_of = command.path_of
_DIALECT = ("distributedcomponent", "commandcomponent")


def is_one(data: Any) -> bool:
    """Whether a file of type command, or of no type, is a component, not a job."""
    if not isinstance(data, dict):
        return False
    if "launcher" in data or str(data.get("type")).lower() in _DIALECT:
        return True
    if data.get("type", "command") != "command":
        return False
    if "component" in str(data.get("$schema", "")).lower():
        return True
    return "$schema" not in data and ("is_deterministic" in data or ("version" in data and "name" in data))


def is_pipeline(data: Any) -> bool:
    """Whether a file of type pipeline is a component, not a job: its schema says so, or it has what no job has."""
    if not isinstance(data, dict) or data.get("type") != "pipeline":
        return False
    if "$schema" in data:
        return "component" in str(data["$schema"]).lower()
    ports = data.get("inputs")
    kinds = [port.get("type") for port in ports.values() if isinstance(port, dict)] if isinstance(ports, dict) else []
    return "version" in data or "is_deterministic" in data or any(kind in PRIMITIVES for kind in kinds)


def noted(cursor: Cursor, what: str) -> None:
    """Says that the file is a component, and as what it is read."""
    cursor.bad(
        "component-alone",
        "The file is a component, not a job",
        f"Azure ML runs a component as a step of a pipeline; here it is read as {what} that it would be",
        "Name it in a pipeline: `component: file.yml`, or make it a job.",
        level=Level.WARNING,
    )


def read(cursor: Cursor) -> Job | None:
    """The job that the component would be; None when it is too broken to be one."""
    from jobs.azureml.read import component, distributed_component  # noqa: PLC0415 - most files are command jobs

    reader = distributed_component.read if distributed_component.is_one(cursor.value) else component.read
    found = reader(cursor)
    if found is None:
        return None
    noted(cursor, "the command job")
    job = found.job()
    # Run alone, a component gets no optional input, and the part of its command with one falls away.
    given = {
        name: NotGiven() if port.literal and port.default is None else job.inputs[name]
        for name, port in found.inputs.items()
        if not _left_out(port)
    }
    return job.model_copy(update={"inputs": given})


def _left_out(port: Port) -> bool:
    return bool(port.optional) and port.default is None
