"""Builds a stand-in with uv in the user's cache: once for all who ask, completely or not at all."""

from __future__ import annotations

import fcntl
import re
import shutil
import time
from contextlib import contextmanager
from os import getpid, link
from typing import TYPE_CHECKING

from amlstack.base import paths
from amlstack.sandbox.images import installing, interpreters, record
from amlstack.sandbox.images.uv import ImageBuildError, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amlstack.sandbox.images.standins import StandIn

__all__ = ["ImageBuildError", "build", "check_programs", "folder", "ready"]


def folder(standin: StandIn) -> Path:
    """Where it lies when it is built: ``<cache>/images/<name>-<hash>``."""
    return paths.cache() / "images" / standin.key


def ready(standin: StandIn) -> Path | None:
    """Its folder (``bin/python`` and the rest of a virtual environment), or None before it is built."""
    place = folder(standin)
    return place if place.is_dir() else None


def build(standin: StandIn, status: Callable[[str], None] = lambda _line: None) -> Path:
    """The environment's folder, built now if it is not there yet.

    Safe against two at once (the second waits for the first) and against being interrupted at any point: a half-built
    one lies under another name and is removed by the next build.

    Args:
        standin: What to build.
        status: Is called with one line whenever something moved.

    Raises:
        ImageBuildError: It could not be built.
    """
    place = folder(standin)
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with _lock(place.parent / f".{standin.key}.lock", lambda: status(f"{standin.name}: another build is under way")):
        if place.is_dir():
            return place
        for leftover in place.parent.glob(f".{standin.key}.part-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        part = place.parent / f".{standin.key}.part-{getpid()}"
        began = time.monotonic()
        size = f"; it downloads up to {standin.download_mb} MB" if standin.download_mb else ""
        status(f"{standin.name}: building {standin.summary} (once; kept in {place.parent}){size}")
        try:
            _make(standin, part, status)
            part.rename(place)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        status(f"{standin.name}: built in {time.monotonic() - began:.0f} s")
    return place


def _make(standin: StandIn, part: Path, status: Callable[[str], None]) -> None:
    check_programs(standin)
    if standin.base is None:
        python = _virtual_environment(standin, part, status)
    else:
        # A base is built once for all that start from it, and goes on as links: nothing is compiled twice.
        copy(build(standin.base, status), part)
        python = str(record.read(part).get("python") or _version(part))
    changed, absent = installing.install(standin, part, python, status)
    variables = [pair for layer in standin.layers for pair in layer.variables]
    record.write(part, python, changed, absent, variables)


def copy(place: Path, to: Path) -> None:
    """Another environment with the same content, which may be changed: files are links until something replaces them.

    uv and pip write new files in the place of old ones; what is written in place is copied.
    """
    shutil.copytree(place, to, symlinks=True, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    if source.endswith((".cfg", ".json", ".txt", ".pth")):
        shutil.copy2(source, target, follow_symlinks=False)
        return
    try:
        link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target, follow_symlinks=False)


def _virtual_environment(standin: StandIn, part: Path, status: Callable[[str], None]) -> str:
    """Makes it empty; returns its Python's version, ``3.11``."""
    # Relocatable: its scripts must work under the final name, which it gets by a rename.
    words = ["venv", "--relocatable", "--no-project", "--python"]
    found = interpreters.find(standin.python)
    try:
        run(standin, [*words, found or interpreters.wanted(standin.python), str(part)], status)
    except ImageBuildError:
        if found is not None or not standin.flexible:
            raise
        nearest = interpreters.nearest(standin.python)
        status(f"{standin.name}: no Python {standin.python} on this machine, and uv could not bring it")
        run(standin, [*words, nearest, str(part)], status)
    return _version(part)


def _version(place: Path) -> str:
    return ".".join(re.findall(r"(?m)^version_info\s*=\s*(\d+)\.(\d+)", (place / "pyvenv.cfg").read_text())[0])


def check_programs(standin: StandIn) -> None:
    """Says before the long part what is missing on this machine.

    Raises:
        ImageBuildError: A program for what is compiled here.
    """
    for layer in standin.layers:
        _check_layer(layer)


def _check_layer(standin: StandIn) -> None:
    needed = standin.compiled.programs if standin.compiled is not None else ()
    missing = {package: program for program, package in needed if shutil.which(program) is None}
    if missing:
        message = (
            f"The environment {standin.name} is compiled here and needs {', '.join(missing.values())}, which this "
            f"machine has not. Install once: apt-get install {' '.join(missing)}"
        )
        raise ImageBuildError(message)


@contextmanager
def _lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
