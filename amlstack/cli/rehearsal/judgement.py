"""The judgement whether a job can be rehearsed on this machine, found out from files and hosts; nothing is started."""

from __future__ import annotations

import functools
import socket
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import jobs
from amlstack.base.findings import Finding, Level, errors
from amlstack.cli.console import print_json, say
from amlstack.cli.rehearsal import aspects, environments
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal import site as sites
from amlstack.cli.rehearsal.aspects import Aspect, Feasibility, State, merged
from amlstack.cli.rehearsal.environments import has_gpu
from amlstack.code_reading import code_files, downloads, shell
from jobs.planning.launcher_checks import filled

if TYPE_CHECKING:
    from amlstack.cli.rehearsal.inputs import Data
    from amlstack.cli.rehearsal.request import RehearsalSurvey
    from amlstack.cli.rehearsal.scale import Extent
    from amlstack.code_reading.downloads import Download
    from amlstack.images.environments import EnvironmentAnswer
    from amlstack.sandbox.slurm import SlurmProfile
    from infra.runs import CodeFolders

_SECONDS: Final = 0.4
"""The time limit for the answers of all hosts together. An answer takes a tenth of it."""


def _downloads(part: jobs.Plan, chosen: Mapping[str, Path]) -> list[Download]:
    """The downloads of a part, where a value that is given as a path of this machine names nothing to fetch."""
    inputs = {**part.enriched.inputs}
    for name, path in chosen.items():
        if not isinstance(inputs.get(name), jobs.Input):  # one that is declared as data keeps its type
            inputs[name] = jobs.Input(path=str(path)) if path.exists() else str(path)
    folder, job = scales.code_folder(part), part.enriched.model_copy(update={"inputs": inputs})
    command = shell.steps(filled(job))
    given = downloads.given_by(command, job.environment_variables)
    models = any(isinstance(each, jobs.Input) and each.type != "uri_file" for each in job.inputs.values())
    in_code = () if folder is None else downloads.in_code(folder, shell.scripts(job.command), given, models=models)
    return [*downloads.in_command(command), *in_code]


def _internet(place: str, part: jobs.Plan, found: Sequence[Download], away: frozenset[str]) -> Iterator[Aspect]:
    """Yield a part's needs of the internet, and if this machine meets them.

    Args:
        place: The part's place.
        part: The part.
        found: Its downloads.
        away: Hosts that are out of reach.
    """
    folder, step = scales.code_folder(part), place.removeprefix("jobs.")
    written = " ".join(f"--input {step}.{name}=PATH" for name in part.job.outputs) if step != place else ""
    instead = f"Give what the step writes, `{written}`" if written else "Give the job its data as an input"
    for each in found:
        file = str(folder / each.path) if folder is not None and each.path else None
        yield _download_aspect(each, instead if each.host in away else "", place, file)


def _programs(place: str, part: jobs.Plan) -> Iterator[Aspect]:
    for each in part.findings:
        # To `check` it is a warning where the folder holds no script yet; this run takes the folder as it is.
        if each.code == "script-missing" and each.level is Level.WARNING:
            yield Aspect("programs", "blocks", each.seen, each.remedy, (place,), each.file, each.line, ignorable=True)
    for program in code_files.outside_programs(shell.steps(part.enriched.command)):
        if program.changes:
            text = f"`{program.name}` in the command would change this machine, where a rehearsal runs its commands"
            remedy = "Move it into the image, or give --force to run it here all the same."
        else:
            text = f"`{program.name}` is not on this machine, and a stand-in of an image holds Python packages alone"
            remedy = "Install it, or rehearse where it is."
        yield Aspect("programs", "blocks", text, remedy, (place,), ignorable=True)


def _download_aspect(each: Download, instead: str, place: str, file: str | None) -> Aspect:
    """The aspect of a download; ``instead`` is the remedy where its host is out of reach, else empty."""
    where = each.host or "the internet"
    line = each.line or None
    if instead and each.certain:
        text = f"{each.what}, and {where} cannot be reached from this machine"
        remedy = f"{instead}, or --force where what it fetches is here already."
        return Aspect("internet", "blocks", text, remedy, (place,), file, line, ignorable=True)
    unsure = "" if each.certain else ", unless a condition of the code spares it"
    missing = f"; {where} cannot be reached from this machine" if instead else ""
    return Aspect("internet", "note", f"{each.what} from {where}{unsure}{missing}", "", (place,), file, line)


@functools.lru_cache(maxsize=32)
def unreachable(hosts: frozenset[str]) -> frozenset[str]:
    """The hosts that refuse or have no address here; one that is only slow counts as reachable."""
    failed: set[str] = set()

    def ask(host: str) -> None:
        try:
            socket.create_connection((host, 443), timeout=_SECONDS).close()
        except TimeoutError:
            return
        except OSError:
            failed.add(host)

    asking = [threading.Thread(target=ask, args=(host,), daemon=True) for host in hosts]
    for thread in asking:
        thread.start()
    until = time.monotonic() + _SECONDS
    for thread in asking:
        thread.join(max(0.0, until - time.monotonic()))
    return frozenset(failed)


ASKED_ELSEWHERE = ("data", "size")
"""Findings that the rehearsal handles before: it names all inputs at once, and asks about a job that is too large."""


def judge(
    name: str,
    plan: jobs.Planned,
    data: Data,
    known: RehearsalSurvey,
    *,
    agreed: bool,
    site: SlurmProfile | None = None,
) -> Feasibility:
    """Judge if a job can be rehearsed here. Reads files of this machine alone; starts and writes nothing.

    Args:
        name: The job's name.
        plan: Of a job, a sweep or a pipeline.
        data: Where its inputs were found.
        known: What was asked for and found out.
        agreed: Whether a job larger than this machine was agreed to.
        site: The profile by which Slurm gives it nodes; None for this machine.
    """
    run = {place: part for place, part in plan.parts.items() if place.removeprefix("jobs.") not in data.given}
    parts = tuple(each for each in scales.extents(plan, known.request.scale) if each.place in run)
    answers: list[EnvironmentAnswer] = []
    fetched = {place: _downloads(part, data.by_step.get(plan.step(place), {})) for place, part in run.items()}
    found = [
        *aspects.step_aspects(plan.job.steps, data.given, known.request.file.parent),
        *_needs(run, fetched, answers, known, site),
        *(() if site is None else sites.site_aspects(site, plan, parts)),
    ]
    found += (
        *_data(data),
        *aspects.size_aspects(parts, yes=agreed, here=site is None),
        *aspects.disk_aspects(_copied(run, parts, known.folders), answers),
        *aspects.sandbox_aspects(),
    )
    if known.request.force:
        found = [_forced(each) for each in found]
    return Feasibility(name, merged(found), tuple(unproven(plan, parts, data, known, site)))


def unproven(
    plan: jobs.Planned, parts: Sequence[Extent], data: Data, known: RehearsalSurvey, site: SlurmProfile | None
) -> Iterator[str]:
    """Yield what a rehearsal says nothing about; the arguments are those of `judge`, and what is started."""
    gpu = has_gpu() if site is None else sites.has_gpus(site)
    yield from aspects.unproven(plan, parts, data, gpu=gpu, shim=known.request.shim, here=site is None)


def obstacles(answer: Feasibility) -> tuple[Aspect, ...]:
    """The aspects that stop a rehearsal that has its inputs and was agreed to."""
    return tuple(each for each in answer.blocking if each.about not in ASKED_ELSEWHERE)


def _needs(
    parts: Mapping[str, jobs.Plan],
    fetched: Mapping[str, Sequence[Download]],
    answers: list[EnvironmentAnswer],
    known: RehearsalSurvey,
    site: SlurmProfile | None,
) -> Iterator[Aspect]:
    away = unreachable(frozenset(each.host for one in fetched.values() for each in one if each.host))
    for place, part in parts.items():
        found, answer = environments.environment_aspects(place, part, known.where, known.own)
        yield from found
        if answer is not None:
            answers.append(answer)
        if site is None:
            yield from environments.gpu_aspects(place, part, shim=known.request.shim)
            yield from aspects.port_aspects(place, part)
        if site is None or not site.mpirun:
            yield from environments.mpi_aspects(place, part, answer)
        yield from aspects.cluster_aspects(place, part)
        yield from _programs(place, part)
        yield from _internet(place, part, fetched[place], away)


def _data(data: Data) -> Iterator[Aspect]:
    for line in data.lines:
        yield Aspect("data", "ready", line.removeprefix("input "))
    for each in data.findings:
        text = ". ".join(filter(None, (each.seen, each.rule)))
        state: State = "blocks" if each.level is Level.ERROR else "note"
        yield Aspect("data", state, text, each.remedy, (), each.file, each.line)


def _forced(each: Aspect) -> Aspect:
    return replace(each, state="note", remedy="") if each.state == "blocks" and each.ignorable else each


def _copied(run: Mapping[str, jobs.Plan], parts: Sequence[Extent], folders: CodeFolders) -> int:
    """Bytes of all copies of the code: each part has one, and one on each of its nodes."""
    own = ((part, folders.inspected_part(run[part.place])[:1]) for part in parts)
    return sum(code.bytes * (part.started[0] + 1) for part, codes in own for code in codes)


_ORDER = (
    *("steps", "environment", "programs", "data", "internet", "GPU", "MPI"),
    *("Slurm", "compute", "size", "disk", "ports", "sandbox"),
)
_WIDTH = 15


def show_answers(
    file: Path, answers: Sequence[Feasibility], found: Sequence[Finding], *, possible: bool, as_json: bool
) -> None:
    """Prints it.

    Args:
        file: The job file.
        answers: One for each job.
        found: Findings on the file, which were printed already unless JSON is wanted.
        possible: Whether all can be rehearsed.
        as_json: Whether JSON is wanted.
    """
    if as_json:
        findings = [each.as_dict() for each in found]
        of_jobs = [each.as_dict() for each in answers]
        print_json({"file": str(file), "possible": possible, "jobs": of_jobs, "findings": findings})
        return
    for answer in answers:
        say("\n".join(_lines(answer)))
    count = sum(len(answer.blocking) for answer in answers)
    if possible:
        say(f"{file}: can be rehearsed here; nothing was started")
    else:
        above = ["as the findings above say"] if errors(found) else []
        things = [f"{count} thing{' is' if count == 1 else 's are'} in the way"] if count else []
        say(f"{file}: cannot be rehearsed here: {', and '.join(above + things)}; nothing was started")


def _lines(answer: Feasibility) -> Iterator[str]:
    yield f"{answer.name}"
    for about in (*_ORDER, *dict.fromkeys(each.about for each in answer.aspects if each.about not in _ORDER)):
        label = about
        for each in answer.aspects:
            if each.about == about:
                yield from _entry(label, line_of(each))
                label = ""
    label = "unproven"
    for text in answer.unproven:
        yield from _entry(label, text)
        label = ""


def line_of(each: Aspect) -> str:
    """One aspect as text: its place, whether it is in the way, and the remedy."""
    places = f"{', '.join(each.places)}: " if each.places else ""
    spot = f"{each.spot}: " if each.spot else ""
    no = "NO: " if each.state == "blocks" else ""
    remedy = f". {each.remedy}" if each.remedy else ""
    return f"{no}{spot}{places}{each.text.rstrip('.')}{remedy}"


def _entry(label: str, text: str) -> Iterator[str]:
    """A label and its text, which is broken at blanks only, so that a path stays whole."""
    indent = " " * _WIDTH
    lines = textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {label:<{_WIDTH - 2}}{lines[0]}"
    yield from (f"{indent}{line}" for line in lines[1:])
