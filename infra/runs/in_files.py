"""Names under ``after`` in job files and in the settings' list of them, each with its place."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from infra.runs.order import OrderedRun, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import jobs
    from infra.settings import JobFile, Reading


def members(
    loaded: jobs.Loaded,
    path: Path,
    job_file: JobFile,
    reading: Reading,
    index: int,
    *,
    shown: Callable[[Finding], Finding] = lambda finding: finding,
) -> list[OrderedRun]:
    """The runs of a job file with what they come after: what the file says of each, and the settings of all.

    Args:
        loaded: The file.
        path: Where it is.
        job_file: Its entry in the settings.
        reading: The settings.
        index: Which of `jobs` the entry is.
        shown: Applied to findings in the file.
    """
    of_settings = tuple(
        Wanted(name, partial(_in_settings, reading, index, number)) for number, name in enumerate(job_file.after)
    )
    return [
        OrderedRun(
            declared.name or path.stem,
            job_file.file,
            (*_of_file(loaded, position, shown), *of_settings),
            declared.timed,
        )
        for position, declared in enumerate(loaded.jobs)
    ]


def alone(loaded: jobs.Loaded, path: Path) -> list[OrderedRun]:
    """The same of a file that no settings list."""
    return [
        OrderedRun(
            declared.name or path.stem,
            os.path.normpath(path),
            tuple(_of_file(loaded, position, lambda finding: finding)),
            declared.timed,
        )
        for position, declared in enumerate(loaded.jobs)
    ]


def misplaced(loaded: jobs.Loaded) -> Iterator[Finding]:
    """An ``after`` where there is nothing to wait: at a step of a pipeline, or at what a schedule starts."""
    for declared in loaded.jobs:
        started = declared.runs if declared.timed else None
        if getattr(started, "after", ()):
            finding = Finding(
                "after-misplaced",
                "create_job.after",
                "What a schedule starts has `after`",
                "A schedule starts its runs at times of its own, without this stack",
                "Take it out; let a pipeline run the one after the other, and schedule that",
            )
            yield loaded.source.locate(finding)
        for name, step in declared.steps.items():
            if getattr(step, "after", ()):
                finding = Finding(
                    "after-misplaced",
                    f"jobs.{name}.after",
                    f"The step `{name}` has `after`",
                    "A step starts when the steps whose outputs it binds have completed",
                    "Write `after` at the pipeline, or bind an output of the earlier step as an input",
                )
                yield loaded.source.locate(finding.under("create_job") if declared.timed else finding)


def _of_file(loaded: jobs.Loaded, position: int, shown: Callable[[Finding], Finding]) -> Iterator[Wanted]:
    names = getattr(loaded.jobs[position], "after", ())
    for number, name in enumerate(names):
        yield Wanted(name, partial(_in_file, loaded, position, number, shown))


def _in_file(
    loaded: jobs.Loaded, position: int, number: int, shown: Callable[[Finding], Finding], finding: Finding
) -> Finding:
    places = (f"after[{number}]", f"jobs[{position}].after[{number}]")
    located = [loaded.source.locate(replace(finding, where=where)) for where in places]
    if len(loaded.jobs) > 1:
        located.reverse()
    return shown(next((each for each in located if each.line is not None), located[0]))


def _in_settings(reading: Reading, index: int, number: int, finding: Finding) -> Finding:
    loc = ("jobs", index, "after", number)
    return reading.about(loc, finding)
