"""JSON files beside the logs: the exception that a rank left (torchrun's error file), and the sandbox's report."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from amlstack.base.redaction import scrub
from amlstack.diagnose import exit_codes, timestamps
from amlstack.diagnose.events import Event, Log, Origin
from amlstack.diagnose.reading import tracebacks
from amlstack.diagnose.reading.records import azure_errors
from amlstack.diagnose.reading.writers import prefixes
from amlstack.diagnose.signatures import EventRole, by_code, match

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    if (errors := azure_errors.found_in(data)) is not None:
        return _of_service(name, errors)
    if "message" in data:
        return _error_file(name, data["message"], rank, node)
    return None


def _of_service(name: str, errors: tuple[azure_errors.RunError, ...]) -> Log:
    """The service's own words on a run: the most exact code decides, and its message is shown."""
    events = []
    for error in errors:
        found = match(f"{error.code}: {error.message}") or match(error.message)
        signature = found[0] if found is not None else by_code("azureml-user-error")
        if signature.role in (EventRole.CONTEXT, EventRole.NOISE):
            signature = by_code("azureml-user-error")
        facts: dict[str, Any] = {"service": error.code}
        rank = prefixes.inline_rank(error.message)
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
        rank=rank if prefixes.inline_rank(text) is None else prefixes.inline_rank(text),
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
    signature = by_code(exit_codes.code_of(code) or "exit-without-reason")
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


def _stamp(value: Any) -> timestamps.Stamp | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return timestamps.Stamp(seconds) if 0 < seconds < 1e10 else None
