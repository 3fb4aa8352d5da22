"""A look at a stack as the body of an issue, the same text for the same drift.

Nothing in it is a time, or of what goes on by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.cli.stack.drift.found import DELETED
from amlstack.cli.stack.drift.text import counted, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.cli.stack.drift.found import Look, ResourceDrift

LARGEST: Final = 60_000
"""Characters: GitHub takes 65,536 of an issue."""


def title(stack: str) -> str:
    """The title of the stack's issue, by which it is found again: the same whatever differs."""
    return f"Drift of the stack {stack}"


def body(look: Look) -> str:
    """The text."""
    text = ""
    parts = list(_parts(look))
    for number, part in enumerate(parts):
        if len(text) + len(part) > LARGEST:
            return f"{text}\n{len(parts) - number} more parts: `amlstack drift --stack {look.stack}`\n"
        text += part + "\n"
    return text


def _parts(look: Look) -> Iterator[str]:
    if look.resources:
        yield f"{counted(look)} since the stack {code(look.stack)} was deployed.\n"
    else:
        yield f"The stack {code(look.stack)} is as it was deployed.\n"
    for resource in look.resources:
        yield "\n".join(_of_resource(resource))
    if look.resources:
        yield f"Put everything back:\n\n```sh\n{look.resources[0].put_back}\n```\n"
    if gone := [run for run in look.runs if run.gone]:
        yield "Records of runs that are gone. `up` neither runs them again nor forgets them:\n"
        yield "\n".join(f"- {code(run.job)}: {code(run.run)}" for run in gone) + "\n"
    if look.errors:
        yield "Not everything could be looked at:\n"
        yield "\n".join(f"- {code(error)}" for error in look.errors) + "\n"


def _of_resource(resource: ResourceDrift) -> Iterator[str]:
    gone = resource.what == DELETED
    yield f"### {code(resource.name)} {'is gone' if gone else 'was changed'}\n"
    yield f"{code(resource.id)}\n"
    if gone:
        if resource.adopt is not None:
            yield f"Adopt: {resource.adopt.words}.\n"
    else:
        yield "| property | declared | there | adopt |"
        yield "| --- | --- | --- | --- |"
        for each in resource.properties:
            how = code(each.adopt.command) if each.adopt.command else each.adopt.words.replace("|", "\\|")
            yield f"| {code(each.path)} | {code(shown(each.declared))} | {code(shown(each.there))} | {how} |"
        yield ""
    if resource.put_back_alone:
        yield f"Put back alone:\n\n```sh\n{resource.put_back_alone}\n```\n"


def code(text: str) -> str:
    """A text as code within a line or a cell of a table, whatever signs it has."""
    line = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in _runs_of_ticks(line)), default=0)
    marks = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{pad}{line}{pad}{marks}"


def _runs_of_ticks(text: str) -> Iterator[str]:
    import re

    yield from re.findall("`+", text)
