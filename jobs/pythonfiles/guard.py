"""A person's Python file runs in this process, which it shall neither end unseen nor take the input or output of.

This is no isolation: the file runs with all rights of the person who reads it. It is there for what happens by mistake,
a script with ``sys.exit`` or ``os._exit`` at its end that is taken for a job file: a stack whose program ends early
without a word is a stack without resources to the engine. What the file tried becomes findings.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NoReturn

from amlstack.base.findings import Finding, Level, stated
from jobs.pythonfiles.refusals import CREDENTIALS, NETWORK, PROCESS, StoppedError, raise_for, refusing, replaced


@dataclass
class Guarded:
    """The attempts of a file.

    Attributes:
        file: Its name, as its frames bear it.
        folder: Where it and its neighbours lie.
        ends: Calls that would have ended this process (``os._exit``), each with its line in the file, if it has one.
        tried: The code of each refused call, what was tried (`connect to HOST`), and its line.
    """

    file: str
    folder: str
    ends: list[tuple[str, int | None]] = field(default_factory=list)
    tried: list[tuple[str, str, int | None]] = field(default_factory=list)

    def end(self, call: str) -> NoReturn:
        """Note a call that would have ended the process, and leave the file."""
        self.ends.append((call, self._line()))
        raise StoppedError(call)

    def refuse(self, code: str, tried: str) -> NoReturn:
        """Note what was tried, and leave the call."""
        self.tried.append((code, tried, self._line()))
        raise_for(code, tried)

    def ask(self, name: str) -> None:
        """Note that the file, or a neighbour of it, asked for a variable; libraries ask for many, and do without."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no other way to a caller
        while frame is not None and frame.f_globals.get("__name__") in _BETWEEN:
            frame = frame.f_back
        if frame is None:
            return
        asking = frame.f_code.co_filename
        if asking == self.file or (asking.startswith(f"{self.folder}/") and "/site-packages/" not in asking):
            self.tried.append((CREDENTIALS, f"see the variable `{name}`, which may hold a credential", self._line()))

    def _line(self) -> int | None:
        """The line of the file that is being run."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as above
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        return None if frame is None else frame.f_lineno


_BETWEEN = ("os", "_collections_abc", "collections.abc", "jobs.pythonfiles.refusals", __name__)
"""Modules between a file and a variable that it asks for."""


class _NoInput(io.TextIOBase):
    """Standard input of a job file: there is none to read."""

    def readable(self) -> bool:
        return True

    def read(self, _: int | None = -1, /) -> str:
        raise EOFError("a job file gets no input")

    def readline(self, _: int = -1, /) -> str:  # type: ignore[override]
        raise EOFError("a job file gets no input")


TRUSTED: ContextVar[bool] = ContextVar("TRUSTED", default=False)
"""True where the files may do what they like; what they submit by azure-ai-ml is recorded even then."""


def trusting(work: Callable[[], int]) -> Callable[[], int]:
    """The same work with all files trusted."""
    context = copy_context()
    context.run(TRUSTED.set, True)
    return lambda: context.run(work)


@contextlib.contextmanager
def guarded(file: str, folder: str) -> Iterator[Guarded]:
    """Run a file: its folder's modules can be imported, its output goes to standard error, and it gets no input.

    Network, credentials, processes and threads are refused. What it changes of the working folder, of the import path
    and of the environment is undone.

    Args:
        file: Name of the file, as its frames bear it.
        folder: Where its neighbours lie.
    """
    guard = Guarded(file, folder)
    refused = contextlib.nullcontext() if TRUSTED.get() else refusing(guard.refuse, guard.ask)
    path, here, stdin = list(sys.path), os.open(".", os.O_RDONLY), sys.stdin
    # At the end, so that a neighbour of the file can be imported and shadows nothing.
    sys.path.append(folder)
    sys.stdin = _NoInput()
    try:
        with _output_to_errors(), contextlib.redirect_stdout(sys.stderr), replaced(_replacements(guard)), refused:
            yield guard
    finally:
        sys.stdin = stdin
        sys.path[:] = path
        os.fchdir(here)
        os.close(here)


@contextlib.contextmanager
def _output_to_errors() -> Iterator[None]:
    """Output past Python's streams goes to the same place as the file's prints."""
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


def _replacements(guard: Guarded) -> list[tuple[Any, str, Callable[..., Any]]]:
    """The calls that end a process, each with what stands in its place as long as the file runs."""
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

    def noted(module: Any, name: str, ends: Callable[..., bool]) -> Callable[..., Any]:
        original = getattr(module, name)

        def call(*args: Any, **named: Any) -> Any:
            harmless = name in ("kill", "killpg", "raise_signal") and args[-1:] == (0,)  # asks whether it is there
            if not harmless and ends(*args):
                guard.end(f"{module.__name__}.{name}")
            return original(*args, **named)

        return call

    return [(module, name, noted(module, name, ends)) for module, name, ends in calls]


_GRAVEST = (NETWORK, CREDENTIALS, PROCESS)
_BEHIND_MAIN = (
    'Move it behind `if __name__ == "__main__":`, which is not run when the file is read; `python FILE` runs it still.'
)
_BY_NAME = 'A job gets a secret by its name: `environment_variables={"NAME": {"secret": "name"}}`.'


def attempts_of(guard: Guarded, *, failed: bool) -> tuple[Finding, ...]:
    """A finding for each line of a file that tried something, in their order.

    Args:
        guard: After the file has run.
        failed: Whether it was left before its end. Where it was not, it went on without a process: a warning.
    """
    found = [_ends_process(call, line, guard.file) for call, line in guard.ends]
    by_line: dict[int | None, list[tuple[str, str]]] = {}  # one call of a library may try several things
    for code, what, line in guard.tried:
        by_line.setdefault(line, []).append((code, what))
    for line, tried in by_line.items():
        code = min((code for code, _ in tried), key=_GRAVEST.index)
        found.append(
            Finding(
                code,
                "",
                f"While it was read, the file tried to {' and to '.join(dict.fromkeys(what for _, what in tried))}",
                "A job file is read by every check, dry run and preview, without network, credentials and processes",
                f"{_BEHIND_MAIN}{f' {_BY_NAME}' if code == CREDENTIALS else ''}",
                level=Level.ERROR if failed or code != PROCESS else Level.WARNING,
                file=guard.file,
                line=line,
            )
        )
    return tuple(sorted(dict.fromkeys(found), key=lambda finding: finding.line or 0))


def _ends_process(call: str, line: int | None, file: str) -> Finding:
    return stated("python-ends-process", "", call=call).changed(file=file, line=line)
