"""Runs a person's Python file in this process, which it shall neither end unseen nor take the input or output of.

This is no isolation: the file runs with all rights of the person who reads it. It is there for what happens by mistake,
a script with ``sys.exit`` or ``os._exit`` at its end that is taken for a job file: a stack whose program ends early
without a word is a stack without resources to the engine.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ProcessEndError(BaseException):
    """The file wanted to end the process. No file can mean to catch it: it is no `Exception`."""


@dataclass
class Guarded:
    """What a file tried.

    Attributes:
        file: Its name, as its frames bear it.
        ends: Calls that would have ended this process (``os._exit``), each with its line in the file, if it has one.
    """

    file: str
    ends: list[tuple[str, int | None]] = field(default_factory=list)

    def refuse(self, call: str) -> NoReturn:
        """Note a call that would have ended the process, and leave the file."""
        frames = [frame for frame in traceback.extract_stack() if frame.filename == self.file]
        self.ends.append((call, frames[-1].lineno if frames else None))
        raise ProcessEndError(call)


class _NoInput(io.TextIOBase):
    """Standard input of a job file: there is none to read."""

    def readable(self) -> bool:
        return True

    def read(self, _: int | None = -1, /) -> str:
        raise EOFError("a job file gets no input")

    def readline(self, _: int = -1, /) -> str:  # type: ignore[override]
        raise EOFError("a job file gets no input")


@contextlib.contextmanager
def guarded(file: str, folder: str) -> Iterator[Guarded]:
    """Run a file: its folder's modules can be imported, its output goes to standard error, and it gets no input.

    What it changes of the working folder and of the import path is undone.

    Args:
        file: Name of the file, as its frames bear it.
        folder: Where its neighbours lie.
    """
    guard = Guarded(file)
    path, here, stdin = list(sys.path), os.open(".", os.O_RDONLY), sys.stdin
    # At the end, so that a neighbour of the file can be imported and shadows nothing.
    sys.path.append(folder)
    sys.stdin = _NoInput()
    try:
        with _output_to_errors(), contextlib.redirect_stdout(sys.stderr), _patched(guard):
            yield guard
    finally:
        sys.stdin = stdin
        sys.path[:] = path
        os.fchdir(here)
        os.close(here)


@contextlib.contextmanager
def _output_to_errors() -> Iterator[None]:
    """What processes that the file starts print goes where its own prints go."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    try:
        saved = os.dup(1)
    except OSError:  # closed: nothing can be printed there
        yield
        return
    try:
        with contextlib.suppress(OSError):
            os.dup2(2, 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


@contextlib.contextmanager
def _patched(guard: Guarded) -> Iterator[None]:
    """The calls that end a process, replaced as long as the file runs; a child that it forks ends as it wants."""
    this = os.getpid()

    def always(*_: Any) -> bool:
        return True

    def of_this(process: Any = 0, *_: Any) -> bool:
        return process in (this, 0, -1, -os.getpgrp())

    def of_this_group(group: Any = 0, *_: Any) -> bool:
        return group in (0, os.getpgrp())

    calls: tuple[tuple[Any, str, Callable[..., bool]], ...] = (
        *((os, name, always) for name in ("_exit", "abort", "execv", "execve")),
        (os, "kill", of_this),
        (os, "killpg", of_this_group),
        (signal, "raise_signal", always),
    )
    originals = [(module, name, getattr(module, name)) for module, name, _ in calls]

    def replaced(module: Any, name: str, original: Any, ends: Callable[..., bool]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            harmless = name in ("kill", "killpg", "raise_signal") and args[-1:] == (0,)  # asks whether it is there
            if os.getpid() == this and not harmless and ends(*args):
                guard.refuse(f"{module.__name__}.{name}")
            return original(*args, **named)

        return call

    for (module, name, ends), (_, _, original) in zip(calls, originals, strict=True):
        setattr(module, name, replaced(module, name, original, ends))
    try:
        yield
    finally:
        for module, name, original in originals:
            setattr(module, name, original)
