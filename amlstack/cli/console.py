"""The one place where verbs print: nothing that comes from a job, a log or a service acts on a terminal there.

Findings are lines that an editor can jump to, and programs get JSON. All text goes through `say`, all JSON through
`print_json`, all tables through `tables`; a test holds that no other module of this room prints.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from amlstack.base import text as text_module
from amlstack.base.findings import Level, in_file_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from amlstack.base.findings import Finding

_PRINTED: ContextVar[list[Finding] | None] = ContextVar("printed", default=None)

COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.INFO: "cyan"}


_OURS = secrets.token_hex(8)
"""Marks our own colours in a text until it is printed: nobody else knows it."""
_STYLE = re.compile(rf"(\x1b{_OURS}\[[\d;]*m)")
_REWRITE = "\r\x1b[K"
"""To the beginning of the terminal's line, and empty it."""


def style(text: str, colour: str | None = None, *, bold: bool | None = None, dim: bool | None = None) -> str:
    """A text in a colour of ours, for `say`; what it contains is text all the same."""
    begin, _, end = typer.style("|", fg=colour, bold=bold, dim=dim).partition("|")
    return f"{begin}|{end}".replace("\x1b", f"\x1b{_OURS}").replace("|", text) if begin else text


def say(text: str, *, err: bool = False, nl: bool = True, colours: bool | None = None, commands: bool = False) -> None:
    """Print text: colours of `style` stay, whatever else a terminal or a CI's runner acts on is shown and does nothing.

    Args:
        text: Any number of lines, from the beginning of one on.
        err: To the standard error.
        nl: End the last line.
        colours: Whether to colour; as the stream is, when absent.
        commands: Whether its lines may be workflow commands, which are our own.
    """
    # Every second part is a mark of ours.
    parts = [
        part.replace(_OURS, "") if number % 2 else text_module.text(part)
        for number, part in enumerate(_STYLE.split(text))
    ]
    shown = text_module.without_commands("".join(parts), colons=not commands)
    typer.echo(shown, file=text_module.bare(sys.stderr if err else sys.stdout), nl=nl, color=colours)


def print_json(value: Any) -> None:
    """Print JSON for a program."""
    shown = text_module.json_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))
    typer.echo(shown, file=text_module.bare(sys.stdout))


def rewrite_line() -> None:
    """Begin the terminal's last line anew."""
    text_module.bare(sys.stdout).write(_REWRITE)  # not through typer, which takes it for a colour


def tables(*, soft_wrap: bool = False, highlight: bool = True) -> Console:
    """For what is more than lines, tables and boxes: a console whose cells and texts are shown as `say` shows them."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
            for one in super().render(*args, **kwargs):
                yield one if one.control else Segment(text_module.text(one.text), one.style)

    return Shown(file=text_module.Shield(sys.stdout), soft_wrap=soft_wrap, highlight=highlight)  # type: ignore[arg-type]


@contextlib.contextmanager
def recorded_findings() -> Iterator[list[Finding]]:
    """A list to which every finding is added that is printed meanwhile: for a verb's JSON."""
    found: list[Finding] = []
    token = _PRINTED.set(found)
    try:
        yield found
    finally:
        _PRINTED.reset(token)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell; what a heading row is, the caller styles."""
    rows = [[text_module.line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print findings in the order of their files' lines: the place, then what was seen, the rule and the remedy."""
    findings = tuple(findings)
    if (printed := _PRINTED.get()) is not None:
        printed += findings
    styled = {level: style(str(level), colour, bold=True) for level, colour in COLOURS.items()}
    lines = []
    for finding in in_file_order(findings):
        place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
        parts = (text_module.line(place), styled[finding.level], text_module.line(finding.where))
        head = ": ".join(part for part in parts if part)
        message = finding.message.replace("\n", "\n    ")  # no line of it looks like another finding
        lines.append(f"{head} [{finding.code}]\n    {message}")
    if lines:  # at once: each writing reaches the terminal
        say("\n".join(lines), err=err)


def tally(findings: Sequence[Finding]) -> str:
    """``1 error, 2 warnings``; ``nothing wrong`` for none."""
    counts = [(level, sum(finding.level is level for finding in findings)) for level in Level]
    names = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
    parts = [f"{count} {names[level]}{'' if count == 1 else 's'}" for level, count in counts if count]
    return ", ".join(parts) or "nothing wrong"
