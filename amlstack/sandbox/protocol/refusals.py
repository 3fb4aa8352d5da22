"""Refusals of the service: a status, a code and one sentence, in ARM's error shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base import text

if TYPE_CHECKING:
    from collections.abc import Iterable


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """A request is refused.

    Args:
        status: HTTP status.
        code: ARM error code.
        message: What was seen, the rule and what to write instead.
        target: Path of the property it is about.
        details: The errors below it.
    """

    def __init__(
        self, status: int, code: str, message: str, target: str | None = None, *, details: tuple[Any, ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.target = target
        self.details = details

    @property
    def body(self) -> dict[str, Any]:
        """``{"error": {"code", "message"[, "target"][, "details"]}}``."""
        more = {"target": self.target, "details": list(self.details) or None}
        shown = {key: value for key, value in more.items() if value is not None}
        return {"error": {"code": self.code, "message": self.message, **shown}}


def not_emulated(what: str) -> Refused:
    """The sandbox does not know this; a plausible empty answer would hide a mistake."""
    return Refused(501, "SandboxNotEmulated", f"The sandbox does not emulate {what}. See docs/sandbox.md.")


def invalid(path: str, message: str) -> Refused:
    """The body is wrong at ``path``."""
    return Refused(400, "InvalidRequestContent", f"The request content was invalid at '{path}': {message}", path)


def near(word: str, known: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` for the nearest known word, else all of them when few, else nothing."""
    words = sorted(known)
    return text.hint(word, words, "'") or (f" Known: {', '.join(words)}." if 0 < len(words) <= 12 else "")
