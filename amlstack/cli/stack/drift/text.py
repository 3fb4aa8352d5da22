"""A look at a stack as lines for a person."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from amlstack.cli.progress import name_of
from amlstack.cli.stack.drift.found import DELETED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.cli.stack.drift.found import Look, PropertyDrift, ResourceDrift

MOST: Final = 120
"""Characters of a value."""


def lines(look: Look, *, everything: bool) -> Iterator[str]:
    """All lines.

    Args:
        look: What was found.
        everything: Whether what changed by itself and all runs are listed.
    """
    yield headline(look)
    for resource in look.resources:
        yield from _of_resource(resource)
    yield from _of_runs(look, everything=everything)
    yield from _left_out(look, everything=everything)
    if look.resources:
        yield f"put everything back: {look.resources[0].put_back}"
    yield from (f"could not be looked at: {error}" for error in look.errors)


def headline(look: Look) -> str:
    """What was found, in one line."""
    of = f"{look.looked_at} resource{'' if look.looked_at == 1 else 's'} of `{look.stack}` on {look.where}"
    if not look.looked_at:
        return f"nothing of `{look.stack}` on {look.where} could be looked at"
    if not look.resources:
        return f"no drift found, but not everything could be looked at: {of}" if look.errors else f"no drift: {of}"
    return f"drift: {counted(look)} of {of}"


def counted(look: Look) -> str:
    """``2 changed, 1 deleted``."""
    counts = Counter(resource.what for resource in look.resources)
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))


def shown(value: Any) -> str:
    """A value in one line; nothing there is ``-``."""
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(text.split())
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def _of_resource(resource: ResourceDrift) -> Iterator[str]:
    if resource.what == DELETED:
        yield f"{resource.name} is gone ({resource.id})"
        if resource.adopt is not None:
            yield f"    adopt: {resource.adopt.words}"
    else:
        yield f"{resource.name} was changed"
        for each in resource.properties:
            yield from _of_property(each)
    if resource.put_back_alone:
        yield f"    put back alone: {resource.put_back_alone}"


def _of_property(each: PropertyDrift) -> Iterator[str]:
    yield f"    {each.path}: declared {shown(each.declared)}, there {shown(each.there)}"
    yield f"        adopt: {each.adopt.words}"
    if each.adopt.command:
        yield f"               {each.adopt.command}"


def _of_runs(look: Look, *, everything: bool) -> Iterator[str]:
    shown = [run for run in look.runs if everything or run.gone or run.status != run.recorded]
    if look.runs:
        number = len(look.runs)
        yield f"runs are no drift; `up` neither runs one again nor forgets it ({number} of the stack)"
        yield from (f"    {run.job}, {run.run}: {run.words}" for run in shown)


def _left_out(look: Look, *, everything: bool) -> Iterator[str]:
    if not look.left_out:
        return
    number = len(look.left_out)
    plural = "y" if number == 1 else "ies"
    yield (
        f"{number} propert{plural} changed by itself and is left out"
        if number == 1
        else (f"{number} properties changed by themselves and are left out")
        + ("" if everything else " (`--all` lists them)")
    )
    if everything:
        for each in look.left_out:
            was, there = shown(each.was), shown(each.there)
            yield f"    {name_of(each.urn)}, {each.path}: {was} → {there}; by {each.who} [{each.source}]"
