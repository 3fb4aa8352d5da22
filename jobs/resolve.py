"""One way to plan and to render whatever a job file declares: a job, a sweep, a pipeline, a schedule.

Most files are single jobs: what the others need is imported when one of them comes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobs.model.job import Job
from jobs.model.location import Source
from jobs.planning.command import Plan, plan
from jobs.wire.command import body as command_body

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import date
    from pathlib import Path

    from jobs.composites import Declared, Planned
    from jobs.planning.pipeline import Find
    from jobs.wire.references import Refs


def resolve(
    declared: Declared,
    find: Find,
    *,
    on: date,
    source: Source | None = None,
    environments: Collection[str] = (),
) -> Planned:
    """Plan what a job file declares.

    Args:
        declared: A job, a sweep, a pipeline or a schedule.
        find: The target of a job (of a sweep's trial, of each step), and what is wrong with that.
        on: The day of the judgement, for retired sizes.
        source: The file.
        environments: Names of environments that the stack registers, beside the curated ones.

    Returns:
        A plan; its findings include those on the targets.
    """
    source = source or Source()
    if not isinstance(declared, Job):
        from jobs.composites import resolve_composite  # noqa: PLC0415

        return resolve_composite(declared, find, on=on, source=source, environments=environments)
    target, wrong = find(declared)
    single = plan(declared, target, on=on, source=source, environments=environments)
    if not wrong:
        return single
    return replace(single, findings=(*single.findings, *(source.locate(finding) for finding in wrong)))


def with_enrich(declared: Declared, enrich: bool) -> Declared:
    """The same, enriched or not, whatever it says itself: the job, the sweep's trial, every step."""
    if isinstance(declared, Job):
        return declared.model_copy(update={"enrich": enrich})
    from jobs.composites import composite_with_enrich  # noqa: PLC0415

    return composite_with_enrich(declared, enrich)


def render(declared: Declared, refs: Refs | None = None, steps: Mapping[str, Refs] | None = None) -> dict[str, Any]:
    """The body of what a plan enriched, ``{"properties": …}``.

    Args:
        declared: ``enriched`` of a plan.
        refs: What the references in it point to; None leaves them short.
        steps: Of a pipeline, for each step where its code and environment are.
    """
    if isinstance(declared, Job):
        return command_body(declared, refs)
    from jobs.composites import render_composite  # noqa: PLC0415

    return render_composite(declared, refs, steps)


def parts(planned: Planned) -> dict[str, Plan]:
    """The plans of the command jobs in it, by their place in it; of a single job that place is empty."""
    if isinstance(planned, Plan):
        return {"": planned}
    from jobs.composites import parts_of  # noqa: PLC0415

    return parts_of(planned)


def codes(planned: Planned) -> dict[str, Path]:
    """The folders to upload, by the place of the job that they belong to."""
    return {place: each.code for place, each in parts(planned).items() if each.code is not None}
