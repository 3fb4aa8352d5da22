"""Reading single values of an Azure ML job file with the coercions of the real loader, faults as findings.

Readers take a `Cursor` and return the value as the job model wants it, or `Bad` after they have reported what is wrong;
nothing is raised, so that one file shows all its faults at once.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.durations import whole_seconds
from amlstack.base.findings import Level
from amlstack.base.near_misses import did_you_mean
from jobs.azureml.cursor import Bad, Cursor, shown
from jobs.model.values import EXPRESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Reader = Callable[[Cursor], Any]

_DIGITS = re.compile(r"\s*[+-]?\d{1,18}\s*")


def text(cursor: Cursor) -> Any:
    """A string; numbers and words that YAML reads otherwise must be quoted."""
    value = cursor.value
    if isinstance(value, str):
        return value
    remedy = f'Put it in quotes: "{value}".' if isinstance(value, (bool, int, float)) else ""
    return cursor.wrong("text", remedy)


def size_of_memory(cursor: Cursor) -> Any:
    """A size with its unit, as Docker writes it."""
    value = cursor.value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return cursor.wrong("text with a unit", f'Write "{value}g" for {value} GiB; a bare "{value}" is bytes.')
    return text(cursor)


def version(cursor: Cursor) -> Any:
    """A version: text, or a number taken as text."""
    value = cursor.value
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    return cursor.wrong("a version, such as `1` or `1.0.2`")


def whole(cursor: Cursor) -> Any:
    """A whole number; text of digits is taken, and so is a float, cut to its whole part as the real loader does."""
    value = cursor.value
    if isinstance(value, bool):
        return cursor.wrong("an integer")
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        if value != int(value):
            cursor.bad(
                "number-cut",
                cursor.must("be an integer"),
                f"Azure ML cuts it to {int(value)}",
                f"Write {int(value)}.",
                level=Level.WARNING,
            )
        return int(value)
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return cursor.wrong("an integer")


def count(cursor: Cursor) -> Any:
    """A whole number from 1, or a pipeline expression."""
    if isinstance(cursor.value, str) and EXPRESSION.fullmatch(cursor.value):
        return cursor.value
    return at_least(1)(cursor)


@dataclass(frozen=True, slots=True, eq=False)
class AtLeast:
    """Reads a whole number with a lower bound."""

    least: int

    def __call__(self, cursor: Cursor) -> Any:
        """The number."""
        value = whole(cursor)
        if value is not Bad and value < self.least:
            return cursor.bad("value-range", cursor.must(f"be {self.least} or more"), "")
        return value


def at_least(least: int) -> Reader:
    """A whole number with a lower bound."""
    return AtLeast(least)


TRUE = frozenset({"t", "true", "1", "on", "y", "yes"})
FALSE = frozenset({"f", "false", "0", "off", "n", "no"})
LONGEST = 86_399_999_999_999
"""Seconds of the longest duration that the real loader can hold."""


def seconds(cursor: Cursor) -> Any:
    """A duration in seconds."""
    written = cursor.value
    if isinstance(written, str) and (meant := whole_seconds(written)) is not None:
        return cursor.wrong("a whole number of seconds", f"Write {meant}.")
    if not isinstance(written, int | float) and not (isinstance(written, str) and _DIGITS.fullmatch(written)):
        return cursor.wrong("a whole number of seconds")
    value = at_least(0)(cursor)
    if value is not Bad and value > LONGEST:
        return cursor.bad("value-range", cursor.must(f"be {LONGEST:,} seconds or less"), "")
    return value


def truth(cursor: Cursor) -> Any:
    """A truth value, in the words that the real loader takes."""
    value = cursor.value
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, int)) and str(value).lower() in TRUE | FALSE:
        return str(value).lower() in TRUE
    return cursor.wrong("`true` or `false`")


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """Reads one of a few words, in the spellings that the real loader takes.

    Attributes:
        words: Spelling after ``normal`` to the word of the job model.
        normal: What the real loader does to a spelling before it compares.
    """

    words: Mapping[str, str]
    normal: Callable[[str], str] = str.lower

    def __call__(self, cursor: Cursor) -> Any:
        """The word of the job model."""
        value = cursor.value
        if isinstance(value, str) and (found := self.words.get(self.normal(value))) is not None:
            return found
        listed = ", ".join(f"`{name}`" for name in self.words)
        remedy = did_you_mean(value, self.words) if isinstance(value, str) else ""
        return cursor.bad(
            "value-unknown",
            cursor.must(f"be one of {listed}"),
            "",
            remedy if remedy.startswith("Did") else "",
        )


def word(words: Mapping[str, str], normal: Callable[[str], str] = str.lower) -> Reader:
    """One of a few words; see `Word`."""
    return Word(words, normal)


def same(*words: str) -> dict[str, str]:
    """Words that stand for themselves."""
    return {name: name for name in words}


def anything(cursor: Cursor) -> Any:
    """Any value, handed on as it is, but for numbers that JSON cannot say."""
    return cursor.value if _is_finite(cursor) else Bad


def mapping(cursor: Cursor) -> Any:
    """A mapping with any values."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping of names to values")
    return by_text(cursor) if _is_finite(cursor) else Bad


def _is_finite(cursor: Cursor) -> bool:
    """Whether no number in a value is `.nan` or `.inf`; each that is one is reported."""
    value = cursor.value
    if isinstance(value, float) and not math.isfinite(value):
        cursor.wrong("a finite number, or text in quotes")
        return False
    inner = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    each = [_is_finite(cursor.at(key)) for key in inner]  # to the end: every one of them is reported
    return all(each)


def by_text(cursor: Cursor) -> dict[str, Any]:
    """What stands in a mapping under text; each name that is none is a fault."""
    for key in cursor.value:
        if not isinstance(key, str):
            refuse_name(cursor, key)
    return {key: value for key, value in cursor.value.items() if isinstance(key, str)}


def refuse_name(cursor: Cursor, key: Any) -> None:
    """Report a key that is no text."""
    rule, remedy = "Names are text", f'Put it in quotes: "{key}".'
    cursor.bad("name-kind", f"{shown(key)} is used as a name", rule, remedy, key=key)


@dataclass(frozen=True, slots=True)
class Nullable:
    """Reads the same, or nothing; a key may stand there without a value."""

    read: Callable[[Cursor], Any]

    def __call__(self, cursor: Cursor) -> Any:
        """The value, or None."""
        return None if cursor.value is None else self.read(cursor)


nullable = Nullable


def unsent(cursor: Cursor) -> Any:
    """What the real loader takes whatever it is, as it does not send it: text of a plain value, else None."""
    value = cursor.value
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None
