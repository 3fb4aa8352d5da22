"""Plans and bodies of pipelines as this project renders them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jobs
from tests.support.jobs.refusals import refusals

if TYPE_CHECKING:
    from pathlib import Path


def planned(path: Path) -> tuple[Any, list[str]]:
    loaded = jobs.load(path)
    plans = [jobs.resolve(each, lambda _: (jobs.Target(), ()), source=loaded.source) for each in loaded.jobs]
    findings = (*loaded.findings, *(finding for plan in plans for finding in plan.findings))
    return plans[0] if plans else None, refusals(findings)


def ours(path: Path) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Our body with ids pinned as the oracle pins them, our components with paths as it has them, and the errors."""
    plan, errors = planned(path)
    assert plan is not None, errors
    refs = {
        name.removeprefix("jobs."): jobs.Refs(environment="inline")
        for name, part in plan.parts.items()
        if not isinstance(part.job.environment, str)
    }
    registered = jobs.render(plan.enriched, steps=refs).components
    body = jobs.render(plan.enriched, steps=refs).body
    ids = {name: jobs.component_id(result, jobs.Refs()) for name, result in registered.items()}
    nodes = dict(body["properties"]["jobs"])
    for name, result in registered.items():
        inner = result["properties"]["componentSpec"].get("jobs", {})
        nodes |= {f"{name}.jobs.{key}": node for key, node in inner.items()}
    for name, result in registered.items():
        node = nodes[name]
        owner = node["trial"] if node["type"] == "sweep" else node
        assert owner["componentId"] == ids[name]
        owner["componentId"] = f"registered:{name}"
        spec = result["properties"]["componentSpec"]
        for place in (spec, spec.get("task", {}), node.get("task", {})):
            if "code" in place:
                place["code"] = str((path.parent / place["code"]).resolve())
    return body, registered, errors
