"""A short way for plain YAML: mappings, lists of scalars and texts, one key or item a line, as most job files are.

The parser makes an object with two marks for each event, which for a thousand files is a third of what a check takes.
What is read here means the same to every YAML parser. At the first line that is not certainly plain, nothing is read
and the parser has the word: quotes with escapes, flow collections, anchors, tags, texts over several lines without `|`
or `>`, duplicate keys, and everything that is wrong. So no finding is made here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amlstack.base.yamltext.scalars import value_of

if TYPE_CHECKING:
    from amlstack.base.yamltext.builder import Box

MOST: Final = 50_000
"""Characters of a text for which the short way is tried: what they hold is within every bound of the builder."""

_UNUSUAL: Final = re.compile("[^\n -~\u00a1-\u1fff]")
"""Other line breaks, tabs, a byte order mark, and what YAML does not allow."""
_KEY: Final = re.compile(r"( *)([A-Za-z_$][\w.$/-]{0,200}):(?: +(.*))?", re.ASCII)
_ITEM: Final = re.compile(r"( *)- +(.*)", re.ASCII)
_BLOCK: Final = re.compile(r"([|>])(-?)(?: +(?:#.*)?)?", re.ASCII)
_NOTHING: Final[dict[Any, Any]] = {}
_DEEPEST: Final = 50


class Mark(NamedTuple):
    """A place as the parser's marks have it, from 0."""

    line: int
    column: int


class _NotPlainError(Exception):
    """A line is for the parser."""


def root_of(content: str) -> Box | None:
    """The box of a text that is plain from its first to its last line; None for any other.

    Args:
        content: The text, decoded.
    """
    if len(content) > MOST or _UNUSUAL.search(content):
        return None
    try:
        return _Reading(content.split("\n")).root()
    except (_NotPlainError, ValueError):
        return None


class _Reading:
    """The lines of a text, and how far they have been read."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.next = 0

    def root(self) -> Box | None:
        """The mapping that all lines are.

        Raises:
            _NotPlainError: A line is not plain.
        """
        lines, count = self.lines, len(self.lines)
        indent, values, inner = -1, _NOTHING, _NOTHING  # of the innermost open mapping
        around: list[tuple[int, dict[str, Any], dict[str, Any]]] = []
        box: Box | None = None
        name: str | None = ""  # the key whose value may follow in deeper lines; at first the text itself
        mark = Mark(0, 0)
        while self.next < count:
            number = self.next
            line = lines[number]
            self.next = number + 1
            match = _KEY.fullmatch(line)
            if match is None:
                part = self._without_key(line, name, indent, mark)
                if name and part is not None:
                    values[name], inner[name], name = part[0], (mark, part), None
                continue
            spaces, key, rest = match.groups()
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
                    box = (values, Mark(number, column), inner, 1, False)
            elif column < indent:
                while column < indent:
                    indent, values, inner = around.pop()
                if column != indent:
                    raise _NotPlainError
            if key in values or value_of(key) != key:
                raise _NotPlainError
            mark = Mark(number, column)
            name = key
            value = None
            if rest and rest[0] != "#":
                value = self._block(rest, indent) if rest[0] in "|>" else self._scalar(rest)
                name = None
            values[key], inner[key] = value, (mark, (value, mark, _NOTHING, 1, False))
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

    def _scalar(self, text: str) -> Any:
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
            value, place = self._scalar(text), Mark(self.next, item.start(2))
            inside[len(values)] = (place, (value, place, _NOTHING, 1, False))
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
