"""Bodies of sweeps as this project renders them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jobs
from tests.support.jobs.refusals import refusals

if TYPE_CHECKING:
    from pathlib import Path


def ours(path: Path) -> tuple[dict[str, Any] | None, list[str]]:
    loaded = jobs.load(path)
    plans = [jobs.resolve(each, lambda _: (jobs.Target(), ()), source=loaded.source) for each in loaded.jobs]
    findings = (*loaded.findings, *(finding for plan in plans for finding in plan.findings))
    errors = refusals(findings)
    if not plans:
        return None, errors
    inline = not isinstance(plans[0].enriched.trial.environment, str)
    return jobs.render(plans[0].enriched, jobs.Refs(environment="inline" if inline else None)).body, errors
