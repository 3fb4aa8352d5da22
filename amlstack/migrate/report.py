"""The fate of each construct: migrated, a person has to go on, or dropped, with its place."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.migrate.constructs import STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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


def lines(items: Sequence[Item]) -> Iterable[str]:
    """The report for a terminal: first what a person has to do."""
    for state in ("hand", "migrated", "dropped"):
        for item in items:
            if item.state == state:
                yield f"{item.place}: {STATES[state]}: {item.construct}: {item.what}"
                if item.how:
                    yield f"    {item.how}"


def markdown(items: Sequence[Item], written: Sequence[str]) -> str:
    """The report as a page."""
    rows = [
        f"| {_cell(item.place)} | `{item.construct}` | {STATES[item.state]} | {_cell(item.what)} | {_cell(item.how)} |"
        for state in ("hand", "migrated", "dropped")
        for item in items
        if item.state == state
    ]
    head = ["| place | construct | state | in v2 | next step |", "| --- | --- | --- | --- | --- |"]
    files = [f"- `{name}`" for name in written]
    return "\n".join(["# From SDK v1 to v2", "", f"{summary(items)}.", "", *files, "", *head, *rows, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
