"""Records in logs: JSON files, errors of Azure ML and torchrun's table of failures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from amlstack.base.credentials import scrub
from amlstack.diagnose import signatures
from amlstack.diagnose.events import Event, Log, Origin, Stamp
from amlstack.diagnose.reading import tracebacks, writers
from amlstack.diagnose.signatures import EventRole, by_code, match

DEEPEST = 12
MOST = 200
_TELLING = re.compile(r"error|fail|preempt|evict|unusable|cancel|timeout|timed out|exceed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RunError:
    """One of the service's errors.

    Attributes:
        code: Its own code, the innermost last: ``UserError.ScriptExecution.StreamAccess.NotFound``.
        message: Its message.
    """

    code: str
    message: str


def found_in(data: Any) -> tuple[RunError, ...] | None:
    """The errors of a run that a JSON value holds, the outermost first; None when it is no record of the service.

    A record that says nothing of an error, of a run that went well, gives an empty tuple.
    """
    if not isinstance(data, Mapping):
        return None
    properties = data.get("properties")
    record = properties if isinstance(properties, Mapping) else data
    error = record.get("error") or data.get("error")
    if isinstance(error, Mapping):
        # A response of a REST call wraps the error in another one that has no code of its own.
        inner = error.get("error") if isinstance(error.get("error"), Mapping) and "code" not in error else error
        return tuple(_errors(inner, "", 0))[:MOST] or None
    if isinstance(events := data.get("value") or data.get("events"), list):
        found = tuple(each for event in events[:MOST] if (each := _event(event)) is not None)
        return found if found or any(isinstance(each, Mapping) and "message" in each for each in events) else None
    return None


def _errors(error: Any, outer: str, depth: int) -> list[RunError]:
    if not isinstance(error, Mapping) or depth > DEEPEST:
        return []
    own = str(error.get("code") or "")
    code = ".".join(part for part in (outer, own) if part)
    inner = error.get("innerError") or error.get("inner_error") or error.get("innererror")
    chain = code
    deepest = inner
    for _ in range(DEEPEST):
        if not isinstance(deepest, Mapping):
            break
        chain = ".".join(part for part in (chain, str(deepest.get("code") or "")) if part)
        deepest = deepest.get("innerError") or deepest.get("inner_error") or deepest.get("innererror")
    message = str(error.get("message") or error.get("messageFormat") or "")
    found = [RunError(chain, message)] if chain or message else []
    details = error.get("details")
    for each in details[:MOST] if isinstance(details, list) else []:
        found += _errors(each, code, depth + 1)
    return found


def _event(event: Any) -> RunError | None:
    """An event of a run or a cluster whose words tell of an end."""
    if not isinstance(event, Mapping):
        return None
    name = str(event.get("code") or event.get("name") or event.get("eventType") or event.get("type") or "")
    attributes = event.get("attributes")
    inner = attributes.get("message") if isinstance(attributes, Mapping) else ""
    message = str(event.get("message") or inner or "")
    level = str(event.get("level") or event.get("severity") or "")
    if not _TELLING.search(f"{name} {message} {level}"):
        return None
    return RunError(name, message)


LARGEST = 4 << 20
"""Such files are small; a larger one is read as a log."""


def parse(name: str, text: str, *, rank: int | None = None, node: str | None = None) -> Log | None:
    """An error file of torchrun or the sandbox's ``report.json``; None when it is neither."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("ranks"), list) and "status" in data:
        return _report(name, data)
    if (errors := found_in(data)) is not None:
        return _of_service(name, errors)
    if "message" in data:
        return _error_file(name, data["message"], rank, node)
    return None


def _of_service(name: str, errors: tuple[RunError, ...]) -> Log:
    """The service's own words on a run: the most exact code decides, and its message is shown."""
    events = []
    for error in errors:
        found = match(f"{error.code}: {error.message}") or match(error.message)
        signature = found[0] if found is not None else by_code("azureml-user-error")
        if signature.role in (EventRole.CONTEXT, EventRole.NOISE):
            signature = by_code("azureml-user-error")
        facts: dict[str, Any] = {"service": error.code}
        rank = writers.inline_rank(error.message)
        text = scrub(f"{error.code}: {error.message}"[:500])
        event = Event(signature, name, 1, text, signature.role, Origin.RECORD, rank=rank, facts=facts)
        events.append(event)
    return Log(name=name, lines=1, events=tuple(events))


def _error_file(name: str, message: Any, rank: int | None, node: str | None) -> Log:
    stack, stamp = "", None
    if isinstance(message, dict):
        extra = message.get("extraInfo")
        if isinstance(extra, dict):
            stack = str(extra.get("py_callstack") or "")
            stamp = _stamp(extra.get("timestamp"))
        message = message.get("message")
    text = str(message or "").strip()
    last = next((line.strip() for line in reversed(stack.splitlines()) if tracebacks.exception(line.strip())), "")
    first = (text.splitlines() or [last])[0].strip() or last
    found = match(text) or match(last)
    signature = found[0] if found is not None else by_code("python-exception")
    event = Event(
        signature=signature,
        file=name,
        line=1,
        text=scrub(first[:500]),
        role=signature.role,
        origin=Origin.TRACEBACK,
        rank=rank if writers.inline_rank(text) is None else writers.inline_rank(text),
        node=node,
        time=stamp,
        source=tracebacks.frame_in(stack) if stack else None,
    )
    return Log(name=name, lines=1, rank=rank, node=node, events=(event,) if first else ())


def _report(name: str, data: Mapping[str, Any]) -> Log:
    entries = [entry for entry in data["ranks"] if isinstance(entry, dict) and isinstance(entry.get("rank"), int)]
    events = [event for entry in entries if (event := _ended(name, entry)) is not None]
    error = data.get("error")
    if isinstance(error, dict) and error.get("message"):
        text = str(error["message"])
        found = match(f"{error.get('code', '')}: {text}")
        if not entries and (found is None or found[0].role is EventRole.SUMMARY):
            signature = by_code("job-refused")  # no process of it ever ran: there is no other log to look into
        else:
            signature = found[0] if found is not None else by_code("azureml-user-error")
        named = re.search(r"\brank (\d+) of \d+", text)
        rank = int(named[1]) if named else None
        role = signature.role
        events.append(Event(signature, name, 1, scrub(text[:500]), role, Origin.RECORD, rank=rank))
    elif data["status"] == "Canceled":
        signature = by_code("job-cancelled")
        events.append(Event(signature, name, 1, "the job was cancelled", signature.role, Origin.RECORD))
    return Log(
        name=name,
        lines=1,
        ranks=frozenset(entry["rank"] for entry in entries),
        places={entry["rank"]: str(entry["node"]) for entry in entries if entry.get("node") is not None},
        world=data.get("world_size") if isinstance(data.get("world_size"), int) else len(entries) or None,
        events=tuple(events),
    )


def _ended(name: str, entry: Mapping[str, Any]) -> Event | None:
    code = entry.get("code")
    if not isinstance(code, int) or code == 0:
        return None
    signature = by_code(signatures.code_of(code) or "exit-without-reason")
    node = entry.get("node")
    logs = entry.get("logs")
    return Event(
        signature=signature,
        file=name,
        line=1,
        text=f"rank {entry['rank']} ended with exit code {code}",
        role=signature.role,
        origin=Origin.RECORD,
        rank=entry["rank"],
        local=entry.get("local_rank") if isinstance(entry.get("local_rank"), int) else None,
        node=None if node is None else str(node),
        time=_stamp(entry.get("ended")),
        facts={"exit": code, "log": str(logs[0]) if isinstance(logs, list) and logs else ""},
    )


def _stamp(value: Any) -> Stamp | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return Stamp(seconds) if 0 < seconds < 1e10 else None


_ROW = re.compile(r"^\s*(?P<key>time|host|rank|exitcode|error_file|traceback|msg)\s*: ?(?P<value>.*)$")
_TABLE_RANK = re.compile(r"(?P<rank>\d+) \(local[_ ]rank: ?(?P<local>\d+)\)")
_JOINED = re.compile(r"\brank\W*(?=\d)(?P<rank>.*?\))\s*exitcode\s*:(?P<code>.*)")
"""A row whose lines lost their ends."""
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
        if joined := _JOINED.search(text):
            self._fill(row, f"rank: {joined['rank']}", number)
            self._fill(row, f"exitcode: {joined['code']}", number)
            return
        if found is None or (self._in_reason and text.startswith("    ")):
            if self._in_reason:
                row.reason.append(text)
            return
        key, value = found["key"], found["value"].strip()
        self._in_reason = key in ("traceback", "msg")
        if key == "rank" and (ranks := _TABLE_RANK.search(value)):
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
