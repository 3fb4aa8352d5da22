"""`amlstack check --changed`: its output and its exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.cli.console import print_json, say
from amlstack.cli.jobfiles.changes import git as bases
from amlstack.cli.jobfiles.changes.git import GitError, Repository
from amlstack.cli.jobfiles.changes.survey import survey
from amlstack.cli.jobfiles.formats import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from amlstack.cli.jobfiles.changes.survey import Survey, TouchedJob

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
        found = survey(repository, bases.find(repository, asked), stack=stack, files=files, doing=doing)
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
