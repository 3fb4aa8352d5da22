"""Which module reads a job file, by what is in it. A file of one kind loads the readers of no other."""

from __future__ import annotations

from typing import Any

from jobs.azureml.read import command, lone_component


def is_schedule(content: Any) -> bool:
    """Whether a file is a schedule, which has no type."""
    return isinstance(content, dict) and "type" not in content and bool({"create_job", "trigger"} & content.keys())


def is_component(content: Any) -> bool:
    """Whether a file of any type is a component by its schema, or by the version that only a component has."""
    if not isinstance(content, dict):
        return False
    schema = str(content.get("$schema", "")).lower()
    return "component" in schema if schema else "version" in content


def reader_of(content: Any) -> Any:
    """The module that reads a job file with this content; None for a kind that is not read."""
    if lone_component.is_one(content):
        return lone_component
    match content.get("type", "command") if isinstance(content, dict) else "command":
        case "command":
            return command
        case "sweep":
            from jobs.azureml.read import sweep  # noqa: PLC0415

            return sweep
        case "pipeline" if lone_component.is_pipeline(content):
            from jobs.azureml import lone_pipeline  # noqa: PLC0415

            return lone_pipeline
        case "pipeline":
            from jobs.azureml.read import pipeline  # noqa: PLC0415

            return pipeline
        case _:
            return None
