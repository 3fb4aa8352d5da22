"""A verdict in words, for a terminal."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.diagnose.diagnosis import Diagnosis, Victim

WIDTH = 110


def headline(verdict: Diagnosis) -> str:
    """The verdict in one line."""
    if not verdict.found:
        where = f"; look at rank {verdict.rank}" if verdict.rank is not None else ""
        return f"not in these logs: {verdict.reason}{where}" if verdict.fatal else f"no failure: {verdict.reason}"
    who = "" if verdict.rank is None else f"rank {verdict.rank}"
    at = "" if verdict.node is None else (f" on node {verdict.node}" if who else f"node {verdict.node}")
    return f"{verdict.cause}: " + (f"{who}{at}: " if who or at else "") + verdict.means


def report(verdict: Diagnosis) -> str:
    """The verdict, its evidence, the victims and what to do."""
    lines = [headline(verdict)]
    if verdict.text is not None:
        lines += ["", f"  {verdict.file}:{verdict.line}", _indented(verdict.text)]
    if verdict.source is not None:
        lines.append(f"    at {verdict.source}")
    for event in verdict.events[1:]:
        lines += [f"  {event.file}:{event.line}", _indented(event.text)]
    for pointer in verdict.pointers[:4]:
        if pointer.file:
            who = "" if pointer.rank is None else f"rank {pointer.rank}, "
            lines += [f"  also: {who}{pointer.file}:{pointer.line} ({pointer.code})", _indented(pointer.text)]
    if verdict.victims:
        lines += ["", _wrapped(f"victims, not causes: {_victims(verdict.victims)}")]
    for note in verdict.notes:
        if note.code != verdict.cause:
            lines += ["", _wrapped(f"besides ({note.code}): {note.text} [{note.file}:{note.line}]")]
    lines += ["", _wrapped(f"do: {verdict.advice}")]
    lines.append(_wrapped(f"confidence: {verdict.confidence}, because {verdict.reason}"))
    files = "1 file" if verdict.files == 1 else f"{verdict.files} files"
    lines.append(f"read: {files}, {verdict.lines} lines")
    return "\n".join(lines)


def _victims(victims: tuple[Victim, ...]) -> str:
    shown = [f"rank {each.rank}" if each.rank is not None else str(each.named) for each in victims[:16]]
    more = len(victims) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") + f" ({_short(victims[0].text)})"


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"


def _indented(text: str) -> str:
    return f"    {text[:300]}"


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
