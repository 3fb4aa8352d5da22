"""Answers of the service, good and bad, as typed values."""

from __future__ import annotations

import email.utils
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from amlstack.base.redaction import scrub

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_DELAY: Final = 60.0
"""Seconds between two looks at an operation, at most."""


class ArmError(Exception):
    """The service refused, or could not be asked.

    Attributes:
        status: HTTP status; 0 when there was no answer at all.
        code: The service's error code, e.g. ``ResourceNotFound``; ours are ``ConnectionFailed`` and ``NoCredential``.
        message: The service's own words, without anything secret.
        waited: Seconds that the service itself asked to wait (``Retry-After``) before the request was given up.
    """

    def __init__(self, status: int, code: str, message: str, *, waited: float = 0.0) -> None:
        self.status = status
        self.code = code
        self.message = scrub(message)
        self.waited = waited
        super().__init__(f"{self.code} ({status}): {self.message}" if status else self.message)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer with a status below 400, or one of those that the caller allowed.

    Attributes:
        status: HTTP status.
        body: Parsed JSON; ``{}`` when there is none.
        headers: Names in lower case.
        url: The absolute URL that answered.
        waited: Seconds that the service asked to wait before it gave this answer, which is that of a fault.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    waited: float = 0.0

    @property
    def delay(self) -> float | None:
        """Seconds until the next look at an operation, a minute at most; ``None`` when the service does not say."""
        seconds = self.retry_after
        return None if seconds is None else min(seconds, LONGEST_DELAY)

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the service wants to be asked again; ``None`` when it does not say."""
        for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
            seconds = _seconds(self.headers.get(name, "")) * unit
            if seconds > 0:
                return seconds
        return None


def no_answer(url: str, error: Exception) -> ArmError:
    """The typed error of a connection that could not be made, or broke."""
    return ArmError(0, "ConnectionFailed", f"no answer from {urlsplit(url).netloc}: {error}")


def error_of(response: Response, fallback: str = "") -> ArmError:
    """The typed error of an answer; ARM wraps it in ``error``, the data plane does not always."""
    body = response.body if isinstance(response.body, dict) else {}
    inner = body.get("error")
    error: dict[str, Any] = inner if isinstance(inner, dict) else body
    code = str(error.get("code") or f"Http{response.status}")
    message = str(error.get("message") or fallback.strip()[:500] or "the service gave no reason")
    details = [str(item.get("message")) for item in error.get("details") or () if isinstance(item, dict)]
    more = [text for text in details if text and text != "None" and text not in message]
    return ArmError(response.status, code, " ".join((message, *more)), waited=response.waited)


def parsed(text: str) -> Any:
    """The JSON of an answer; ``{}`` when there is none."""
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return {}


def _seconds(text: str) -> float:
    """A number, or a date as the seconds until then; 0 for neither."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0
