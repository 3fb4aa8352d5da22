"""Streams of bytes as lines, without ever holding more than a block; only lines worth a look are decoded.

Training output repeats itself: a million lines are a handful of forms that differ in their numbers, hexadecimal ones
among them. A line without the signs of such numbers is its form; a form in whose first line no word of the table occurs
is remembered as dull. A block whose forms are all dull is passed over as a whole. An error that is repeated a hundred
thousand times is not new after its first lines: from then on only lines of another writer are read.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from functools import cache
from itertools import repeat
from operator import call, itemgetter
from typing import TYPE_CHECKING

from amlstack.diagnose.signatures import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BLOCK = 1 << 20
HEAD = 200
"""Bytes of a long line's begin that are kept before the part that is read."""
LONGEST = 6000
"""The part of one line that is looked at; training output has lines of megabytes."""
MOST_FORMS = 100_000
DIGITS = b"0123456789"
NUMBERS = DIGITS + b"abcdef"
"""Of what numbers consist; a line without them is its form."""
_NO_DIGITS = bytes(set(range(256)) - set(DIGITS))
_NO_NAME = _NO_DIGITS.replace(b"\n", b"")
STORM = 200
"""Lines of one form that are read from any writer; afterwards as many of each writer as `OF_A_WRITER`."""
OF_A_WRITER = 2
MOST_WRITERS = 2048
"""Writers of one form: where there are more, a number that counts stands where others have their name."""
SPENT = slice(0)
"""The place of a writer's name in lines of which no more are read."""
_TIMES = re.compile(rb"\d{1,4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d[.,\d]*")
EVERY = 32
"""Lines of which one stands for all where it only matters that something repeats."""
_WRITER = 40
"""Bytes at the beginning of a line that name its writer: rank, node, process. Times are left out."""
# What the readers of tracebacks and tables must see, besides the table's own words.
_MARKS = (
    *("traceback (most", "exception in ", "future: <", "current thread", "failures:", "root cause"),
    *("nproc_per_node", "nranks", "world_size", "torch.distributed.", "torch/distributed/", "launch.py:"),
    *("terminated with the following", "exception ignored", "exception happened during", "exception on /"),
    *("during handling of the", "exception occurred during"),
    *("-" * 74, "distributed init (rank", "global_rank: ", "initialized host", "to store for rank"),
    *("init process group", "joined as rank", "(rank/world-size)", "what():", "warn("),
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
    blocks: Iterable[bytes], attentive: Callable[[], bool], skipped: Callable[[Iterable[int]], None] | None = None
) -> Iterator[tuple[int, str, Callable[[], Iterable[str]]]]:
    """Lines worth a look; all lines while the reader is attentive.

    Args:
        blocks: What `whole_lines` gives.
        attentive: Asked after every line: whether the next one is wanted whatever it holds.
        skipped: Gets the number of a line near each that only repeats others: `EVERY` lines at a time.

    Yields:
        The 1-based number of the line, its text, and a function that gives the lines before it, the nearest first.
        After the last line comes ``(number of lines, "", …)``.
    """
    number = 1
    ended = True
    forms = _Forms()
    awake = attentive()
    for block in blocks:
        marks = block.translate(None, NUMBERS).split(b"\n")
        ended = not marks[-1] and block.endswith(b"\n")
        if ended:
            marks.pop()
        count = len(marks)
        if awake or not forms.dull.issuperset(map(hash, marks)):
            keys = list(map(hash, marks))
            del marks
            texts = block.split(b"\n")
            at = 0
            while awake and at < count:
                yield from _parts(number + at, texts, at)
                awake, at = attentive(), at + 1
            for index in forms.promising(keys, texts):
                if index < at or not forms.wanted(keys[index], texts[index]):
                    continue
                yield from _parts(number + index, texts, index)
                awake, at = attentive(), index + 1
                while awake and at < count:
                    yield from _parts(number + at, texts, at)
                    awake, at = attentive(), at + 1
            if skipped is not None and forms.storms:
                skipped(number + begin for begin in forms.stormy(keys))
            del keys, texts  # before the next block is taken apart
        number += count if ended else count - 1
    yield number - 1 if ended else number, "", tuple


class _Forms:
    """The known forms of a log's lines. Bounded in memory.

    Attributes:
        dull: Forms that hold no word of the table.
        storms: Forms that were read often → where a line's begin names its writer, and the writers that were read
            often enough.
    """

    __slots__ = ("_read", "_writers", "dull", "storms")

    def __init__(self) -> None:
        self.dull: set[int] = set()
        self.storms: dict[int, tuple[slice, set[bytes]]] = {}
        self._read: dict[int, int] = {}
        self._writers: dict[int, dict[bytes, int]] = {}

    def promising(self, keys: list[int], texts: list[bytes]) -> list[int]:
        """The places of lines that may be worth a look: not known to be dull, nor one more of their writer's storm.

        The lines of a storm are put together and their names taken without a step of Python's for each: it is what the
        largest logs cost.
        """
        dull, storms = self.dull, self.storms
        if not storms:
            return [index for index, key in enumerate(keys) if key not in dull]
        of: dict[int, list[bytes]] = {key: [] for key in storms}
        rest: list[bytes] = []
        put = {key: each.append for key, each in of.items()}
        deque(map(call, map(put.get, keys, repeat(rest.append)), texts), maxlen=0)
        found = [index for index, key in enumerate(keys) if key not in storms and key not in dull] if rest else []
        for key, own in of.items():
            place, known = storms[key]
            if not own or place is SPENT:
                continue
            names = b"\n".join(map(itemgetter(place), own)).translate(None, _NO_NAME).split(b"\n")
            if not known.issuperset(names):
                at = (index for index, each in enumerate(keys) if each == key)
                found += [index for index, name in zip(at, names, strict=True) if name not in known]
        return sorted(found)

    def stormy(self, keys: list[int]) -> list[int]:
        """Every so many lines the place of the first of these, if one of them belongs to a storm."""
        storms = self.storms.keys()
        return [begin for begin in range(0, len(keys), EVERY) if not storms.isdisjoint(keys[begin : begin + EVERY])]

    def wanted(self, key: int, line: bytes) -> bool:
        """True where a line that may be worth a look is to be read."""
        if key in self.storms:
            return not self._repeats(key, line)
        count = self._read.get(key, 0)
        if count:
            self._read[key] = count + 1
            if count + 1 >= STORM:
                begin = _after_times(line)
                self.storms[key], self._writers[key] = (slice(begin, begin + _WRITER), set()), {}
            return True
        if key in self.dull:
            return False
        if notable(line.translate(None, DIGITS)):
            if len(self._read) >= MOST_FORMS:
                for known in (self._read, self.storms, self._writers):
                    known.clear()
            self._read[key] = 1
            return True
        if len(self.dull) >= MOST_FORMS:
            self.dull.clear()
        self.dull.add(key)
        return False

    def _repeats(self, key: int, line: bytes) -> bool:
        """True where enough lines of a storm's writer were read, or a line has more writers than there can be."""
        place, known = self.storms[key]
        # The digits at its beginning tell one rank, node or process from another.
        name = line[place].translate(None, _NO_DIGITS)
        counts = self._writers[key]
        count = counts.get(name, 0)
        if name in known:
            return True
        if not count and len(counts) >= MOST_WRITERS:
            self.storms[key] = SPENT, known
            return True
        counts[name] = count + 1
        if count + 1 >= OF_A_WRITER:
            known.add(name)
        return False


def _after_times(line: bytes) -> int:
    """The end of the times with which a line begins; lines of one form have them in the same places."""
    found = list(_TIMES.finditer(line[: 3 * _WRITER]))
    return found[-1].end() if found else 0


def notable(form: bytes) -> bool:
    """True where a line without its digits holds a word of the table, also without digits, or names an exception."""
    return _words().search(form.lower()) is not None


@cache
def _words() -> re.Pattern[bytes]:
    words = {word.encode().translate(None, DIGITS) for signature in table() for word in signature.any}
    words |= {*map(str.encode, _MARKS)}
    # A word that contains another one adds nothing, and few are in others.
    inner = [word for word in words if b"\n".join(words).count(word) > 1]
    least = [word for word in words if not any(other in word for other in inner if other != word)]
    return re.compile(_trie(sorted(least)) + rb"|(?:error|exception)(?=(?:\x1b\[;*m)*(?::|\W*$)|\([\x27\x22])")


def _trie(words: list[bytes]) -> bytes:
    """One pattern for many words, common beginnings taken together: each position of a text is tried once."""
    if b"" in words:
        return b""
    groups: dict[bytes, list[bytes]] = {}
    for word in words:
        groups.setdefault(word[:1], []).append(word[1:])
    branches = [re.escape(first) + _trie(rest) for first, rest in sorted(groups.items())]
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"


def _parts(number: int, texts: list[bytes], index: int) -> Iterator[tuple[int, str, Callable[[], Iterable[str]]]]:
    """A line's number, text and what was before; progress bars return to the margin instead of ending it: several."""
    parts = [part for part in texts[index].split(b"\r") if part]
    for at, part in enumerate(parts, start=1):
        if at == len(parts) or notable(part.translate(None, DIGITS)):
            yield number, _text(part), _before(texts, index)


def _before(texts: list[bytes], index: int) -> Callable[[], Iterator[str]]:
    return lambda: (_text(line[:200]) for line in reversed(texts[max(0, index - 30) : index]))


def _text(line: bytes) -> str:
    if len(line) > LONGEST:
        found = _words().search(line.lower())
        begin = max(HEAD, (found.start() if found else 0) - LONGEST // 4)
        line = line[:HEAD] + line[begin : begin + LONGEST]  # its begin names its writer and its level
    return line.decode(errors="replace")
