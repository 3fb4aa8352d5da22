"""Words of others, made fit for a terminal and for a log that a CI reads: nothing in them acts, and all is visible.

A terminal acts on control characters: it takes titles, colours and the clipboard's content from them. Marks of
direction (CVE-2021-42574) and characters without width show another text than there is. A CI's runner acts on lines:
GitHub's on `::command::` at the beginning of a line and on `##[` anywhere (`ActionCommand.cs` of actions/runner), that
of Azure Pipelines on `##vso[` anywhere (`Command.cs` of microsoft/azure-pipelines-agent; both read 2026-11).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing import TextIO

_UNSEEN: Final = (
    "\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""Marks of direction, separators of lines, tags, and what has no width and joins no letters or emoji."""
_ACTS: Final = re.compile(f"[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_UNSEEN}]")
_ACTS_IN_TEXT: Final = re.compile(rf"\r(?!\n)|(?!\r){_ACTS.pattern}")
_ACTS_IN_LINE: Final = re.compile(rf"\n|{_ACTS.pattern}")
_IGNORED: Final = "[\xad\u034f\u200c\u200d\ufe00-\ufe0f]*"
"""Characters that a comparison by language, as in .NET, skips."""
_MARKS: Final = re.compile(rf"#(?={_IGNORED}#{_IGNORED}(?:v{_IGNORED}s{_IGNORED}o{_IGNORED})?\[)", re.IGNORECASE)
_COLONS: Final = re.compile(r"^((?:[^\S\n]|\x1b\[[\d;]*m)*):(?=(?:\x1b\[[\d;]*m)*:)", re.MULTILINE)
_COLOUR: Final = re.compile(r"(\x1b\[[\d;]*m)")
_SHORT: Final = {"\n": "\\n", "\r": "\\r"}


def text(value: str) -> str:
    """Lines of text: line ends and tabs stay, what else a terminal acts on is shown by its escape in Python."""
    return _ACTS_IN_TEXT.sub(_shown, value)


def line(value: str) -> str:
    """One line: as `text`, and ends of lines are shown, too. For names and for what stands beside something else."""
    return _ACTS_IN_LINE.sub(_shown, value)


def without_commands(value: str, *, colons: bool = True) -> str:
    """A whole output that no runner of a CI takes a command from.

    Args:
        value: Lines, from the beginning of one on.
        colons: Also at the beginnings of lines; not where these commands are our own.
    """
    value = _MARKS.sub("# ", value)
    return _COLONS.sub(r"\1: ", value) if colons else value


def output(value: str) -> str:
    """A whole message for what prints it later: `text`, `without_commands`."""
    return without_commands(text(value))


def json_text(value: str) -> str:
    """The text of a JSON document, whose strings say the same by JSON's own escapes."""
    value = _ACTS_IN_TEXT.sub(lambda found: json_escaped(found[0]), value)
    return _MARKS.sub(lambda found: json_escaped(found[0]), value)


def json_escaped(character: str) -> str:
    """A character by JSON's escapes, which are of UTF-16."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def last_written(value: str) -> str:
    """One line of a log as a terminal shows it in the end: of a bar of progress that is drawn anew, the last state."""
    return next((part for part in reversed(value.split("\r")) if part.strip()), "") if "\r" in value else value


class Shield:
    """A stream on which nothing acts but colours: for what writes to it on its own, as do tracebacks, click and rich.

    Attributes:
        stream: The stream itself.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, value: str) -> int:
        """Writes a text as `text` shows it."""
        # Every second part is a colour.
        parts = [part if number % 2 else text(part) for number, part in enumerate(_COLOUR.split(value))]
        self.stream.write(without_commands("".join(parts)))
        return len(value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def bare(stream: TextIO) -> TextIO:
    """The stream below its shield, for a text that is shown as it should be."""
    return bare(stream.stream) if isinstance(stream, Shield) else stream


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _SHORT.get(character) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )
