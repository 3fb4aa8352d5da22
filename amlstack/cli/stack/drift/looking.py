"""Looks at a stack without changing it or its state: the engine reads each resource and only says what it would note.

Measured with the pinned engine: `pulumi refresh --preview-only` reads all resources through their providers, writes no
state, takes no lock and notices none. So that nothing is called drift which an update is just making, the state is read
before and after the look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack import engine as engines
from amlstack.cli.stack import turns
from amlstack.cli.stack.drift.comparison import Comparison
from amlstack.cli.stack.drift.found import Look

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from amlstack.cli.stack.anywhere.place import StackPlace
    from amlstack.cli.stack.drift.mending import StackMending
    from amlstack.cli.stack.state import State
    from amlstack.engine import Outcome

WORDS = ("refresh", "--preview-only", "--run-program=false", "--non-interactive")


def look(
    place: StackPlace,
    mending: StackMending,
    *,
    on_event: Callable[[Mapping[str, Any]], None] = lambda _: None,
    cwd: Path | None = None,
) -> Look:
    """Look at a stack.

    Args:
        place: Where it lives.
        mending: How its differences are mended.
        on_event: Called with each event of the engine.
        cwd: The folder of Pulumi.yaml; this clone's by default.

    Raises:
        BusyError: Another command changed the state meanwhile.
        EngineError: The state is out of reach.
        EngineInterruptedError: Ctrl-C.
    """
    before = place.state()
    if not before.resources:
        raise engines.EngineError(f"the stack `{place.stack}` has no resources: it was never brought up, or is down")
    found = Look(mending.stack, place.where)
    comparison = Comparison(found, mending)

    def taken(event: Mapping[str, Any]) -> None:
        comparison.take(event)
        on_event(event)

    command = [*WORDS, "--stack", place.stack, *place.options]
    outcome = engines.run(command, place.env, cwd=cwd, on_event=taken, owner=place.owner)
    if busy := turns.engine_is_locked(outcome, place.stack):
        raise turns.BusyError(busy)
    if _recorded(place.state()) != _recorded(before):
        raise turns.BusyError(
            f"another command changed the state of `{place.stack}` while it was looked at; run this again when it ended"
        )
    comparison.done()
    found.errors += _errors(outcome)
    if before.pending:
        number = len(before.pending)
        found.errors.append(
            f"{number} operation{' was' if number == 1 else 's were'} cut off and may go on: `{mending.up}` first"
        )
    return found


def _recorded(state: State) -> tuple[object, ...]:
    return state.resources, state.pending


def _errors(outcome: Outcome) -> list[str]:
    if not outcome.code:
        return []
    together: dict[str, list[str]] = {}
    for severity, urn, text in outcome.diagnostics:
        words = text.removeprefix("Preview failed: ")
        if severity == "error" and words and words != "preview failed":
            together.setdefault(words, []).append(_name(urn))
    reasons = [_in_one_line(words, names) for words, names in sorted(together.items())]
    return reasons or [outcome.output.strip() or f"the engine ended with {outcome.code}"]


def _in_one_line(words: str, names: Sequence[str]) -> str:
    """``Compute a100 (and 3 more): no answer``: one cause that many resources share is one line."""
    first, more = min(names), len(names) - 1
    return f"{first}{f' (and {more} more)' if more else ''}: {words}" if first else words


def _name(urn: str) -> str:
    """The resource of a message; empty for the stack as a whole."""
    from amlstack.cli.progress import name_of

    return "" if not urn or "::pulumi:pulumi:Stack::" in urn else name_of(urn)
