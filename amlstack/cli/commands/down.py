"""``amlstack down``: destroys the sandbox stack and removes what the sandbox wrote, after naming what is lost."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.cli import consent
from amlstack.cli.consent import Yes  # noqa: TC001 - typer reads the annotation
from amlstack.cli.progress import Progress
from amlstack.cli.stack import turns
from amlstack.cli.stack.anywhere.place import turn_of
from amlstack.engine import STACK

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


Stack = Annotated[
    str | None,
    typer.Option("--stack", "-s", metavar="NAME", help="Destroy that stack alone, on Azure. Names what goes first."),
]
Sandbox = Annotated[bool, typer.Option("--sandbox", help="That stack as it is on this machine's sandbox.")]
Foreign = Annotated[
    list[str] | None,
    typer.Option(
        "--delete-foreign",
        metavar="NAME",
        help="With --stack: lets go what the stack does not own in its group and workspace. KIND/NAME or KIND/* too.",
        show_default=False,
    ),
]


def down(*, stack: Stack = None, sandbox: Sandbox = False, yes: Yes = False, delete_foreign: Foreign = None) -> int:
    """Destroy a stack: without `--stack` the sandbox's own, with the sandbox and what it wrote; the caches stay.

    Records of runs and files that jobs left in mounted outputs are counted and named first. On a terminal it asks
    whether they may go, unless there are none; from a script it goes on.

    Returns:
        0 when nothing is left; 1 when the stack could not be destroyed (what the sandbox wrote is removed all the
        same), when the answer was no, or when the folder is none of ours; 3 when another command works on it.
    """
    if stack is not None and stack.rpartition("/")[2] != STACK:
        from amlstack.cli.stack.anywhere import take_down

        return take_down.run(take_down.AskedDown(stack, sandbox, yes, tuple(delete_foreign or ())))
    progress, home = Progress(), paths.home()
    try:
        if not homes.is_used(home):
            if homes.is_ours(home):
                homes.remove(home)
            progress.done("nothing is up")
            return 0
    except homes.ForeignHomeError as error:
        progress.fail(str(error))
        return 1
    if not consent.agreed(progress, home, _losses(home), yes=yes):
        return 1
    try:
        with contextlib.ExitStack() as held:
            for name in (STACK, *_others(home)):  # the sandbox goes, and with it all stacks that it has
                held.enter_context(turns.alone(turn_of(name, sandbox=True), name, "amlstack down"))
            destroyed = _destroy(progress)
            return 0 if _remove(progress, home) and destroyed else 1
    except turns.BusyError as error:
        progress.fail(str(error))
        return turns.BUSY


def _others(home: Path) -> tuple[str, ...]:
    from amlstack.cli.stack.anywhere import sandboxed

    return tuple(name for name in sandboxed.names(home) if name != STACK)


def _losses(home: Path) -> Iterable[str]:
    from amlstack.cli.stack import state
    from amlstack.cli.stack.anywhere import sandboxed
    from amlstack.sandbox.store import holdings

    yield from holdings.gather(home).lines()
    yield from sandboxed.lines(home)
    if others := [name for name in state.files(home) if name != STACK]:
        yield f"the state of {len(others)} more stack{'' if len(others) == 1 else 's'}: {', '.join(others)}"


def _destroy(progress: Progress) -> bool:
    from amlstack import engine as engines
    from amlstack.cli.stack import explain, state
    from amlstack.provider.stacks import foreign
    from amlstack.sandbox.server import daemon

    if engines.STACK not in state.files():
        return True
    try:
        engine = engines.find()
        # With the sandbox everything goes that it holds, and that has been named.
        env = {**engines.environ(engine, daemon.up().environ()), foreign.VARIABLE: "*"}
        engines.clear_stale_lock()
        words = ["destroy", "--yes", "--non-interactive", "--stack", engines.STACK]
        follow = progress.follow("previewing", "destroying")
        outcome = turns.under_the_engines_lock(
            lambda: engines.run(words, env, on_event=follow), engines.STACK, progress.note
        )
    except (engines.EngineError, daemon.SandboxError) as error:
        progress.fail(str(error))
        return False
    if outcome.code:
        explain.failures(progress, outcome)
        progress.note("the stack could not be destroyed; what the sandbox wrote is removed all the same")
    return not outcome.code


def _remove(progress: Progress, home: Path) -> bool:
    from amlstack import engine as engines
    from amlstack.sandbox.server import daemon

    engines.end_leftovers()
    try:
        daemon.down()
        left = homes.remove(home)
    except (daemon.SandboxError, homes.ForeignHomeError, OSError) as error:
        progress.fail(f"not everything could be removed: {error}")
        return False
    progress.done(f"the stack, the sandbox and their files are gone; the caches stay in {paths.cache()}")
    if left:
        progress.note(f"{home} stays with what no sandbox wrote: {', '.join(left)}")
    return True
