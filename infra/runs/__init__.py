"""Runs of a stack: jobs, sweeps, pipelines, and schedules of them, all in one record."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jobs
from amlstack import snapshot
from amlstack.base.findings import Finding, Level
from amlstack.base.paths import is_dir
from jobs.local_data import LocalData
from jobs.model.pipeline import ComponentNode, Node

if TYPE_CHECKING:
    from amlstack.catalog.fabric import Block
    from infra.settings import JobFile


Environment = Callable[[Any], dict[str, Any]]

OF_RUNS = ("rerun", "on_edit", "wait", "delete_history")
"""Overrides of job files that mean nothing for a schedule."""


@dataclass(frozen=True, slots=True)
class Run:
    """One training run of the stack, or a schedule that starts one.

    Attributes:
        name: Name of the job or schedule; a job's id is this and a hash.
        plan: What is declared against the clusters of its parts.
        codes: The content of each part's folder, by the part's place (a single job's is empty); parts without a folder
            are absent.
        own: What of all its code counts for the run's identity.
        data: Data of this machine that it reads.
        after: Names of the runs that must have completed before it is submitted.
        assets: ``azureml:NAME:VERSION`` of the stack's data assets that it reads, each once.
    """

    name: str
    plan: jobs.Planned
    codes: Mapping[str, snapshot.Snapshot]
    own: snapshot.OwnCode
    data: LocalData = field(default_factory=LocalData)
    after: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()

    @property
    def declared(self) -> Any:
        """The planned object: a job, sweep or pipeline with its settings of runs, or a schedule with its trigger."""
        return self.plan.job

    @property
    def is_schedule(self) -> bool:
        """True where it starts runs over time instead of being one."""
        return self.plan.timed


class CodeFolders:
    """The code folders of a declaration. Each is read and hashed once, however many runs name it in whatever way."""

    def __init__(self) -> None:
        self._scanned: dict[tuple[Any, ...], snapshot.Snapshot] = {}
        self._own: dict[int, _Own] = {}
        self._inspected: dict[tuple[Any, ...], snapshot.Inspected] = {}
        self._real: dict[str, str] = {}

    def inspected(self, plan: jobs.Planned) -> tuple[snapshot.Inspected, ...]:
        """Each folder of a plan's code once, its files named from the folder on, without reading all of them."""
        found = {id(each): each for part in plan.parts.values() for each in self.inspected_part(part)}
        return tuple(found.values())

    def inspected_part(self, part: jobs.Plan) -> tuple[snapshot.Inspected, ...]:
        """The same of one part: its folder first, then what goes along with that."""
        code, found = part.job.code, []
        if code is None or not code.local:
            return ()
        for name in (code.path, *code.includes):
            folder = os.path.join(part.base, name)  # noqa: PTH118 - once for each of many jobs
            try:
                there = os.stat(folder)  # noqa: PTH116
            except (OSError, ValueError):  # a folder that is not there is a finding elsewhere
                continue
            if stat.S_ISDIR(there.st_mode):
                key = there.st_dev, there.st_ino, bool(part.beside)
                if key not in self._inspected:
                    at = Path(folder)
                    seen = snapshot.inspect(at, accompanied=key[2])
                    named = tuple(in_folder(at, each) for each in seen.findings)
                    self._inspected[key] = seen._replace(findings=named)
                found.append(self._inspected[key])
        return tuple(found)

    def scanned(self, plan: jobs.Planned) -> dict[str, snapshot.Snapshot]:
        """The content of each part's folder by the part's place; the plan has a finding on a folder that is missing."""
        found = {}
        for place, part in plan.parts.items():
            if (code := part.code) is not None and is_dir(code):
                there = os.stat(code)  # noqa: PTH116 - once for each of many jobs
                key = there.st_dev, there.st_ino, part.beside
                if key not in self._scanned:
                    self._scanned[key] = snapshot.scan(code, part.beside)
                found[place] = self._scanned[key]
        return found

    def own_code(self, plan: jobs.Planned, codes: Mapping[str, snapshot.Snapshot], file: Path) -> snapshot.OwnCode:
        """The part of a plan's code that counts for its run's identity.

        Args:
            plan: The plan.
            codes: What `scanned` found for it.
            file: The file that declares the run.
        """
        parts = plan.parts
        own = {place: self._own_of(code, parts[place].enriched.command, file) for place, code in codes.items()}
        return own[""] if "" in own else snapshot.together(own)

    def _own_of(self, code: snapshot.Snapshot, command: str, file: Path) -> snapshot.OwnCode:
        if (known := self._own.get(id(code))) is None:
            places = frozenset(each.place for each in code.files)
            known = self._own[id(code)] = _Own(
                code, places, None if snapshot.has_job_files(code) else snapshot.own_code(code)
            )
        if known.of_all is not None and self._resolved(str(file)) not in known.places:
            return known.of_all
        return snapshot.own_code(code, declared_in=(file,), commands=(command,))

    def _resolved(self, file: str) -> str:
        """A file's path without links; the folder of many files is looked at once."""
        folder, name = os.path.split(file)
        if name in {"", os.curdir, os.pardir} or os.path.islink(file):  # noqa: PTH114 - once for each of many jobs
            return os.path.realpath(file)
        if (real := self._real.get(folder)) is None:
            real = self._real[folder] = os.path.realpath(folder)
        return os.path.join(real, name)  # noqa: PTH118 - as above


def in_folder(folder: Path, finding: Finding) -> Finding:
    """A finding on a snapshot's file, which is named from the folder on."""
    return replace(finding, file=os.path.normpath(folder / finding.file)) if finding.file else finding


class _Own(NamedTuple):
    """A scanned folder, where its files lie, and what counts of it for runs declared elsewhere, if that is the same."""

    code: snapshot.Snapshot
    places: frozenset[str]
    of_all: snapshot.OwnCode | None


def with_overrides(declared: jobs.Declared, job_file: JobFile, environment: Environment) -> jobs.Declared:
    """The declaration of a file, as the stack means it: with the settings' overrides and environments.

    Args:
        declared: As its file has it.
        job_file: The settings of the file.
        environment: From a job or a component to its environment in the stack (`environments.environment_of`).
    """
    if declared.timed:
        overrides: dict[str, Any] = {} if job_file.enabled is None else {"is_enabled": job_file.enabled}
    else:
        overrides = job_file.overrides
    meant = declared.model_copy(update=overrides) if overrides else declared
    return with_environments(meant, environment, fabric=job_file.fabric)


def with_environments(
    declared: jobs.Declared, environment: Environment, *, fabric: tuple[Block, ...] = ()
) -> jobs.Declared:
    """A declaration with each part's environment as the stack means it, in nested pipelines too.

    Args:
        declared: A job, a sweep, a pipeline or a schedule.
        environment: From a job or a component to its environment in the stack.
        fabric: Blocks of the fabric that the stack asks for, for each job, trial and step; empty for each one's own.
    """
    asked: dict[str, Any] = {"fabric": fabric} if fabric else {}

    def changed(value: Any) -> Any:
        if isinstance(value, jobs.Job):
            return value.model_copy(update={**environment(value), **asked})
        if isinstance(value, jobs.Component):
            return value.model_copy(update=environment(value))
        if isinstance(value, jobs.PassthroughComponent):
            inner = {name: changed(step) for name, step in value.jobs.items()}
            return value.model_copy(update={**environment(value), "jobs": inner})
        # A step; one that runs the id of a registered component, or none of its own, stays as it is.
        if isinstance(value, ComponentNode) and asked:
            value = value.model_copy(update=asked)
        return value.with_runs(changed(value.runs)) if isinstance(value, Node) else value

    return declared.with_parts(changed)


def misplaced(declared: jobs.Declared, job_file: JobFile) -> Iterator[Finding]:
    """Overrides of a file that mean nothing for what it declares."""
    schedule = declared.timed
    names = OF_RUNS if schedule else ("enabled",)
    if given := [name for name in names if getattr(job_file, name) is not None]:
        seen = f"The stack sets {', '.join(f'`{name}`' for name in given)} for {'a schedule' if schedule else 'a job'}"
        rule = f"{', '.join(f'`{name}`' for name in OF_RUNS)} are for jobs, `enabled` is for schedules"
        remedy = "Take it out of the stack's settings: it changes nothing."
        yield Finding("setting-misplaced", given[0], seen, rule, remedy, Level.WARNING)


def location_of(declared: jobs.Declared, source: jobs.Source) -> Callable[[Finding], Finding]:
    """From a finding on a part to the same with its line: in the file that declares the part, perhaps another one."""
    if isinstance(declared, jobs.Schedule):
        if declared.source is not None:
            return declared.source.locate
        return lambda finding: source.locate(finding.under("create_job"))
    return source.locate


class ListedRun(NamedTuple):
    """A run, and where the settings list the file that declares it."""

    position: int
    file: str
    run: Run


def named_alike(listed: Iterable[ListedRun]) -> Iterator[tuple[int, Finding]]:
    """Runs of one name with the files that declare them, each at the last file's place in the list."""
    alike: dict[tuple[bool, str], list[ListedRun]] = {}
    for each in listed:
        alike.setdefault((each.run.is_schedule, each.run.name), []).append(each)
    for (is_schedule, name), several in alike.items():
        if len(several) == 1:
            continue
        files = " and ".join(f"`{file}`" for file in dict.fromkeys(each.file for each in several))
        remedy = "Give one of them another `name`"
        unnamed = next((each.file for each in several if each.run.declared.name is None), None)
        if unnamed is not None:
            folder = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(unnamed).parent.name).strip("-_") or "another"
            remedy = f"`{unnamed}` has no `name` and goes by its file's: write `name: {folder}`, say"
        rule = "The name is the first part of a run's id, so each job of a stack has its own"
        if is_schedule:
            rule = "A workspace has one schedule of a name"
        count, kind = "Two" if len(several) == 2 else len(several), "schedules" if is_schedule else "jobs"
        seen = f"{count} {kind} are named `{name}`, in {files}"
        index = several[-1].position
        yield index, Finding("job-twice", f"amlstack:jobs[{index}]", seen, rule, remedy)
