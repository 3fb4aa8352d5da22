"""Words of others in Markdown: nothing in them is markup, a mention or a link."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from amlstack.base import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST: Final = 60_000
"""Characters of a comment. GitHub takes 65,536, Azure DevOps 150,000."""
FEW: Final = 25
"""So many lines of a list are shown; the rest is counted."""
_MARKUP: Final = re.compile(r"([\\`*_\[\]#|~])")
_LINK: Final = re.compile(r"(?:https?|ftp|mailto|xmpp):|\bwww(?=\.)", re.IGNORECASE)
"""A forge makes links of these by itself (github.github.com/gfm, "Autolinks (extension)", read 2026-11-24)."""
_MENTION: Final = re.compile(r"(?<!\w)@(?=\w)")


def plain(text: str) -> str:
    """A text on one line, as text: what would be markup is escaped, and `@name` calls nobody."""
    escaped = _MARKUP.sub(r"\\\1", " ".join(printable.text(text).split()))
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINK.sub(lambda found: f"{found[0]}\u200c", _MENTION.sub("@\u200c", escaped))


def code(text: str) -> str:
    """A text on one line as code, which may stand in a table."""
    return f"`{' '.join(printable.text(text).replace('`', chr(0x2BC)).split())}`".replace("|", "\\|")


def items(lines: Sequence[str]) -> Iterator[str]:
    """A list of a few lines, and how many more there are."""
    yield from (f"- {line}" for line in lines[:FEW])
    if len(lines) > FEW:
        yield f"- … and {len(lines) - FEW} more"


def folded(heading: str, lines: Sequence[str]) -> Iterator[str]:
    """Lines that open on a click."""
    yield ""
    yield f"<details><summary>{heading}</summary>"
    yield ""
    yield from items(lines)
    yield ""
    yield "</details>"


def cut(text: str) -> str:
    """A text of at most so many characters, whole lines of it."""
    if len(text) <= MOST:
        return text
    return text[:MOST].rpartition("\n")[0] + "\n\n… the rest is in the artifacts.\n"
