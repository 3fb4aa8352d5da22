"""A finding: one thing that is wrong, in words that the reader can act on.

Everything that judges (rules, the job plan, the stack settings, the file reader) returns findings and never raises for
a user's mistake, so that all of them can be shown together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any


class Level(StrEnum):
    """The weight of a finding: an error refuses, a warning and an info are only shown."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation, the rule it breaks, the remedy.

    Attributes:
        code: Kebab-case name of the rule, e.g. ``sriov-fabric``; stable, and a heading in the documentation.
        where: Path in the declaration, e.g. ``clusters[0].size`` or ``inputs.data.path``; empty for the whole.
        seen: The observed value, in words.
        rule: What must hold; empty where `seen` says it (`nodes` must be an integer, got `two`).
        remedy: What to write instead; near misses by name. May be empty when the rule says it all.
        level: Whether it refuses.
        file: The file it stands in, when known.
        line: 1-based line in that file, when known.
        column: 1-based column in that line, when known.
        by_hand: Whether `check --fix` leaves it to the person where it mends others of its code.
    """

    code: str
    where: str
    seen: str
    rule: str
    remedy: str = ""
    level: Level = Level.ERROR
    file: str | None = None
    line: int | None = None
    column: int | None = None
    by_hand: bool = False

    def __post_init__(self) -> None:
        """Keep to text that can be printed: half a surrogate pair out of a person's file has no bytes in UTF-8."""
        if f"{self.where}{self.seen}{self.rule}{self.remedy}{self.file}".isascii():  # as nearly all
            return
        for name in ("where", "seen", "rule", "remedy", "file"):
            text = getattr(self, name)
            if isinstance(text, str) and not text.isascii():
                object.__setattr__(self, name, text.encode(errors="backslashreplace").decode())

    def at(self, file: str | None = None, line: int | None = None, column: int | None = None) -> Finding:
        """The same finding with its place in a file filled in where it is not known yet."""
        if self.file and self.line and self.column:
            return self
        return self.changed(file=self.file or file, line=self.line or line, column=self.column or column)

    def changed(self, **given: Any) -> Finding:
        """The same finding with what is given in the place of what it has."""
        if all(getattr(self, name) == value for name, value in given.items()):
            return self
        return Finding(**{name: getattr(self, name) for name in Finding.__slots__} | given)

    def under(self, prefix: str) -> Finding:
        """The same finding one level further down: ``size`` under ``clusters[0]`` is ``clusters[0].size``."""
        where = prefix if not self.where else f"{prefix}{'' if self.where.startswith('[') else '.'}{self.where}"
        return self.changed(where=where)

    @property
    def place(self) -> str:
        """``file:line:column: where``, as far as it is known."""
        spot = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return ": ".join(part for part in (spot, self.where) if part)

    @property
    def message(self) -> str:
        """One sentence each for what was seen, the rule and the remedy, without the place."""
        return " ".join(sentence(part) for part in (self.seen, self.rule, self.remedy) if part)

    def __str__(self) -> str:
        head = f"{self.place}: " if self.place else ""
        return f"{head}{self.message} [{self.code}]"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {**asdict(self), "level": str(self.level), "message": self.message}


@cache
def texts() -> dict[str, tuple[str, str, str]]:
    """The words of findings (seen, rule, remedy) by code; of one that says several things by `code/word`."""
    import json  # noqa: PLC0415 - where nothing is wrong nothing is read

    rows: dict[str, list[str]] = json.loads(Path(__file__).with_name("findings.json").read_text("utf-8"))
    return {key: (row[0], row[1], "".join(row[2:])) for key, row in rows.items()}


def stated(key: str, where: str, level: Level = Level.ERROR, /, **values: Any) -> Finding:
    """A finding in the words of `findings.json`, with values in the place of its names in braces."""
    seen, rule, remedy = (text.format_map(values) for text in texts()[key])
    return Finding(key.partition("/")[0], where, seen, rule, remedy, level)


def sentence(text: str) -> str:
    """A text with a full stop at its end, unless it ends as a sentence does."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those findings that refuse."""
    return tuple(finding for finding in findings if finding.level is Level.ERROR)


def in_file_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings file by file, each file's in the order of its lines; what has no line comes first.

    Files keep the order in which they first come up, and findings of one place the order in which they were found.
    """
    found = tuple(findings)
    files = {file: number for number, file in enumerate(dict.fromkeys(finding.file for finding in found))}
    return tuple(sorted(found, key=lambda each: (files[each.file], each.line or 0, each.column or 0)))
