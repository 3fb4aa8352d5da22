"""``amlstack drift``: finds the stack without making one, looks, and prints what was found."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from amlstack import engine as engines
from amlstack.base import home as homes
from amlstack.cli.console import print_json, say
from amlstack.cli.jobfiles.formats import Format
from amlstack.cli.progress import Progress
from amlstack.cli.stack import state as states
from amlstack.cli.stack import turns
from amlstack.cli.stack.anywhere import place as places
from amlstack.cli.stack.anywhere.judged import JudgedStack, NoStackError, settings_file
from amlstack.cli.stack.anywhere.sandboxed import SandboxedStack
from amlstack.cli.stack.drift import looking, markdown, text
from amlstack.cli.stack.drift.mending import StackMending
from amlstack.engine import STACK

if TYPE_CHECKING:
    from amlstack.cli.stack.anywhere.place import StackPlace
    from amlstack.cli.stack.drift.found import Look

UNKNOWN: Final = 2
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class AskedDrift:
    """What a person asked for.

    Attributes:
        stack: Name of the stack; organization and project may stand before it.
        sandbox: Whether it is the one on this machine's sandbox.
        form: TEXT, JSON or GITHUB.
        everything: Whether what changes by itself is listed.
    """

    stack: str
    sandbox: bool
    form: Format
    everything: bool = False

    @property
    def up(self) -> str:
        """`amlstack up` of the same stack."""
        if self.stack == STACK:
            return "amlstack up"
        return f"amlstack up --stack {self.stack}{' --sandbox' if self.sandbox else ''}"


def run(asked: AskedDrift) -> int:
    """Looks and prints.

    Returns:
        0 for no drift, 1 for drift, 2 where it could not be looked for, 130 after Ctrl-C.
    """
    try:
        # What is printed for a program is what was found and nothing else.
        with contextlib.nullcontext() if asked.form is Format.TEXT else contextlib.redirect_stdout(sys.stderr):
            found = _looked(asked, Progress())
    except (
        NoStackError,
        turns.BusyError,
        engines.EngineError,
        homes.ForeignHomeError,
        _sandbox_error(),
    ) as error:
        if asked.form is Format.JSON:
            print_json({"stack": asked.stack, "drift": None, "errors": [str(error)], "exit_status": UNKNOWN})
        say(f"could not look: {error}", err=True)
        return UNKNOWN
    except KeyboardInterrupt:
        say("interrupted; nothing was changed", err=True)
        return INTERRUPTED
    if asked.form is Format.JSON:
        print_json(found.as_dict())
    elif asked.form is Format.GITHUB:
        say(markdown.body(found), nl=False)
    else:
        say("\n".join(text.lines(found, everything=asked.everything)))
    return found.exit_status


def _looked(asked: AskedDrift, progress: Progress) -> Look:
    from infra.settings import read_file

    path = settings_file(asked.stack)
    reading = read_file(path)
    if reading.file is None:
        raise NoStackError("; ".join(map(str, reading.findings)))
    name = asked.stack.rpartition("/")[2]
    judged = JudgedStack(name, path, reading.file, reading.partial, reading.findings)
    if asked.sandbox:
        _require_state(name)
    with turns.alone(places.turn_of(asked.stack, sandbox=asked.sandbox), asked.stack, "amlstack drift"):
        progress.step("Pulumi engine")
        engine = engines.find()
        place = _place(asked, judged, engine)
        progress.done(f"Pulumi {engine.version}; `{asked.stack}` on {place.where}")
        mending = StackMending(asked.stack, asked.up, reading, path, plain=not asked.sandbox)
        return looking.look(place, mending, on_event=progress.follow("looking"))


def _require_state(name: str) -> None:
    """That the stack is on the sandbox: a look makes none."""
    from amlstack.base import paths

    backend = paths.home() / "pulumi" if name == STACK else SandboxedStack.of(name).backend
    if name not in states.files_in(backend):
        raise engines.EngineError(f"the stack `{name}` is not on this machine's sandbox: it was never brought up there")


def _place(asked: AskedDrift, judged: JudgedStack, engine: engines.Engine) -> StackPlace:
    if not asked.sandbox:
        return places.on_azure(asked.stack, engine)
    from amlstack.sandbox.server import daemon

    return places.on_the_sandbox(judged, engine, daemon.up())


def _sandbox_error() -> type[Exception]:
    from amlstack.sandbox.server import daemon

    return daemon.SandboxError
