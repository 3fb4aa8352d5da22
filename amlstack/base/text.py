"""Words: near misses, spellings, durations, and foreign text made fit for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TextIO


def near(word: str, known: Iterable[str], n: int = 3) -> tuple[str, ...]:
    """Known names close to a word in any letter case, best first; only those nearly as close as the best one.

    Where none is close, those that begin as one part of the word does: ``node_count`` may be ``nodes``.
    """
    import difflib  # noqa: PLC0415 - only a mistake needs it

    by_lower = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), by_lower, n=n, cutoff=0.6)
    if not matches:
        parts = tuple(part for part in word.lower().split("_") if len(part) >= 4)
        return tuple(name for low, name in by_lower.items() if low.startswith(parts))[:n]
    close = [difflib.SequenceMatcher(None, match, word.lower()).ratio() for match in matches]
    return tuple(by_lower[match] for match, ratio in zip(matches, close, strict=True) if ratio > close[0] - 0.1)


def hint(word: str, known: Iterable[str], mark: str = "`") -> str:
    """`` Did you mean `epochs`?`` with a blank in front, to end a sentence with; empty when nothing is near."""
    close = " or ".join(f"{mark}{name}{mark}" for name in near(word, known))
    return f" Did you mean {close}?" if close else ""


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """``Did you mean `epochs`?``, else the list of all that is known, else a given sentence."""
    known = tuple(known)
    if close := hint(word, known):
        return close.lstrip()
    if known and len(known) <= 12:
        return f"There {'is' if len(known) == 1 else 'are'} {', '.join(f'`{name}`' for name in known)}."
    return otherwise


_WORD = re.compile(r"(.)([A-Z][a-z]+)")
_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")


def snake(name: str) -> str:
    """``shmSize`` as ``shm_size``, ``AMLToken`` as ``aml_token``."""
    return _CAPITAL.sub(r"\1_\2", _WORD.sub(r"\1_\2", name)).lower()


def camel(name: str) -> str:
    """``shm_size`` as ``shmSize``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_FORM = r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
_SHORT = re.compile(r"(?=\d)(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m(?:in)?)?\s*(?:(\d+)s)?", re.IGNORECASE)
_UNITS = (86_400, 3_600, 60, 1)


def seconds(text: str) -> float | None:
    """The seconds of a duration such as ``PT10M`` or ``P1DT12H``; None for what is none."""
    found = re.fullmatch(_FORM, text)
    if found is None:
        return None
    return sum(float(part or 0) * unit for part, unit in zip(found.groups(), _UNITS, strict=True))


def whole_seconds(text: str) -> int | None:
    """The seconds of ``2h``, ``1h30m``, ``90s``, ``1d 12h`` or ``PT2H``; None for what is none, a bare number too.

    A bare number in quotes has no unit: it may mean seconds or minutes.
    """
    text = text.strip()
    if found := _SHORT.fullmatch(text):
        parts = found.groups()
        return sum(int(part or 0) * unit for part, unit in zip(parts, _UNITS, strict=True)) if any(parts) else None
    exact = seconds(text.upper())
    return int(exact) if exact is not None and exact.is_integer() else None


def iso(seconds: int) -> str:
    """Seconds in the shortest form: ``P1DT1H``."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    clock = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if number)
    clock = clock or ("" if days else "0S")
    return f"P{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}"


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
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r"}


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
    return _ESCAPES.get(character) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )
