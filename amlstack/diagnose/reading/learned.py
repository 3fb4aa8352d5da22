"""Prefixes that a log itself teaches: what stood before a traceback's header names the writer of every other line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from amlstack.diagnose.reading.tracebacks import HEADER

if TYPE_CHECKING:
    from amlstack.diagnose.reading.prefixes import Line

MOST = 8
"""Forms of prefixes that are remembered of one log."""
LONGEST = 200
_RANKED = re.compile(r"\brank[ _:=]{0,2}(?P<rank>\d{1,6})(?![\d./])|^\[(?P<rank2>\d{1,6})\]", re.IGNORECASE)
_NUMBERED = re.compile(r"(?P<open>\[?)(?P<rank>\d{1,6})(?P<close>\]?:? )(?:Traceback \(most|slurmstepd: )")
MOST_WORDS = 6
"""Words of a prefix: more are a sentence."""
_WORDS = re.compile(r"[A-Za-z]{2,}")
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class Prefixes:
    """The forms of one log."""

    _forms: list[re.Pattern[str]] = field(default_factory=list)

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
