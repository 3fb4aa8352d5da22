"""A code folder together with what a component includes beside it, as one folder, the way azure-ai-ml makes it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import errors
from amlstack.snapshot.folder import scan
from amlstack.snapshot.ignore import Ignore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME: Final = "code_with_additional_includes"
"""The name of such a folder, which is part of where it is uploaded to."""
_COMPILED: Final = "__pycache__"


def zipped(include: Path) -> Path | None:
    """The folder that goes along as a zip file: ``libs`` for ``libs.zip``, when only the folder is there."""
    folder = include.with_suffix("")
    return folder if include.suffix == ".zip" and not include.exists() and folder.is_dir() else None


def staged(folder: Path, includes: Sequence[Path], cache: Path) -> Path:
    """A folder with the code and each include under its own name; made once for each content.

    Ignore files count as azure-ai-ml lets them: the code folder's for everything, an included folder's for itself.

    Args:
        folder: The code.
        includes: Files and folders; a missing ``NAME.zip`` stands for the folder ``NAME``, compressed.
        cache: Where such folders are kept, each under the hash of its content.

    Returns:
        The folder; where one of its parts cannot be read, that part itself, whose scan says why.

    Raises:
        OSError: The cache cannot be written.
    """
    for part in (folder, *(zipped(include) or include for include in includes)):
        if part.is_dir() and errors(scan(part).findings):
            return part
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as made:
        target = Path(made) / NAME
        target.mkdir()
        for source, relative in _files(folder, includes):
            place = target / relative
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)
        for include in includes:
            if (inner := zipped(include)) is not None:
                _compress(inner, target / include.name, Ignore.read(folder.resolve()))
        digest = scan(target, remember=False).hash
        if not digest:
            return folder
        found = cache / digest
        with contextlib.suppress(FileExistsError):
            found.mkdir()
        if not (found / NAME).is_dir():
            with contextlib.suppress(OSError):  # another process has just made the same
                target.rename(found / NAME)
    return found / NAME


def _files(folder: Path, includes: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    ignore = Ignore.read(folder.resolve())
    for file in scan(folder).files:
        if _COMPILED not in file.relative.split("/"):
            yield file.path, file.relative
    for include in includes:
        if include.is_file() and not ignore.excludes(include.resolve().name):
            yield include, include.resolve().name
        elif include.is_dir():
            yield from _kept(include.resolve(), ignore)


def _kept(folder: Path, ignore: Ignore) -> Iterator[tuple[Path, str]]:
    """Files of an included folder that neither its own ignore file nor the code's leaves out, under its name."""
    for file in scan(folder).files:
        relative = f"{folder.name}/{file.relative}"
        if _COMPILED not in relative.split("/") and not ignore.excludes(relative):
            yield file.path, relative


def _compress(folder: Path, place: Path, ignore: Ignore) -> None:
    """A zip file with the folder's own name on top, its files in the order of their paths."""
    with zipfile.ZipFile(place, "w") as archive:
        archive.write(folder, folder.name)
        for path, relative in sorted(_kept(folder.resolve(), ignore), key=lambda each: Path(each[1])):
            archive.write(path, relative)
