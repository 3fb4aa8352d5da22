"""A short way for plain YAML: mappings, lists of scalars and texts, one key or item a line, as most job files are.

The parser makes an object with two marks for each event, which for a thousand files is a third of what a check takes.
What is read here means the same to every YAML parser. At the first line that is not certainly plain, nothing is read
and the parser has the word: quotes with escapes, flow collections, anchors, tags, texts over several lines without `|`
or `>`, duplicate keys, and everything that is wrong. So no finding is made here.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.yamltext.scalars import SHORT, value_of

if TYPE_CHECKING:
    from amlstack.base.yamltext.builder import Box

MOST: Final = 50_000
"""Characters of a text for which the short way is tried: what they hold is within every bound of the builder."""

_UNUSUAL: Final = re.compile("[^\n -~\u00a1-\u1fff]")
"""Other line breaks, tabs, a byte order mark, and what YAML does not allow."""
_KEY: Final = re.compile(r"( *)([A-Za-z_$][\w.$/-]{0,200}):(?: +(.*))?", re.ASCII)
_LINES: Final = re.compile(rf"^(?:{_KEY.pattern}|(.*))$", re.ASCII | re.MULTILINE)
"""Blanks, key and value of each line that has a key, else the whole line."""
_ITEM: Final = re.compile(r"( *)- +(.*)", re.ASCII)
_BLOCK: Final = re.compile(r"([|>])(-?)(?: +(?:#.*)?)?", re.ASCII)
_NOTHING: Final[dict[Any, Any]] = {}
_SCALAR: Final[Any] = (None, None, _NOTHING, 1, False)
"""The box of a scalar in a collection, of which nobody asks but what is in it: nothing."""
_DEEPEST: Final = 50


Mark = tuple[int, int]
"""Line and column, both from 0; a plain tuple, as each key has one."""


class _NotPlainError(Exception):
    """A line is for the parser."""


def root_of(content: str) -> Box | None:
    """The box of a text that is plain from its first to its last line; None for any other.

    Args:
        content: The text, decoded.
    """
    # Most texts are ASCII, of which what is printable needs no pattern.
    usual = content.isascii() and content.replace("\n", "").isprintable()
    if len(content) > MOST or (not usual and _UNUSUAL.search(content)):
        return None
    try:
        return _Reading(content).root()
    except (_NotPlainError, ValueError):
        return None


class _Reading:
    """The lines of a text, and how far they have been read."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.next = 0

    @cached_property
    def lines(self) -> list[str]:
        """The lines as they are written, for what is no key."""
        return self.content.split("\n")

    def root(self) -> Box | None:
        """The mapping that all lines are.

        Raises:
            _NotPlainError: A line is not plain.
        """
        lines = _LINES.findall(self.content)  # at once: a call for each line takes twice as long
        count = len(lines)
        indent, values, inner = -1, _NOTHING, _NOTHING  # of the innermost open mapping
        around: list[tuple[int, dict[str, Any], dict[str, Any]]] = []
        box: Box | None = None
        name: str | None = ""  # the key whose value may follow in deeper lines; at first the text itself
        mark = (0, 0)
        while self.next < count:
            number = self.next
            spaces, key, rest, line = lines[number]
            self.next = number + 1
            if not key:
                part = self._without_key(line, name, indent, mark)
                if name and part is not None:
                    values[name], inner[name], name = part[0], (mark, part), None
                continue
            column = len(spaces)
            if column > indent:
                if name is None or len(around) >= _DEEPEST:
                    raise _NotPlainError
                outer = values, inner
                around.append((indent, values, inner))
                indent, values, inner = column, {}, {}
                part = (values, mark, inner, 1, False)
                if name:
                    outer[0][name], outer[1][name] = values, (mark, part)
                else:
                    box = (values, (number, column), inner, 1, False)
            elif column < indent:
                while column < indent:
                    indent, values, inner = around.pop()
                if column != indent:
                    raise _NotPlainError
            if key in values or not _is_text(key):
                raise _NotPlainError
            mark = (number, column)
            name = key
            value = None
            if rest and rest[0] != "#":
                value = self._block(rest, indent) if rest[0] in "|>" else _scalar(rest)
                name = None
            values[key], inner[key] = value, (mark, _SCALAR)
        return box

    def _without_key(self, line: str, name: str | None, indent: int, mark: Mark) -> Box | None:
        """The list that begins with a line, the value of an open key; None where the line says nothing."""
        text = line.lstrip(" ")
        if not text or text[0] == "#":
            return None
        item = _ITEM.fullmatch(line)
        if not name or item is None or len(item[1]) < indent:
            raise _NotPlainError
        self.next -= 1
        return self._items(item[1], mark)

    def _items(self, spaces: str, mark: Mark) -> Box:
        """The list of scalars that begins with the next line."""
        values: list[Any] = []
        inside: dict[Any, tuple[Any, Any]] = {}
        while self.next < len(self.lines):
            item = _ITEM.fullmatch(self.lines[self.next])
            if item is None or item[1] != spaces:
                break
            text = item[2]
            if not text or text[0] == "#" or _KEY.fullmatch(text):
                raise _NotPlainError
            value, place = _scalar(text), (self.next, item.start(2))
            inside[len(values)] = (place, _SCALAR)
            values.append(value)
            self.next += 1
        return values, mark, inside, 1, False

    def _block(self, head: str, indent: int) -> str:
        """The text under `|` or `>`, whose lines all have one depth and none of which is blank."""
        match = _BLOCK.fullmatch(head)
        if match is None:
            raise _NotPlainError
        first = self.lines[self.next] if self.next < len(self.lines) else ""
        depth = len(first) - len(first.lstrip(" "))
        texts: list[str] = []
        while self.next < len(self.lines):
            line = self.lines[self.next]
            text = line[depth:]
            if not line.strip(" "):
                self._only_blank_until_shallower(depth)
                break
            if line[:depth].strip(" "):
                break
            if text[0] == " ":
                raise _NotPlainError
            texts.append(text)
            self.next += 1
        if not texts or depth <= indent or (self.next == len(self.lines) and not match[2]):
            raise _NotPlainError  # without a line break at its end a text has none there
        return ("\n" if match[1] == "|" else " ").join(texts) + ("" if match[2] else "\n")

    def _only_blank_until_shallower(self, depth: int) -> None:
        """Blank lines after a text change nothing without `+`; those in it, or longer ones, are for the parser."""
        for line in self.lines[self.next :]:
            if line.strip(" "):
                if not line[:depth].strip(" "):
                    raise _NotPlainError
                return
            if len(line) > depth:
                raise _NotPlainError


def _read_scalar(text: str) -> Any:
    """The value of the rest of a line."""
    first = text[0]
    if first in "'\"":
        end = text.find(first, 1)
        inside, after = text[1:end], text[end + 1 :].lstrip(" ")
        # A comment needs a blank before it, and a second quote right after the first is a quote in the text.
        if end < 0 or "\\" in inside or (after and (after[0] != "#" or text[end + 1] != " ")):
            raise _NotPlainError
        return inside
    if " #" in text:
        text = text[: text.index(" #")]
    text = text.rstrip(" ")
    if not (first.isalnum() or first in "_$./") or ": " in text or text[-1] == ":":
        raise _NotPlainError
    return value_of(text)


# Of keys, words and numbers all job files have the same few.
_scalar_short = lru_cache(maxsize=8192)(_read_scalar)


def _scalar(text: str) -> Any:
    return _scalar_short(text) if len(text) < SHORT else _read_scalar(text)


@lru_cache(maxsize=8192)
def _is_text(key: str) -> bool:
    """Whether a key is text, and not what looks like a number, a date or a truth."""
    return bool(value_of(key) == key)
