"""Drift of a stack as values, as lines for a person, and as the body of an issue.

The body of an issue is the same text for the same drift: nothing in it is a time, or changes by itself.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from amlstack.cli.console import name_of

CHANGED: Final = "changed"
DELETED: Final = "deleted"


@dataclass(frozen=True, slots=True)
class Declaring:
    """The way in which a difference becomes a part of the declaration.

    Attributes:
        words: For people.
        setting: The setting that decides the property; empty where none does.
        value: What to write there; None where it is for a person to say, or nothing is to be written.
        file: Where it is written: the file, and its line where that is known.
        command: The command that writes it; empty where an editor has to, or plain `pulumi` does not reach the stack.
    """

    words: str
    setting: str = ""
    value: Any = None
    file: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class PropertyDrift:
    """One property.

    Attributes:
        path: In the engine's grammar.
        declared: As the stack deployed it last; None for nothing.
        there: As Azure has it; None for nothing.
        adopt: How it becomes declared.
    """

    path: str
    declared: Any
    there: Any
    adopt: Declaring


@dataclass(frozen=True, slots=True)
class ResourceDrift:
    """One resource that differs from its declaration.

    Attributes:
        urn, type, name, id: As the engine and Azure name it.
        what: CHANGED or DELETED.
        properties: What differs; nothing of one that is deleted.
        adopt: How its absence becomes declared; None of one that is changed.
        put_back: The command after which it is as declared, and everything else too.
        put_back_alone: The same for this resource alone; empty where plain `pulumi` cannot be called as it is.
    """

    urn: str
    type: str
    name: str
    id: str
    what: str
    properties: tuple[PropertyDrift, ...] = ()
    adopt: Declaring | None = None
    put_back: str = ""
    put_back_alone: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A property that changed by itself.

    Attributes:
        urn, path, was, there: Which, and its values.
        who: What changed it.
        source: From where that is known.
    """

    urn: str
    path: str
    was: Any
    there: Any
    who: str
    source: str


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run of the stack. It is no drift, whatever became of it: `up` neither runs it again nor forgets it.

    Attributes:
        job, run: Name of the job, id of the run.
        recorded, status: As the stack recorded it last, and now; None of a record that is gone.
        gone: Whether its record is gone from the workspace.
    """

    job: str
    run: str
    recorded: str | None
    status: str | None
    gone: bool

    @property
    def words(self) -> str:
        """The outcome in words."""
        if self.gone:
            return f"its record is gone from the workspace (last seen {self.recorded})"
        return str(self.status) if self.status == self.recorded else f"{self.status} (recorded: {self.recorded})"


@dataclass(slots=True)
class Look:
    """The findings of one look for drift.

    Attributes:
        stack: The stack's name, as it was asked for.
        where: Where it lives, for people.
        looked_at: How many resources were asked for.
        resources: Resources that differ from their declaration.
        left_out: What changed by itself.
        runs: All runs of the stack.
        errors: Why something could not be looked at.
    """

    stack: str
    where: str
    looked_at: int = 0
    resources: list[ResourceDrift] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    runs: list[SeenRun] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """0 for no drift, 1 for drift, 2 where it could not be checked."""
        return 1 if self.resources else 2 if self.errors else 0

    def as_dict(self) -> Mapping[str, Any]:
        """Plain data for a program."""
        return {**asdict(self), "drift": bool(self.resources), "exit_status": self.exit_status}


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
    """The findings in one line."""
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
            yield f"    {each.path}: declared {shown(each.declared)}, there {shown(each.there)}"
            yield f"        adopt: {each.adopt.words}"
            if each.adopt.command:
                yield f"               {each.adopt.command}"
    if resource.put_back_alone:
        yield f"    put back alone: {resource.put_back_alone}"


def _of_runs(look: Look, *, everything: bool) -> Iterator[str]:
    if look.runs:
        yield f"runs are no drift; `up` neither runs one again nor forgets it ({len(look.runs)} of the stack)"
    for run in look.runs:
        if everything or run.gone or run.status != run.recorded:
            yield f"    {run.job}, {run.run}: {run.words}"


def _left_out(look: Look, *, everything: bool) -> Iterator[str]:
    if not look.left_out:
        return
    number = len(look.left_out)
    what = "property changed by itself and is" if number == 1 else "properties changed by themselves and are"
    yield f"{number} {what} left out{'' if everything else ' (`--all` lists them)'}"
    if everything:
        for each in look.left_out:
            was, there = shown(each.was), shown(each.there)
            yield f"    {name_of(each.urn)}, {each.path}: {was} → {there}; by {each.who} [{each.source}]"


LARGEST: Final = 60_000
"""Characters: GitHub takes 65,536 of an issue."""


def issue_title(stack: str) -> str:
    """The title of the stack's issue, by which it is found again: the same whatever differs."""
    return f"Drift of the stack {stack}"


def issue_body(look: Look) -> str:
    """The text."""
    text = ""
    parts = list(_sections(look))
    for number, part in enumerate(parts):
        if len(text) + len(part) > LARGEST:
            return f"{text}\n{len(parts) - number} more parts: `amlstack drift --stack {look.stack}`\n"
        text += part + "\n"
    return text


def _sections(look: Look) -> Iterator[str]:
    if look.resources:
        yield f"{counted(look)} since the stack {code(look.stack)} was deployed.\n"
    else:
        yield f"The stack {code(look.stack)} is as it was deployed.\n"
    for resource in look.resources:
        yield "\n".join(_section(resource))
    if look.resources:
        yield f"Put everything back:\n\n```sh\n{look.resources[0].put_back}\n```\n"
    if gone := [run for run in look.runs if run.gone]:
        yield "Records of runs that are gone. `up` neither runs them again nor forgets them:\n"
        yield "\n".join(f"- {code(run.job)}: {code(run.run)}" for run in gone) + "\n"
    if look.errors:
        yield "Not everything could be looked at:\n"
        yield "\n".join(f"- {code(error)}" for error in look.errors) + "\n"


def _section(resource: ResourceDrift) -> Iterator[str]:
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
    longest = max(map(len, re.findall("`+", line)), default=0)
    marks = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{pad}{line}{pad}{marks}"
