"""Prefixes that a log itself teaches: numbers before most of its lines, and what stood before a traceback's header."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from amlstack.diagnose.reading.tracebacks import HEADER
from amlstack.diagnose.reading.writers import prefixes

if TYPE_CHECKING:
    from amlstack.diagnose.reading.writers.prefixes import Line

MOST = 8
"""Forms of prefixes that are remembered of one log."""
LONGEST = 200
_RANKED = re.compile(r"\brank[ _:=]{0,2}(?P<rank>\d{1,6})(?![\d./])|^\[(?P<rank2>\d{1,6})\]", re.IGNORECASE)
_NUMBERED = re.compile(r"(?P<open>\[?)(?P<rank>\d{1,6})(?P<close>\]?:? )(?:Traceback \(most|slurmstepd: )")
SAMPLE = 400
"""Lines that show whether a log's lines are labelled."""
_LABELS = (
    re.compile(r" {0,5}(?P<rank>\d{1,6}):(?: |$)"),  # srun --label
    re.compile(r"\[ {0,5}(?P<rank>\d{1,6})\](?::? |$)"),  # hydra's and others' -l
)
_OTHERS = ("srun:", "slurmstepd:", "-----", "=====")
"""What launchers write between the lines that they label."""
MOST_WORDS = 6
"""Words of a prefix: more are a sentence."""
_WORDS = re.compile(r"[A-Za-z]{2,}")
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class Prefixes:
    """The forms of one log."""

    _forms: list[re.Pattern[str]] = field(default_factory=list)
    _label: re.Pattern[str] | None = None

    def of(self, raw: str) -> Line:
        """The line without its prefixes, and who wrote it."""
        if self._label is not None and (found := self._label.match(raw)):
            line = prefixes.strip(raw[found.end() :])
            return line if line.rank is not None else replace(line, rank=int(found["rank"]), task=True)
        return self.strip(raw, prefixes.strip(raw))

    def sample(self, begin: bytes) -> None:
        """Takes the begin of the log: numbers before most of its lines are labels, unless they only count the lines.

        A counter gives each number once, labels come again.
        """
        rows = [row.decode(errors="replace") for row in begin.splitlines()[-SAMPLE:] if row.strip()]
        rows = [row for row in rows if not row.startswith(_OTHERS)]
        for form in _LABELS:
            numbers = [found["rank"] for row in rows if (found := form.match(row))]
            bracketed = form is _LABELS[1]
            if len(numbers) * 10 >= len(rows) * 6 and len(numbers) > len(set(numbers)) > bracketed:
                self._label = form
                return

    def strip(self, raw: str, line: Line) -> Line:
        """The line without a prefix that this log has taught, its rank known.

        Args:
            raw: As it stands in the log.
            line: Without the prefixes that every log may have.
        """
        if line.rank is None:
            self._learn(line.text)
        elif HEADER in line.text and (found := _NUMBERED.match(raw)):
            self._add(re.escape(found["open"]) + r"(?P<rank>\d{1,6})" + re.escape(found["close"]))
        if line.rank is None:
            for form in self._forms:
                if found := form.match(line.text):
                    return replace(line, text=line.text[found.end() :], rank=int(found["rank"]))
        return line

    def _learn(self, text: str) -> None:
        before, header, _ = text.partition(HEADER)
        if not header or not before.strip() or len(before) > LONGEST or len(_WORDS.findall(before)) > MOST_WORDS:
            return
        found = _RANKED.search(before)
        if found is None:
            return
        begin, end = found.span("rank" if found["rank"] else "rank2")
        form = _digitless(before[:begin]) + r"(?P<rank>\d{1,6})" + _digitless(before[end:])
        self._add(form)

    def _add(self, form: str) -> None:
        if len(self._forms) < MOST and form not in {each.pattern for each in self._forms}:
            self._forms.append(re.compile(form))


def _digitless(text: str) -> str:
    """A pattern of a text whose numbers may be others."""
    return r"\d+".join(re.escape(part) for part in _DIGITS.split(text))
