"""The table that torchrun prints when a rank failed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ROW = re.compile(r"^\s*(?P<key>time|host|rank|exitcode|error_file|traceback|msg)\s*: ?(?P<value>.*)$")
_RANK = re.compile(r"(?P<rank>\d+) \(local_rank: (?P<local>\d+)\)")
_CODE = re.compile(r"(?P<code>-?\d+)")
_BEGIN = re.compile(r"^\s*(?:Failures|Root Cause(?: \(first observed failure\))?|Other Failures):?\s*$")
_ROOT = re.compile(r"Root Cause")
_BULLET = re.compile(r"^\s*\[\d+\]:\s*$")
_RULE = re.compile(r"^\s*(?:[=*-]{5,}|<NO_OTHER_FAILURES>)\s*$")
MOST_LINES = 200


@dataclass(slots=True)
class FailedProcess:
    """One process of the table.

    Attributes:
        line: The line of its exit code.
        root: It is listed under "Root Cause".
        rank, local: Its ranks.
        code: Exit code; negative for a signal.
        host: Its node.
        time: As written.
        error_file: Where its exception was left; None for ``<N/A>``.
        reason: Text of its traceback or message, when the table has one.
    """

    line: int = 0
    root: bool = False
    rank: int | None = None
    local: int | None = None
    code: int | None = None
    host: str | None = None
    time: str = ""
    error_file: str | None = None
    reason: list[str] = field(default_factory=list)

    @property
    def last_reason(self) -> str:
        """The last line of its reason; empty when the table holds none."""
        lines = [line.strip() for line in self.reason if line.strip()]
        if not lines or lines[0].startswith(("To enable traceback", "Process failed", '"Process failed', "Signal ")):
            return ""
        return lines[-1].strip('"')


@dataclass(slots=True)
class TableReader:
    """Reads such a table line by line.

    Attributes:
        open: Inside a table.
    """

    open: bool = False
    _root: bool = False
    _row: FailedProcess | None = None
    _left: int = 0
    _in_reason: bool = False

    def feed(self, text: str, number: int) -> FailedProcess | None:
        """Takes one line, its prefix stripped; a row when it is complete."""
        if _BEGIN.match(text):
            done = self._close()
            self.open, self._left, self._root = True, MOST_LINES, bool(_ROOT.search(text))
            return done
        if not self.open:
            return None
        self._left -= 1
        if self._left < 0:
            self.open = False
            return self._close()
        if _BULLET.match(text):
            done = self._close()
            self._row, self._left = FailedProcess(number, self._root), MOST_LINES
            return done
        if _RULE.match(text):
            return self._ruled(text)
        if self._row is not None:
            self._fill(self._row, text, number)
        return None

    def finish(self) -> FailedProcess | None:
        """The row that the end of the file left unfinished."""
        return self._close()

    def _ruled(self, text: str) -> FailedProcess | None:
        done = self._close()
        if self._root and text.lstrip()[:1] in "=*":
            # The new form ends here; the old one lists the others below, after another header.
            self.open = False
        return done

    def _fill(self, row: FailedProcess, text: str, number: int) -> None:
        found = _ROW.match(text)
        if found is None or (self._in_reason and text.startswith("    ")):
            if self._in_reason:
                row.reason.append(text)
            return
        key, value = found["key"], found["value"].strip()
        self._in_reason = key in ("traceback", "msg")
        if key == "rank" and (ranks := _RANK.search(value)):
            row.rank, row.local = int(ranks["rank"]), int(ranks["local"])
        elif key == "exitcode" and (code := _CODE.search(value)):
            row.code, row.line = int(code["code"]), number
        elif key == "host":
            row.host = value or None
        elif key == "time":
            row.time = value.replace("_", " ")
        elif key == "error_file":
            row.error_file = None if value in ("<N/A>", "") else value
        elif self._in_reason:
            row.reason = [value]

    def _close(self) -> FailedProcess | None:
        row, self._row, self._in_reason = self._row, None, False
        return row if row is not None and row.rank is not None and row.code is not None else None
