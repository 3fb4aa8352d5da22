"""Sweeps and pipelines to write as YAML, and their bodies."""

from __future__ import annotations

from typing import Any

import jobs


def body(declared: Any) -> Any:
    """The body; whether a component stood in a file of its own is not in it, nor its id, which follows from that."""
    result = jobs.render(declared).body
    for node in result["properties"].get("jobs", {}).values():
        node.pop("componentId", None)
        node.pop("trial", None)
        node.pop("_source", None)
    return result


def specs(declared: Any) -> Any:
    result = jobs.render(declared).components if isinstance(declared, jobs.Pipeline) else {}
    for each in result.values():
        del each["properties"]["componentSpec"]["_source"]
    return result
