"""The judgement that both ``--dry-run`` and the rehearsal itself ask."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.base import paths
from amlstack.base.findings import Level
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal.feasibility import devices, environment, machine, network, ports, steps, unproven
from amlstack.cli.rehearsal.feasibility.aspect import Aspect, Feasibility, merged
from amlstack.cli.rehearsal.feasibility.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import jobs
    from amlstack import snapshot
    from amlstack.base.findings import Finding
    from amlstack.cli.rehearsal.feasibility.aspect import State
    from amlstack.cli.rehearsal.inputs import Data
    from amlstack.cli.rehearsal.request import RehearsalSurvey
    from amlstack.sandbox.images import EnvironmentAnswer
    from infra.runs import CodeFolders

ASKED_ELSEWHERE = ("data", "size")
"""What the rehearsal answers before: inputs are named all at once, a job that is too large is asked about."""


def judge(name: str, plan: jobs.Planned, data: Data, known: RehearsalSurvey, *, agreed: bool) -> Feasibility:
    """Whether a job can be rehearsed here. Reads files of this machine alone; starts and writes nothing.

    Args:
        name: The job's name.
        plan: Of a job, a sweep or a pipeline.
        data: Where its inputs were found.
        known: What was asked for and found out.
        agreed: Whether a job larger than this machine was agreed to.
    """
    run = {place: part for place, part in plan.parts.items() if place.removeprefix("jobs.") not in data.given}
    parts = tuple(each for each in scales.extents(plan, known.request.scale) if each.place in run)
    answers: list[EnvironmentAnswer] = []
    found = [*steps.aspects(plan, Stored(paths.home()), data.given), *_needs(run, answers, known)]
    by_place = {part.place: part for part in parts}
    found += (
        *_data(data),
        *machine.size(parts, yes=agreed),
        *machine.disk(by_place, _code(run, known.folders), answers),
        *machine.sandbox(),
    )
    if known.request.force:
        found = [_forced(each) for each in found]
    return Feasibility(
        name, merged(found), tuple(unproven.of(plan, parts, gpu=devices.has_gpu(), shim=known.request.shim))
    )


def obstacles(answer: Feasibility) -> tuple[Aspect, ...]:
    """What stops a rehearsal that has its inputs and was agreed to."""
    return tuple(each for each in answer.blocking if each.about not in ASKED_ELSEWHERE)


def _needs(
    parts: Mapping[str, jobs.Plan], answers: list[EnvironmentAnswer], known: RehearsalSurvey
) -> Iterator[Aspect]:
    stored = Stored(paths.home())
    internet = network.Needs(parts)
    for place, part in parts.items():
        found = None
        for aspect, answer in environment.aspects(place, part, stored, known.where, known.own):
            yield aspect
            if answer is not None:
                found = answer
                answers.append(answer)
        yield from devices.gpu(place, part, shim=known.request.shim)
        yield from devices.mpi(place, part, found)
        yield from ports.aspects(place, part)
    yield from internet.aspects()


def _data(data: Data) -> Iterator[Aspect]:
    for line in data.lines:
        yield Aspect("data", "ready", line.removeprefix("input "))
    for each in data.findings:
        yield _of_finding(each)


def _of_finding(each: Finding) -> Aspect:
    state: State = "blocks" if each.level is Level.ERROR else "note"
    return Aspect("data", state, ". ".join(filter(None, (each.seen, each.rule))), each.remedy, (), each.file, each.line)


def _forced(each: Aspect) -> Aspect:
    return replace(each, state="note", remedy="") if each.state == "blocks" and each.ignorable else each


def _code(parts: Mapping[str, jobs.Plan], folders: CodeFolders) -> dict[str, snapshot.Inspected]:
    found = {}
    for place, part in parts.items():
        if inspected := folders.inspected_part(part):
            found[place] = inspected[0]
    return found
