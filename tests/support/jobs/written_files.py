"""Sweeps and pipelines to write as YAML, and their bodies."""

from __future__ import annotations

from typing import Any

import jobs


def body(declared: Any) -> Any:
    """The body; whether a component stood in a file of its own is not in it, nor its id, which follows from that."""
    told = jobs.render(declared).body
    for node in told["properties"].get("jobs", {}).values():
        node.pop("componentId", None)
        node.pop("trial", None)
        node.pop("_source", None)
    return told


def specs(declared: Any) -> Any:
    told = jobs.render(declared).components if isinstance(declared, jobs.Pipeline) else {}
    for each in told.values():
        del each["properties"]["componentSpec"]["_source"]
    return told
