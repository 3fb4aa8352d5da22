"""The fate of each construct: migrated, a person has to go on, or dropped, with its place."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from amlstack.migrate.constructs import STATES


class Item(NamedTuple):
    """One construct of one file.

    Attributes:
        file: The file, a cell of a notebook as ``NAME[CELL]``.
        line: The line there; 0 for the file as a whole.
        construct: Its v1 name.
        state: ``migrated``, ``hand`` or ``dropped``.
        what: Its place in v2, or what is open.
        how: The next step of a person.
    """

    file: str
    line: int
    construct: str
    state: str
    what: str
    how: str = ""

    @property
    def place(self) -> str:
        """The file and line."""
        return f"{self.file}:{self.line}" if self.line else self.file


@cache
def _notes() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("notes.toml").read_text(encoding="utf-8"))


def noted(file: str, line: int, note: str, /, **values: str) -> Item:
    """A remark of `notes.toml` on a place, its braces filled in."""
    row = {key: words.format(**values) for key, words in _notes()[note].items()}
    return Item(file, line, row.get("of", note), row.get("state", "hand"), row["what"], row.get("how", ""))


def counted(items: Iterable[Item]) -> dict[str, int]:
    """The number of constructs in each state."""
    found = Counter(item.state for item in items)
    return {state: found[state] for state in STATES}


def summary(items: Sequence[Item]) -> str:
    """The numbers as a sentence."""
    return ", ".join(f"{number} {STATES[state]}" for state, number in counted(items).items())


def values(items: Sequence[Item], written: Sequence[str]) -> dict[str, Any]:
    """The report for programs."""
    return {"counts": counted(items), "files": [*written], "constructs": [item._asdict() for item in items]}


def _by_state(items: Iterable[Item]) -> list[Item]:
    """First what a person has to do."""
    return sorted(items, key=lambda item: ("hand", "migrated", "dropped").index(item.state))


def lines(items: Sequence[Item]) -> Iterable[str]:
    """The report for a terminal."""
    for item in _by_state(items):
        yield f"{item.place}: {STATES[item.state]}: {item.construct}: {item.what}"
        if item.how:
            yield f"    {item.how}"


def markdown(items: Sequence[Item], written: Sequence[str]) -> str:
    """The report as a page."""
    rows = [
        f"| {_cell(item.place)} | `{item.construct}` | {STATES[item.state]} | {_cell(item.what)} | {_cell(item.how)} |"
        for item in _by_state(items)
    ]
    head = ["| place | construct | state | in v2 | next step |", "| --- | --- | --- | --- | --- |"]
    files = (f"- `{name}`" for name in written)
    return "\n".join(["# From SDK v1 to v2", "", f"{summary(items)}.", "", *files, "", *head, *rows, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
