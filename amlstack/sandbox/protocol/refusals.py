"""Refusals of the service: a status, a code and one sentence, in ARM's error shape."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

from amlstack.base import text
from amlstack.sandbox.protocol.times import with_offset


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """A request is refused.

    Args:
        status: HTTP status.
        code: ARM error code.
        message: What was seen, the rule and what to write instead.
        target: Path of the property it is about.
        details: The errors below it.
        inner: Codes of the errors inside each other, the outermost first.
        template: The message with names in braces, and their values.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        target: str | None = None,
        *,
        details: tuple[Any, ...] = (),
        inner: tuple[str, ...] = (),
        template: tuple[str, dict[str, str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.target = target
        self.details = details
        self.inner = inner
        self.template = template
        self.region: str | None = None
        self.beside: Mapping[str, Any] = {}

    @property
    def body(self) -> dict[str, Any]:
        """``{"error": {"code", "message"[, "target"][, "details"]}}``."""
        more = {"target": self.target, "details": list(self.details) or None}
        shown = {key: value for key, value in more.items() if value is not None}
        error = {"code": self.code, "message": self.message, **shown}
        if self.region is not None:
            error |= {"details": list(self.details), "additionalInfo": self._of_frontend(self.region)}
        return {"error": error, **self.beside}

    def _of_frontend(self, region: str) -> list[Any]:
        """The parts that Azure Machine Learning's front end adds to each refusal of its own."""
        inner: Any = None
        for code in reversed(self.inner):
            inner = {"code": code, "innerError": inner}
        words = {
            "ComponentName": "managementfrontend",
            "Correlation": {"operation": secrets.token_hex(16), "request": secrets.token_hex(8)},
            "Environment": region,
            "Location": region,
            "Time": with_offset(time.time()),
            **({"InnerError": inner} if inner else {}),
            **(dict(zip(("MessageFormat", "MessageParameters"), self.template, strict=True)) if self.template else {}),
        }
        return [{"type": name, "info": {"value": value}} for name, value in words.items()]


def not_emulated(what: str) -> Refused:
    """The sandbox does not know this; a plausible empty answer would hide a mistake."""
    return Refused(501, "SandboxNotEmulated", f"The sandbox does not emulate {what}. See docs/reference/sandbox.md.")


def invalid(path: str, message: str) -> Refused:
    """The body is wrong at ``path``."""
    return Refused(400, "InvalidRequestContent", f"The request content was invalid at '{path}': {message}", path)


def near(word: str, known: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` for the nearest known word, else all of them when few, else nothing."""
    words = sorted(known)
    return text.hint(word, words, "'") or (f" Known: {', '.join(words)}." if 0 < len(words) <= 12 else "")
