"""``amlstack migrate``: from files of SDK v1 to job files, stack settings and patches."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.cli.console import Json, print_json, say

if TYPE_CHECKING:
    from amlstack.migrate.migration import Migration


class JobForm(StrEnum):
    """The form of job files."""

    YAML = "yaml"
    PYTHON = "python"


def migrate(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Programs, notebooks, .runconfig files, or folders of them.", show_default=False),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the new files; unset: NAME-v2 beside the first path.", show_default=False),
    ] = None,
    to: Annotated[JobForm, typer.Option(help="Form of the job files.")] = JobForm.YAML,
    write: Annotated[bool, typer.Option("--write", help="Apply the patches of training code, too.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace new files that were changed since.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the report as a Markdown page.")] = False,
    as_json: Json = False,
) -> int:
    """Migrate what was written for SDK v1: each construct becomes its like in v2, or a person is told what to do.

    It reads programs and runs none. ScriptRunConfig, estimators, HyperDrive and pipelines become job files in YAML,
    clusters that programs make become stack settings, and training code that logs to a run gets a patch for MLflow.
    What reading does not find is a placeholder, which `amlstack check` refuses until somebody fills it in. Files that
    are there already stay as they are, and the same input gives the same files.

    Exit status: 0 when nothing is left to do, 1 when something needs a hand.

    Examples:
        amlstack migrate submit.py

        amlstack migrate training/ --out v2 --to python --markdown > report.md
    """
    from amlstack.migrate import report
    from amlstack.migrate.migration import migrate as migrated

    absent = [path for path in paths if not path.exists()]
    if absent:
        for path in absent:
            say(f"error: {path} is not there.", err=True)
        return 2
    first = paths[0].resolve()
    folder = (out or first.parent / f"{first.stem}-v2").resolve()
    found = migrated([path.resolve() for path in paths], folder)
    if to is JobForm.PYTHON:
        _to_python(found, folder)
    written, kept = _write(found.files, folder, overwrite=overwrite)
    if write:
        from amlstack.base.files import write_whole

        for path, text in found.patches.items():
            write_whole(path, text)
    names = [str(_shown(folder / name)) for name in found.files]
    if as_json:
        print_json({**report.values(found.items, names), "kept": kept, "changed": written})
    elif markdown:
        say(report.markdown(found.items, names), nl=False)
    else:
        for line in report.lines(found.items):
            say(line)
        for name in kept:
            say(f"kept: {_shown(folder / name)} differs from what would be written; --overwrite replaces it")
        said = (
            f"{len(written)} of {len(found.files)} files written to {_shown(folder)}" if written else "no file changed"
        )
        say(f"{found.read} file{'' if found.read == 1 else 's'} of SDK v1: {report.summary(found.items)}; {said}")
    return 1 if report.counted(found.items)["hand"] or kept else 0


def _to_python(found: Migration, folder: Path) -> None:
    """Job files in Python, each with the same body. What Python has no like of stays as it is, and is named."""
    from amlstack.base.findings import errors
    from amlstack.base.yamltext import parse
    from amlstack.migrate.report import noted
    from amlstack.migrate.values import MARK
    from jobs.loading import from_text
    from jobs.python_source import as_python

    files: dict[str, str] = {}
    for name, text in found.files.items():
        loaded = from_text(parse(text, name), folder) if name.endswith(".yml") else None
        named = any(f"./{name}" in other for other in found.files.values())  # by a schedule
        python = ""
        if loaded and loaded.jobs and not named and {each.code for each in errors(loaded.findings)} <= {"to-fill"}:
            head = "".join(each if each.isprintable() else "_" for each in text.partition("\n")[0])
            python = f"{head}\n{as_python(loaded.jobs[0])}"
        if python and {*MARK.findall(text)} <= {*MARK.findall(python)}:
            files[f"{name.removesuffix('.yml')}.py"] = python
        else:
            files[name] = text
            found.items += [noted(name, 0, "yaml")] if loaded else []
    found.files = files


def _write(files: dict[str, str], folder: Path, *, overwrite: bool) -> tuple[list[str], list[str]]:
    """Write what is new; the names of files that were written, and of those that somebody changed."""
    from amlstack.base.files import write_whole

    written, kept = [], []
    for name, text in files.items():
        path = folder / name
        if path.exists() and path.read_bytes() == text.encode():
            continue
        if path.exists() and not overwrite:
            kept.append(name)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
        written.append(name)
    return written, kept


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
