"""Bodies of command jobs as this project renders them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jobs
from tests.support.jobs.refusals import refusals

if TYPE_CHECKING:
    from pathlib import Path


INLINE = "inline"


def ours(path: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """Our body, and the errors we found."""
    loaded = jobs.load(path)
    plans = [jobs.plan(job, source=loaded.source) for job in loaded.jobs]
    errors = refusals((*loaded.findings, *(finding for plan in plans for finding in plan.findings)))
    if not plans:
        return None, errors
    environment = plans[0].job.environment
    inline = isinstance(environment, jobs.Environment)
    body = jobs.body(plans[0].enriched, jobs.Refs(environment=INLINE if inline else None))
    if inline and not errors:
        body["environment"] = {"properties": jobs.environment_properties(environment, path.parent)}
    return body, errors
