"""Builds a stand-in with uv in the user's cache: once for all who ask, completely or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base import paths
from amlstack.sandbox.runner import process_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amlstack.sandbox.images.standins import StandIn

KEEP = 20
"""Lines of uv's output that an error quotes."""


class ImageBuildError(Exception):
    """uv is missing or could not build the environment; the message says why."""


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
        part = place.parent / f".{standin.key}.part-{os.getpid()}"
        began = time.monotonic()
        status(f"{standin.name}: building {standin.summary} (once; kept in {place.parent})")
        try:
            _make(standin, part, status)
            part.rename(place)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        status(f"{standin.name}: built in {time.monotonic() - began:.0f} s")
    return place


def _make(standin: StandIn, part: Path, status: Callable[[str], None]) -> None:
    _check_programs(standin)
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = sys.executable if standin.python in ("", ours) else standin.python
    # Relocatable: its scripts must work under the final name, which it gets by a rename.
    _uv(standin, ["venv", "--relocatable", "--no-project", "--python", python, str(part)], status)
    if not standin.requirements:
        return
    constraints = part / "constraints.txt"
    constraints.write_text(standin.constraints)
    # Compiled now: else the first ranks would all compile torch at once, in a job that somebody times.
    install = ("pip", "install", "--compile-bytecode", "--python", str(part / "bin/python"))
    words = [*install, "--constraints", str(constraints)]
    _uv(standin, [*words, "--", *standin.requirements], status)
    if standin.compiled is not None:
        _uv(standin, [*words, "--no-build-isolation", "--", *standin.compiled.requirements], status)


def _check_programs(standin: StandIn) -> None:
    """Says before the long part what is missing on this machine."""
    needed = standin.compiled.programs if standin.compiled is not None else ()
    missing = {package: program for program, package in needed if shutil.which(program) is None}
    if missing:
        message = (
            f"The environment {standin.name} is compiled here and needs {', '.join(missing.values())}, which this "
            f"machine has not. Install once: apt-get install {' '.join(missing)}"
        )
        raise ImageBuildError(message)


def _uv(standin: StandIn, words: list[str], status: Callable[[str], None]) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    started = subprocess.Popen(
        [_find_uv(), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environ | {"NO_COLOR": "1"} | dict(standin.compiled.environment if standin.compiled else ()),
        preexec_fn=process_tree.die_with_parent,  # noqa: PLW1509 - nothing between fork and exec but one system call
    )
    lines: list[str] = []
    try:
        assert started.stdout is not None  # noqa: S101 - a pipe was asked for
        for raw in started.stdout:
            line = raw.strip()
            if line:
                lines.append(line)
            if line.startswith(("Downloading", "Resolved", "Prepared", "Installed", "Building", "Bytecode")):
                status(f"{standin.name}: {line}")
        code = started.wait()
    except BaseException:
        started.kill()
        started.wait()
        raise
    finally:
        if started.stdout is not None:
            started.stdout.close()
    if code != 0:
        quoted = "\n".join(lines[-KEEP:])
        message = f"The environment {standin.name} could not be built: uv ended with {code}.\n{quoted}"
        raise ImageBuildError(message)


def _find_uv() -> str:
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if not found:
        message = f"uv is neither at {beside} nor on PATH; `make venv` installs it into the project's environment."
        raise ImageBuildError(message)
    return found


@contextmanager
def _lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
