"""What a person names to have it judged or reported: a job of the sandbox, or files of logs."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base import paths
from amlstack.sandbox.runner.files import origins
from amlstack.sandbox.store.job_names import UnknownJobError
from amlstack.sandbox.store.store import Store, folder, job_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amlstack.cli.workspace.options import AskedWorkspace
    from amlstack.diagnose import Diagnosis
    from amlstack.sandbox.store.store import JobRow


@contextlib.contextmanager
def job(subject: str) -> Iterator[tuple[Store, JobRow] | None]:
    """The run of exactly this name; where no such path exists also that of the job of this name; None for a path.

    Raises:
        UnknownJobError: It reads like a name, and no job is meant, or several may be.
        StateError: The sandbox's tables cannot be read.
    """
    if not _has_sandbox():
        yield None
        return
    with contextlib.closing(Store(paths.home())) as store:
        found = _job(store, subject)
        yield None if found is None else (store, found)


def _job(store: Store, subject: str) -> JobRow | None:
    from amlstack.report.gathering import job as of_job

    if (named := store.jobs.get(subject)) is not None:
        return named
    if Path(subject).exists():
        return None
    try:
        return of_job.find(store, subject)
    except UnknownJobError:
        if Path(subject).suffix or subject.rstrip("/").count("/") > 1 or subject.endswith("/"):
            return None  # a misspelt path: its reader names what lies beside it
        raise


def may_be_elsewhere(asked: AskedWorkspace, subject: str) -> bool:
    """Whether a subject that is no path and no job of this home's sandbox is looked for in a workspace.

    What names the workspace wrongly ends the verb.
    """
    from amlstack.cli.workspace import job_folder, refusals

    with refusals.answered():
        return job_folder.is_meant(asked, subject)


def with_authors_files(verdict: Diagnosis, folders: Iterable[Path]) -> Diagnosis:
    """A verdict on jobs' folders that names the author's files, where it is known where they lie, and no copies."""
    named = authors_files(folders)
    if verdict.source is not None:
        verdict = replace(verdict, source=replace(verdict.source, file=named(verdict.source.file)))
    return verdict if verdict.text is None else replace(verdict, text=named(verdict.text))


def authors_files(folders: Iterable[Path]) -> Callable[[str], str]:
    """From a text with paths of copies, in any of these jobs' folders, to the same with those of the author's files."""
    jobs = folder(paths.home()).resolve() / "jobs"
    keys = [one.resolve().name for one in folders if one.resolve().parent == jobs]
    copies: list[origins.CodeCopies] = []
    if keys and _has_sandbox():
        with contextlib.closing(Store(paths.home())) as store:
            copies = [origins.of(store, row) for key in keys if (row := store.jobs.get(key)) is not None]

    def named(text: str) -> str:
        for each in copies:
            text = each.authors(text)
        return text

    return named


def folder_of(row: JobRow) -> Path:
    """The folder of a job, as seen from here where that is shorter."""
    path = job_folder(paths.home(), row.id)
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _has_sandbox() -> bool:
    return (folder(paths.home()) / "state.db").exists()
