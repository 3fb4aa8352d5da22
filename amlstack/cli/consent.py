"""Asking before something is lost: on a terminal a question; ``--yes`` answers it beforehand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.base import text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from amlstack.cli.progress import Progress

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before something is lost.")]


def on_a_terminal() -> bool:
    """True where a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def given(question: str) -> bool:
    """A person's answer; no answer (Ctrl-D) is a no.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        return typer.confirm(text.text(question), default=False)
    except typer.Abort as aborted:
        if isinstance(aborted.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return False


def agreed(progress: Progress, home: Path, losses: Iterable[str], *, yes: bool) -> bool:
    """Names what is removed with a home, and asks on a terminal; a script is not asked. Nothing to lose is a yes."""
    lines = tuple(losses)
    if not lines:
        return True
    progress.step(f"with {home} these go:")
    for line in lines:
        progress.note(line)
    if yes or not on_a_terminal() or given("Remove all this?"):
        return True
    progress.note("nothing was removed")
    return False
