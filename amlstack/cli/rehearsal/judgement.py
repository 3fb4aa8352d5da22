"""The judgement whether a job can be rehearsed on this machine, found out from files and hosts; nothing is started."""

from __future__ import annotations

import functools
import socket
import textwrap
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from amlstack.base import paths
from amlstack.base.findings import Level
from amlstack.base.paths import is_dir
from amlstack.cli.console import print_json, say
from amlstack.cli.rehearsal import aspects, environments
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal.aspects import Aspect, Feasibility, Stored, merged
from amlstack.code_reading import shell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import jobs
    from amlstack import snapshot
    from amlstack.base.findings import Finding
    from amlstack.cli.rehearsal.aspects import State
    from amlstack.cli.rehearsal.inputs import Data
    from amlstack.cli.rehearsal.request import RehearsalSurvey
    from amlstack.code_reading.downloads import Download
    from amlstack.images import EnvironmentAnswer
    from infra.runs import CodeFolders

_SECONDS: Final = 0.4
"""The time limit for the answers of all hosts together, while the rest is judged. An answer takes a tenth of it."""


class InternetNeeds:
    """The needs that the parts of a job have of the internet; the hosts are asked while the caller judges the rest.

    Args:
        parts: Every part that is to run, by its place.
    """

    def __init__(self, parts: Mapping[str, jobs.Plan]) -> None:
        self._found = {place: _Found.of(place, part) for place, part in parts.items()}
        hosts = frozenset(each.host for found in self._found.values() for each in found.downloads if each.host)
        self._away: frozenset[str] = frozenset()
        self._asking = threading.Thread(target=self._ask, args=(hosts,), daemon=True) if hosts else None
        if self._asking is not None:
            self._asking.start()

    def _ask(self, hosts: frozenset[str]) -> None:
        self._away = unreachable(hosts)

    def aspects(self) -> Iterator[Aspect]:
        """Yield the needs of the internet or a program, and if this machine meets them; waits for the hosts."""
        if self._asking is not None:
            self._asking.join()
        for place, found in self._found.items():
            yield from _programs(place, found.steps)
            for each in found.downloads:
                file = str(found.folder / each.path) if each.path else None
                yield _download_aspect(each, found.instead if each.host in self._away else "", place, file)


@dataclass(frozen=True, slots=True)
class _Found:
    """The steps and downloads of one part, its code folder, and what is to be done where a host is out of reach."""

    steps: tuple[Sequence[str], ...]
    downloads: tuple[Download, ...]
    folder: Path
    instead: str

    @classmethod
    def of(cls, place: str, part: jobs.Plan) -> _Found:
        from amlstack.code_reading import downloads

        steps = shell.steps(part.enriched.command)
        found = [*downloads.in_command(steps)]
        code = part.job.code
        folder = part.base / code.path if code is not None and code.local else part.base
        if code is not None and code.local and is_dir(folder):
            found += downloads.in_code(folder, shell.scripts(part.enriched.command))
        step = place.removeprefix("jobs.")
        written = " ".join(f"--input {step}.{name}=PATH" for name in part.job.outputs) if step != place else ""
        instead = f"Give what the step writes, `{written}`" if written else "Give the job its data as an input"
        return cls(tuple(steps), tuple(found), folder, instead)


def _programs(place: str, steps: tuple[Sequence[str], ...]) -> Iterator[Aspect]:
    from amlstack.code_reading import code_files

    for program in code_files.outside_programs(steps):
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


def judge(name: str, plan: jobs.Planned, data: Data, known: RehearsalSurvey, *, agreed: bool) -> Feasibility:
    """Judge if a job can be rehearsed here. Reads files of this machine alone; starts and writes nothing.

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
    found = [*aspects.step_aspects(plan, Stored(paths.home()), data.given), *_needs(run, answers, known)]
    by_place = {part.place: part for part in parts}
    found += (
        *_data(data),
        *aspects.size_aspects(parts, yes=agreed),
        *aspects.disk_aspects(by_place, _code(run, known.folders), answers),
        *aspects.sandbox_aspects(),
    )
    if known.request.force:
        found = [_forced(each) for each in found]
    return Feasibility(
        name, merged(found), tuple(aspects.unproven(plan, parts, gpu=environments.has_gpu(), shim=known.request.shim))
    )


def obstacles(answer: Feasibility) -> tuple[Aspect, ...]:
    """The aspects that stop a rehearsal that has its inputs and was agreed to."""
    return tuple(each for each in answer.blocking if each.about not in ASKED_ELSEWHERE)


def _needs(
    parts: Mapping[str, jobs.Plan], answers: list[EnvironmentAnswer], known: RehearsalSurvey
) -> Iterator[Aspect]:
    stored = Stored(paths.home())
    internet = InternetNeeds(parts)
    for place, part in parts.items():
        found = None
        for aspect, answer in environments.environment_aspects(place, part, stored, known.where, known.own):
            yield aspect
            if answer is not None:
                found = answer
                answers.append(answer)
        yield from environments.gpu_aspects(place, part, shim=known.request.shim)
        yield from environments.mpi_aspects(place, part, found)
        yield from aspects.port_aspects(place, part)
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


_ORDER = ("steps", "environment", "programs", "data", "internet", "GPU", "MPI", "size", "disk", "ports", "sandbox")
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
        print_json(
            {
                "file": str(file),
                "possible": possible,
                "jobs": [each.as_dict() for each in answers],
                "findings": findings,
            }
        )
        return
    for answer in answers:
        say("\n".join(_lines(answer)))
    count = sum(len(answer.blocking) for answer in answers)
    if possible:
        say(f"{file}: can be rehearsed here; nothing was started")
    else:
        things = (
            "as the findings above say" if not count else f"{count} thing{' is' if count == 1 else 's are'} in the way"
        )
        say(f"{file}: cannot be rehearsed here: {things}; nothing was started")


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
