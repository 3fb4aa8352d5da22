"""The jobs and stacks of a project that changes touch, each with the reasons, and what is no longer there."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from amlstack.base.files import read_regular
from amlstack.base.paths import PROJECT
from amlstack.cli.jobfiles.changes import settings as settings_of
from amlstack.cli.jobfiles.changes import touched
from amlstack.cli.jobfiles.changes.git import GitError
from amlstack.cli.jobfiles.changes.results import Survey, TouchedJob, TouchedStack
from amlstack.cli.jobfiles.changes.touched import Paths, Reason
from amlstack.cli.targets import Targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from amlstack.cli.jobfiles.changes.base import Base
    from amlstack.cli.jobfiles.changes.git import Repository
    from amlstack.cli.jobfiles.changes.settings import ChangedSettings

_STACK: Final = re.compile(r"Pulumi\.[^/]+\.yaml")
PROGRAM: Final = ("amlstack", "infra", "jobs", "policies", "Pulumi.yaml", "pyproject.toml", "uv.lock")
"""What a stack's program is: Pulumi.yaml and the packages that it runs, beside one another in the project."""


def project(repository: Repository) -> str:
    """The folder of the stacks, from the repository's root on: the working folder, else the project, else the root.

    Raises:
        GitError: None of them lies in the repository.
    """
    for folder in (Path.cwd(), PROJECT, repository.root):
        real = folder.resolve()
        if real.is_relative_to(repository.root) and ((real / "Pulumi.yaml").is_file() or _stack_files(real)):
            return "" if real == repository.root else real.relative_to(repository.root).as_posix()
    here = Path.cwd().resolve()
    return "" if here == repository.root else here.relative_to(repository.root).as_posix()


def survey(
    repository: Repository,
    base: Base,
    *,
    stack: str | None,
    files: Sequence[Path],
    doing: Callable[[str], None] = lambda _: None,
) -> Survey:
    """Look at everything that a range may touch.

    Args:
        repository: The working tree.
        base: What it is compared with.
        stack: The one stack that is meant; None for all.
        files: Job files beside those that stacks list.
        doing: Called with each job file before it is read.

    Raises:
        GitError: git refused, or there is no such stack.
    """
    folder = project(repository)
    place = repository.root / folder
    names = repository.changed(base.commit)
    changed = Paths.of(repository.root, names)
    result = Survey(base, len(names), len(names & repository.uncommitted()))
    roots = tuple(dict.fromkeys((place, repository.root)))
    stacks = [name for name in _stack_files(place) if stack is None or name == f"Pulumi.{stack}.yaml"]
    if stack is not None and not stacks:
        raise GitError(f"there is no Pulumi.{stack}.yaml in {place}")
    listed: set[Path] = set()
    jobs: dict[str, TouchedJob] = {}
    for name in stacks:
        compared = settings_of.compare(repository, base.commit, folder, name)
        touched_stack = TouchedStack(compared.stack, list(_of_stack(compared, folder, changed)))
        if compared.reading.partial is None:
            result.unreadable.append(compared.stack)
        for entry in compared.reading.partial.jobs if compared.reading.partial else ():
            file = place / entry.file
            listed.add(file.resolve())
            if not file.is_file():
                if (gone := changed.file(file)) is not None:
                    listing = TouchedJob(_shown(file), [compared.stack], [Reason("deleted, and still listed", gone)])
                    result.removed.append(listing)
                continue
            doing(_shown(file))
            where = Targets(
                stack=compared.stack,
                settings=compared.reading.partial,
                root=place,
                asked=True,
                reading=compared.reading,
            )
            _add(jobs, file, compared.stack, touched.of_job(file, where, changed, compared, roots))
        touched_stack.reasons += (
            Reason(f"job: {reason.what}", reason.file)
            for job in jobs.values()
            if compared.stack in job.stacks
            for reason in job.reasons
        )
        result.removed += (_removed(gone, compared, place, changed) for gone in compared.removed_jobs)
        if touched_stack.reasons:
            touched_stack.reasons = list(dict.fromkeys(touched_stack.reasons))
            result.stacks.append(touched_stack)
    for file in (*files, *(() if stack else _declaring(changed, listed))):
        if file.resolve() not in listed and file.is_file():
            listed.add(file.resolve())
            doing(_shown(file))
            _add(jobs, file, None, touched.of_job(file, Targets(root=place), changed, None, roots))
    result.jobs = list(jobs.values())
    result.removed = _together(result.removed)
    if stack is None:
        result.removed_stacks = list(_gone_stacks(repository, base.commit, folder, place))
    return result


def _add(jobs: dict[str, TouchedJob], file: Path, stack: str | None, reasons: Sequence[Reason]) -> None:
    if not reasons:
        return
    job = jobs.setdefault(_shown(file), TouchedJob(_shown(file)))
    job.stacks += [stack] if stack else []
    job.reasons = list(dict.fromkeys((*job.reasons, *reasons)))


def _of_stack(compared: ChangedSettings, folder: str, changed: Paths) -> Iterator[Reason]:
    """Why a stack is touched, its jobs apart."""
    file = compared.files[0]
    if compared.before is None and file in changed.names:
        yield Reason("new, or not readable as it was", file)
    elif compared.words:
        differ = [name for name in compared.files if name in changed.names]
        yield Reason(f"settings: {compared.words}", next(iter(differ), file))
    settings = compared.reading.partial
    if settings is None:
        return
    place = changed.root / folder
    if settings.policies and (name := changed.file(place / settings.policies)):
        yield Reason("configuration of the policies", name)
    for asset in settings.data:
        if asset.local:
            yield from (Reason(f"data asset `{asset.name}`", name) for name, _ in changed.under(place / asset.path))
    for environment in settings.environments:
        conda = getattr(environment, "conda", None)
        if conda and (name := changed.file(place / conda)):
            yield Reason(f"conda file of the environment `{settings_of.name_of(environment)}`", name)
    for name in sorted(changed.names):
        inside = PurePosixPath(name).relative_to(folder).parts if _is_in(name, folder) else ()
        if inside and inside[0] in PROGRAM:
            yield Reason("the stack's program", name)


def _is_in(name: str, folder: str) -> bool:
    return PurePosixPath(name).is_relative_to(folder) if folder else True


def _removed(file: str, compared: ChangedSettings, place: Path, changed: Paths) -> TouchedJob:
    path = place / file
    what = "no longer listed" if path.is_file() else "deleted, and no longer listed"
    name = changed.file(path) or compared.files[0]
    return TouchedJob(_shown(path), [compared.stack], [Reason(what, name)])


def _together(removed: Iterable[TouchedJob]) -> list[TouchedJob]:
    found: dict[str, TouchedJob] = {}
    for job in removed:
        known = found.setdefault(job.file, TouchedJob(job.file))
        known.stacks += job.stacks
        known.reasons = list(dict.fromkeys((*known.reasons, *job.reasons)))
    return list(found.values())


def _declaring(changed: Paths, listed: set[Path]) -> Iterator[Path]:
    """Changed files that are job files by what they hold, and that no stack lists."""
    from amlstack.snapshot.job_files import files_declaring
    from amlstack.snapshot.walk import File, FileState

    for path, name in sorted(changed.absolute.items()):
        if path not in listed and path.suffix in (".py", ".yml", ".yaml") and path.is_file():
            declaring = files_declaring([File(str(path), name, FileState.of(path.stat()))])
            yield from (each.path for each in declaring if _assigns_jobs(each.path) and not _is_component(each.path))


def _assigns_jobs(path: Path) -> bool:
    """Whether a Python file has a `job` or `jobs` of its own; one that only holds the text of a job file has none."""
    import ast

    if path.suffix != ".py":
        return True
    try:
        statements = ast.parse(read_regular(path)).body
    except (OSError, SyntaxError, ValueError):
        return True  # `check` says what is wrong with it
    targets = [
        target
        for each in statements
        if isinstance(each, ast.Assign | ast.AnnAssign)
        for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
    ]
    return any(isinstance(target, ast.Name) and target.id in {"job", "jobs"} for target in targets)


def _is_component(path: Path) -> bool:
    """Whether a file is what a pipeline's step runs, and no job."""
    from amlstack.base.yamltext import read
    from jobs.azureml.readers import is_component

    return path.suffix != ".py" and is_component(read(path).data)


def _stack_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("Pulumi.*.yaml") if path.is_file())


def _gone_stacks(repository: Repository, commit: str, folder: str, place: Path) -> Iterator[str]:
    for path in repository.files_at(commit, folder):
        inside = PurePosixPath(path).relative_to(folder).as_posix() if folder else path
        if _STACK.fullmatch(inside) and not (place / inside).is_file():
            yield inside.removeprefix("Pulumi.").removesuffix(".yaml")


def _shown(path: Path) -> str:
    """A path as a command in the working folder takes it."""
    return os.path.relpath(path.resolve() if path.is_file() else path)
