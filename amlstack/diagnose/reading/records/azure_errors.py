"""What Azure ML itself says of a run: its error, with codes within codes, and its events.

``az ml job show``, the run's details in the studio and ARM's responses have one shape: ``error`` with ``code``,
``message``, ``details`` and ``innerError``, within each other. Source: https://learn.microsoft.com/rest/api/azureml/jobs/get
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
