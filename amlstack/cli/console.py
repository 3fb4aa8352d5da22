"""How verbs talk: findings as lines that an editor can jump to, JSON for programs."""

from __future__ import annotations

import contextlib
import json
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from amlstack.base.findings import Level, in_file_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amlstack.base.findings import Finding

_PRINTED: ContextVar[list[Finding] | None] = ContextVar("printed", default=None)

COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.INFO: "cyan"}


def print_json(value: Any) -> None:
    """Print JSON for a program."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print findings in the order of their files' lines: the place, then what was seen, the rule and the remedy."""
    findings = tuple(findings)
    if (printed := _PRINTED.get()) is not None:
        printed += findings
    styled = {level: typer.style(str(level), fg=colour, bold=True) for level, colour in COLOURS.items()}
    lines = []
    for finding in in_file_order(findings):
        place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
        head = ": ".join(part for part in (place, styled[finding.level], finding.where) if part)
        lines.append(f"{head} [{finding.code}]\n    {finding.message}")
    if lines:  # at once: each writing reaches the terminal
        typer.echo("\n".join(lines), err=err)


def tally(findings: Sequence[Finding]) -> str:
    """``1 error, 2 warnings``; ``nothing wrong`` for none."""
    counts = [(level, sum(finding.level is level for finding in findings)) for level in Level]
    names = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
    parts = [f"{count} {names[level]}{'' if count == 1 else 's'}" for level, count in counts if count]
    return ", ".join(parts) or "nothing wrong"
