"""Which module reads a job file, by what is in it."""

from __future__ import annotations

from typing import Any

from jobs.azureml.read import command, lone_component, pipeline, sweep

READERS = {"command": command, "sweep": sweep, "pipeline": pipeline}


def reader_of(content: Any) -> Any:
    """The module that reads a job file with this content; None for a kind that is not read."""
    if lone_component.is_one(content):
        return lone_component
    kind = content.get("type", "command") if isinstance(content, dict) else "command"
    return READERS.get(kind) if isinstance(kind, str) else None
