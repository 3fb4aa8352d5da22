"""Inputs that a rehearsal takes from this machine: they lie beside the body, which keeps its production addresses.

A file in the job's folder holds them, by step (empty for a job that is no pipeline) and name of the input. The trials
of a sweep and the steps of a pipeline look into the folder of the outermost job. Beside it lies a list of the steps
whose outputs this machine has: they are not run.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.files import write_whole
from amlstack.sandbox.store.places import job_folder, private

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from amlstack.sandbox.store.store import JobRow, Store

FILE = "inputs.json"
GIVEN = "given.json"
_BELOW = ".jobs."
"""Between the names of a step and of a step in it."""


def write(home: Path, job: str, by_step: Mapping[str, Mapping[str, Path]], given: Collection[str] = ()) -> None:
    """Notes the substitutes of a job that is about to be submitted; none make no file.

    Args:
        home: The sandbox's home.
        job: The job's name, one that no job had before.
        by_step: From step and input to an absolute path of this machine.
        given: Steps that are not run, as what others read of them is given.
    """
    if given:
        write_whole(private(job_folder(home, job)) / GIVEN, json.dumps(sorted(given)) + "\n")
    if not any(by_step.values()):
        return
    data = {step: {name: str(path) for name, path in inputs.items()} for step, inputs in by_step.items()}
    write_whole(private(job_folder(home, job)) / FILE, json.dumps(data, indent=1) + "\n")


def of(store: Store, job: JobRow) -> dict[str, Path]:
    """The substitutes of one job's inputs, by name; of a trial or step those that its outermost job was given."""
    root, step = outermost(store, job)
    file = job_folder(store.home, root) / FILE
    if not file.is_file():
        return {}
    return {name: Path(path) for name, path in json.loads(file.read_text()).get(step, {}).items()}


def is_given(store: Store, job: JobRow) -> bool:
    """True where a job is a step whose outputs this machine has, or belongs to such a step."""
    root, step = outermost(store, job)
    file = job_folder(store.home, root) / GIVEN
    if not step or not file.is_file():
        return False
    return any(f"{step}{_BELOW}".startswith(f"{given}{_BELOW}") for given in json.loads(file.read_text()))


def outermost(store: Store, job: JobRow) -> tuple[str, str]:
    """The outermost job that a job belongs to, and the step of it; empty where that is no pipeline.

    A step of a pipeline that is itself a step is called as in the declaration, ``outer.jobs.inner``.
    """
    line = (job.id, *store.family.above(job.id))
    steps = [
        store.family.place(each) or ""
        for each, parent in itertools.pairwise(line)
        if store.jobs[parent].properties.get("jobType") == "Pipeline"
    ]
    return line[-1], _BELOW.join(reversed(steps))
