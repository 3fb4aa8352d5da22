"""Folders and files of this machine that a job names."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.base.near_misses import did_you_mean
from amlstack.base.paths import exists, is_dir, is_file, names_in
from jobs.model.values import Environment, Input

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from jobs.model.job import Job
    from jobs.model.values import Scalar


def _include(name: str, path: Path, folder: Path) -> Iterator[Finding]:
    """One file or folder that goes along with the code."""
    where = "additional_includes"
    if not exists(path) and not (path.suffix == ".zip" and is_dir(path.with_suffix(""))):
        yield _missing("include-missing", where, name, path, "What is included is copied beside the code")
    inside = folder / path.resolve().name
    if exists(inside) and inside.resolve() != path.resolve():
        rule = "What is included stands in the code folder under its own name"
        yield Finding("include-twice", where, f"The code has `{inside.name}` already", rule, f"Rename `{name}`.")


def files(job: Job, base: Path) -> Iterator[Finding]:
    """Folders and files that the job names on this machine."""
    if job.code is not None and job.code.local:
        code = job.code.path
        if not exists(_joined(base, code)):
            yield _missing("code-missing", "code", code, base / code, "The code folder is copied to every node")
        for name in job.code.includes:
            yield from _include(name, base / name, base / code)
        for field, name in job.launcher.code_files():
            if is_dir(base / code) and not is_file(base / code / name):
                rule = "The launcher's file lies in the code folder"
                yield _missing("launcher-file-missing", field, name, base / code / name, rule)
    match job.environment:
        case Environment(build=build) if build is not None and "://" not in build.path:
            if not is_dir(base / build.path):
                yield _missing(
                    "build-missing",
                    "environment.build.path",
                    build.path,
                    base / build.path,
                    "A build context is a folder with a Dockerfile",
                )
        case Environment(conda_file=str() as conda) if not is_file(_joined(base, conda)):
            yield _missing(
                "conda-missing",
                "environment.conda_file",
                conda,
                base / conda,
                "A conda file is read when the job is planned",
            )
        case _:
            pass
    yield from missing_inputs(job.inputs, base, typed=job.typed)


def _joined(base: Path, name: str) -> str:
    """The path as text: thousands of jobs ask, and a path of its own takes as long as the question."""
    return os.path.join(base, name)  # noqa: PTH118


def missing_inputs(
    inputs: Mapping[str, Input | Scalar], base: Path, where: str = "inputs", *, typed: bool = False
) -> Iterator[Finding]:
    """Local data that is not there; a warning where another program may make it before azure-ai-ml uploads it."""
    for name, value in inputs.items():
        if isinstance(value, Input) and value.path and local_path(value.path):
            path = base / value.path.removeprefix("file:")
            if not exists(path):
                rule = "Local data is uploaded when the job is submitted, and read in place by a rehearsal"
                found = _missing("input-path-missing", f"{where}.{name}.path", value.path, path, rule)
                yield found if typed else replace(found, level=Level.WARNING)


def local_path(path: str) -> bool:
    """Whether an input's path lies on this machine."""
    if path.startswith("file:") or os.path.isabs(path):  # noqa: PTH117 - a string of the declaration, not a path yet
        return True
    return ":" not in path and "@" not in path and "${{" not in path


def _missing(code: str, where: str, written: str, path: Path, rule: str) -> Finding:
    parent = path.parent
    names = names_in(parent)
    remedy = did_you_mean(path.name, names, otherwise=f"Create {path}.") if names else f"Create {path}."
    return Finding(code, where, f"`{written}` is not there", rule, remedy)
