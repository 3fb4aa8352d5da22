"""The jobs and stacks of a project that changes touch, each with the reasons: the verb `amlstack check --changed`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from amlstack.base.paths import PROJECT
from amlstack.cli import git as bases
from amlstack.cli.console import print_json, say
from amlstack.cli.git import Base, GitError, Repository
from amlstack.cli.jobfiles.formats import Format
from amlstack.cli.jobfiles.judgement import OWN, StackRuns, Tree, imported_from

PROGRAM: Final = (*OWN, "Pulumi.yaml", "pyproject.toml", "uv.lock")
"""The program of a stack: Pulumi.yaml and the packages that it runs, beside one another in the project."""


@dataclass(slots=True)
class TouchedJob:
    """One job file.

    Attributes:
        file: From the working folder on.
        stacks: The stacks that list it.
        reasons: In words, why it is touched.
    """

    file: str
    stacks: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class TouchedStack:
    """One stack.

    Attributes:
        stack: Its name.
        reasons: In words, why it is touched.
    """

    stack: str
    reasons: list[str]


@dataclass(slots=True)
class Survey:
    """All that a range of commits touches.

    Attributes:
        base: The commit that is compared with.
        files: How many paths changed.
        uncommitted: How many of them are not committed.
        jobs: Job files that are there and are touched.
        stacks: Stacks that are touched.
        removed: Job files of which nothing is left to rehearse.
        removed_stacks: Stacks whose settings file is gone.
        unreadable: Stacks whose settings cannot be read: their jobs are not known.
    """

    base: Base
    files: int
    uncommitted: int
    jobs: list[TouchedJob] = field(default_factory=list)
    stacks: list[TouchedStack] = field(default_factory=list)
    removed: list[TouchedJob] = field(default_factory=list)
    removed_stacks: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def compare(self, stack: str, before: StackRuns | None, now: StackRuns, place: Path) -> list[str]:
        """Add the job files that a stack's comparison touches; returns the reasons why each is.

        Args:
            stack: Its name; empty for job files that no stack lists.
            before: What it declared; None where it was not there.
            now: What it declares.
            place: The project's folder.
        """
        reasons: list[str] = []
        before = before or StackRuns()
        then, still = before.by_name, now.by_name
        for name in dict.fromkeys((*now.runs, *before.runs)):
            runs, gone = now.runs.get(name), [run for run in before.runs.get(name) or () if run not in still]
            found = [reason for run, own in (runs or {}).items() for reason in own.reasons(then.get(run))]
            target = self.jobs
            if runs is None:
                listed = name in now.runs
                target = self.removed
                found = ["deleted, and still listed"] if listed and before.runs.get(name) is not None else []
                if not listed and gone:
                    found = ["no longer listed" if (place / name).is_file() else "deleted, and no longer listed"]
            elif not runs:
                found = ["cannot be read"]
            elif gone:
                found += [f"`{run}` is no longer declared" for run in gone]
            if found:
                _add(target, os.path.relpath(place / name), stack, found)
                reasons += (f"{name}: {reason}" for reason in found)
        return reasons


def _add(touched: list[TouchedJob], file: str, stack: str, reasons: Sequence[str]) -> None:
    job = next((each for each in touched if each.file == file), None)
    if job is None:
        touched.append(job := TouchedJob(file))
    job.stacks += [stack] if stack else []
    job.reasons = list(dict.fromkeys((*job.reasons, *reasons)))


def project(repository: Repository) -> str:
    """The folder of the stacks, from the repository's root on: the working folder, else the project, else the root."""
    here = Path.cwd().resolve()
    for folder in (here, PROJECT.resolve(), repository.root):
        if folder.is_relative_to(repository.root) and (
            (folder / "Pulumi.yaml").is_file() or Tree(folder, "", frozenset()).stacks()
        ):
            here = folder
            break
    return "" if here == repository.root else here.relative_to(repository.root).as_posix()


def survey(
    repository: Repository,
    base: Base,
    *,
    stack: str | None,
    files: Sequence[Path],
    doing: Callable[[str], None] = lambda _: None,
) -> Survey:
    """Compare the runs that the working tree declares with those of a commit.

    Args:
        repository: The working tree.
        base: The commit to compare with.
        stack: The one stack that is meant; None for all.
        files: Job files beside those that stacks list.
        doing: Called with each job file before it is read.

    Raises:
        GitError: git refused, or there is no such stack.
    """
    changed = repository.changed(base.commit)
    result = Survey(base, len(changed), len(changed & repository.uncommitted()))
    tree = Tree(repository.root, project(repository), changed)
    stacks = [name for name in tree.stacks() if stack is None or name == stack]
    if stack is not None and not stacks:
        raise GitError(f"there is no Pulumi.{stack}.yaml in {tree.place}")
    if not changed:
        return result
    loose = [file.resolve() for file in files] + ([] if stack else list(_declaring(tree)))
    names = list(dict.fromkeys(os.path.relpath(file, tree.place) for file in loose))
    with repository.files_of(base.commit) as folder:
        then = Tree(folder, tree.folder, changed)
        with imported_from(then.root, repository.root):
            before = then.declared(stacks, names, lambda file: doing(f"{file} of {base.commit[:10]}"))
        result.removed_stacks = [] if stack else sorted(set(then.stacks()) - set(stacks))
    with imported_from(tree.root, repository.root):
        now = tree.declared(stacks, names, doing)
    listed = {(tree.place / file).resolve() for name in stacks for file in now[name].runs}
    program = [f"the stack's program: {path}" for path in sorted(changed) if _is_program(path, tree.folder)]
    for name in stacks:
        reasons = [] if name in before else ["new"]
        reasons += [*now[name].reasons(before.get(name, StackRuns())), *program]
        if (reading := now[name].reading) is not None and reading.partial is not None:
            reasons += result.compare(name, before.get(name), now[name], tree.place)
        else:
            result.unreadable.append(name)
        if reasons:
            result.stacks.append(TouchedStack(name, reasons))
    others = {file: runs for file, runs in now[""].runs.items() if (tree.place / file).resolve() not in listed}
    for file, runs in others.items():  # of job files that no stack lists each one has names of its own
        old = before[""].runs.get(file)
        result.compare("", StackRuns(None, {file: old}), StackRuns(None, {file: runs}), tree.place)
    return result


def _is_program(path: str, folder: str) -> bool:
    inside = PurePosixPath(path)
    return inside.is_relative_to(folder) and inside.relative_to(folder).parts[0] in PROGRAM


def _declaring(tree: Tree) -> Iterator[Path]:
    """Changed files that are job files by what they hold, and no components, which a pipeline's steps run."""
    from amlstack.base.files import read_regular
    from amlstack.base.yamltext import read
    from amlstack.snapshot.run_files import files_declaring
    from amlstack.snapshot.walk import File, FileState
    from jobs.azureml.read.kinds import is_component
    from jobs.pythonfiles.mistakes import assigns_jobs

    for name in sorted(tree.changed):
        path = tree.root / name
        if path.suffix in (".py", ".yml", ".yaml") and path.is_file():
            for each in files_declaring([File(str(path), name, FileState.from_stat(path.stat()))]):
                if assigns_jobs(read_regular(path)) if path.suffix == ".py" else not is_component(read(path).data):
                    yield each.path.resolve()


UNKNOWN = 2


def list_changes(words: Sequence[str], stack: str | None, form: Format, doing: Callable[[str], None]) -> int:
    """Print the jobs and stacks that changes touch.

    Args:
        words: The words after the options: perhaps a commit, then job files that no stack lists.
        stack: The one stack that is meant; None for all.
        form: TEXT, JSON, NAMES or STACKS.
        doing: Called with each job file before it is read.

    Returns:
        0 also where nothing is touched; 2 where that cannot be known.
    """
    first = words[0] if words else None
    is_file = first is not None and Path(first).suffix in (".py", ".yml", ".yaml") and Path(first).is_file()
    asked = None if is_file else first
    files = [Path(word) for word in (words if is_file else words[1:])]
    try:
        _require(files)
        repository = Repository.around(Path.cwd())
        found = survey(repository, bases.find_base(repository, asked), stack=stack, files=files, doing=doing)
    except GitError as error:
        if form is Format.JSON:
            print_json({"error": str(error)})
        say(f"error: {error}.", err=True)
        return UNKNOWN
    for name in found.unreadable:
        say(f"warning: the settings of `{name}` cannot be read: its jobs are not looked at.", err=True)
    if form is Format.JSON:
        print_json(found.as_dict())
    elif form is Format.NAMES:
        _print(job.file for job in found.jobs)
    elif form is Format.STACKS:
        _print(each.stack for each in found.stacks)
    else:
        _print(_lines(found))
    return 0


def _require(files: Sequence[Path]) -> None:
    if missing := [str(file) for file in files if not file.is_file()]:
        raise GitError(f"there is no job file `{missing[0]}`")


def _print(lines: Iterator[str]) -> None:
    if text := "\n".join(lines):
        say(text)


def _lines(found: Survey) -> Iterator[str]:
    loose = f", {found.uncommitted} of them not committed" if found.uncommitted else ""
    count = f"{found.files} file{'' if found.files == 1 else 's'}"
    yield f"since {found.base.commit[:10]} ({found.base.words}): {count} changed{loose}"
    yield f"jobs touched: {len(found.jobs)}" if found.jobs else "no jobs touched"
    yield from _of_jobs(found.jobs)
    yield f"stacks touched: {len(found.stacks)}" if found.stacks else "no stacks touched"
    yield from (f"  {each.stack}: {_why(each.reasons)}" for each in found.stacks)
    if found.removed:
        yield "no longer there, and not to be rehearsed:"
        yield from _of_jobs(found.removed)
    for name in found.removed_stacks:
        yield f"the stack `{name}` has no settings any more: what it made stays until `amlstack down --stack {name}`"


def _of_jobs(jobs: Sequence[TouchedJob]) -> Iterator[str]:
    for job in jobs:
        stacks = f" ({', '.join(job.stacks)})" if job.stacks else ""
        yield f"  {job.file}{stacks}: {_why(job.reasons)}"


def _why(reasons: Sequence[str]) -> str:
    """The first reason in words, and how many more there are."""
    more = len(reasons) - 1
    return f"{reasons[0]}; and {more} more" if more else reasons[0]
