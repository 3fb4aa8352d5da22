"""Streams of bytes as lines, without ever holding more than a block; only lines worth a look are decoded.

Training output repeats itself: a million lines are a handful of forms that differ in their numbers, hexadecimal ones
among them. A line without the signs of such numbers is its form; a form in whose first line no word of the table occurs
is remembered as dull and costs a look-up from then on. An error that is repeated a hundred thousand times is not new
after its first lines: from then on only lines of another writer are read.
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from typing import TYPE_CHECKING

from amlstack.diagnose.signatures import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BLOCK = 1 << 20
LONGEST = 6000
"""What is looked at of one line; training output has lines of megabytes."""
MOST_FORMS = 100_000
DIGITS = b"0123456789"
NUMBERS = DIGITS + b"abcdef"
"""Of what numbers consist; a line without them is its form."""
_NO_DIGITS = bytes(set(range(256)) - set(DIGITS))
STORM = 200
"""Lines of one form that are read from any writer; afterwards as many of each writer as `OF_A_WRITER`."""
OF_A_WRITER = 4
MOST_WRITERS = 2048
"""Writers of one form: where there are more, a number that counts stands where others have their name."""
_TIMES = re.compile(rb"\d{1,4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d[.,\d]*")
_WRITER = 40
"""Bytes at the beginning of a line that name its writer: rank, node, process. Times are left out."""
# What the readers of tracebacks and tables must see, besides the table's own words.
_MARKS = (
    "traceback (most",
    "current thread",
    "failures:",
    "root cause",
    "error",
    "exception",
    "nproc_per_node",
    "nranks",
    "world_size",
    "torch.distributed.",
    "torch/distributed/",
    "launch.py:",
    "terminated with the following",
    "exception ignored",
    "-" * 74,
    "distributed init (rank",
    "global_rank: ",
    "initialized host",
    "to store for rank",
    "init process group",
    "joined as rank",
)


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of about a mebibyte that end where a line ends, unless one line is longer than that."""
    left: list[bytes] = []
    size = 0
    for chunk in chunks:
        for start in range(0, len(chunk), BLOCK):
            part = chunk[start : start + BLOCK]
            left.append(part)
            size += len(part)
            if size < BLOCK:
                continue
            block = b"".join(left)
            cut = block.rfind(b"\n") + 1 or len(block)
            yield block[:cut]
            left, size = [block[cut:]], len(block) - cut
    if rest := b"".join(left):
        yield rest


def as_utf8(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The same text in UTF-8, chunk by chunk."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def interesting(
    blocks: Iterable[bytes], attentive: Callable[[], bool], skipped: Callable[[int], None] | None = None
) -> Iterator[tuple[int, str, Callable[[], str]]]:
    """Lines worth a look; all lines while the reader is attentive.

    Args:
        blocks: What `whole_lines` gives.
        attentive: Asked after every line: whether the next one is wanted whatever it holds.
        skipped: Gets the number of each line that only repeats others.

    Yields:
        The 1-based number of the line, its text, and a function that gives the text before it. After the last line
        comes ``(number of lines, "", …)``.
    """
    number = 1
    ended = True
    dull: set[int] = set()
    storms = _Storms()
    awake = attentive()
    for block in blocks:
        texts = block.split(b"\n")
        ended = not texts[-1]
        if ended:
            texts.pop()
        for index, form in enumerate(map(hash, block.translate(None, NUMBERS).split(b"\n")[: len(texts)])):
            if not awake:
                if form in dull:
                    continue
                if form not in storms.forms and not notable(texts[index].translate(None, DIGITS)):
                    if len(dull) >= MOST_FORMS:
                        dull.clear()
                    dull.add(form)
                    continue
            if storms.repeats(form, texts[index]) and not awake:
                if skipped is not None:
                    skipped(number + index)
                continue
            for part in _parts(texts[index]):
                yield number + index, part, _before(texts, index)
            awake = attentive()
        number += len(texts) if ended else len(texts) - 1
    yield number - 1 if ended else number, "", str


class _Storms:
    """Which lines only repeat what the same writer has written many times. Bounded in memory.

    Attributes:
        forms: How many lines of each form were read.
    """

    def __init__(self) -> None:
        self.forms: dict[int, int] = {}
        self._begins: dict[int, int] = {}
        self._writers: dict[int, dict[bytes, int]] = {}

    def repeats(self, form: int, line: bytes) -> bool:
        """Whether a line of that form is one of a storm, and its writer has had lines read."""
        count = self.forms.get(form, 0)
        if count < STORM:
            if len(self.forms) >= MOST_FORMS:
                self.forms.clear()
                self._begins.clear()
                self._writers.clear()
            self.forms[form] = count + 1
            return False
        begin = self._begins.get(form)
        if begin is None:
            begin = self._begins[form] = _after_times(line)
        writers = self._writers.setdefault(form, {})
        # The digits at its beginning tell one rank, node or process from another.
        name = line[begin : begin + _WRITER].translate(None, _NO_DIGITS)
        count = writers.get(name, 0)
        if count >= OF_A_WRITER or (not count and len(writers) >= MOST_WRITERS):
            return True
        writers[name] = count + 1
        return False


def _after_times(line: bytes) -> int:
    """Where the times end with which a line begins; lines of one form have them in the same places."""
    found = list(_TIMES.finditer(line[: 3 * _WRITER]))
    return found[-1].end() if found else 0


def notable(form: bytes) -> bool:
    """Whether a line without its digits holds a word of the table, likewise without digits."""
    return _words().search(form.lower()) is not None


@cache
def _words() -> re.Pattern[bytes]:
    words = {word.encode().translate(None, DIGITS) for signature in table() for word in signature.any}
    words |= {mark.encode() for mark in _MARKS}
    # A word that contains another one adds nothing.
    least = [word for word in words if not any(other in word for other in words if other != word)]
    return re.compile(_trie(sorted(least)))


def _trie(words: list[bytes]) -> bytes:
    """One pattern for many words, common beginnings taken together: each position of a text is tried once."""
    if b"" in words:
        return b""
    groups: dict[bytes, list[bytes]] = {}
    for word in words:
        groups.setdefault(word[:1], []).append(word[1:])
    branches = [re.escape(first) + _trie(rest) for first, rest in sorted(groups.items())]
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"


def _parts(line: bytes) -> Iterator[str]:
    """A line's text; progress bars return to the margin instead of ending it, which gives several."""
    for part in line.split(b"\r"):
        if part and (
            len(part) == len(line) or notable(part.translate(None, DIGITS)) or b"\r" not in line.rstrip(b"\r")
        ):
            yield _text(part)


def _before(texts: list[bytes], index: int) -> Callable[[], str]:
    return lambda: "\n".join(_text(line[:200]) for line in texts[max(0, index - 30) : index])


def _text(line: bytes) -> str:
    if len(line) > LONGEST:
        found = _words().search(line.lower())
        begin = max(0, (found.start() if found else 0) - LONGEST // 4)
        line = line[begin : begin + LONGEST]
    return line.decode(errors="replace")
