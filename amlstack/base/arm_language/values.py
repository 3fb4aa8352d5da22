"""Values of expressions: when two are equal, and the two ways in which there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 131_072
"""Most characters of a text, and elements of a list, that a function may give (Azure Policy, "Policy rule limits")."""


class OpenError(Exception):
    """A value cannot be worked out here; the reason is the message, as the end of a sentence.

    Attributes:
        why: The reason.
        later: Whether the value becomes known while the stack is brought up.
    """

    def __init__(self, why: str, *, later: bool = False) -> None:
        super().__init__(why)
        self.why, self.later = why, later


class FailingExpressionError(OpenError):
    """Azure cannot work the value out either: a deployment fails there, and a policy refuses the request."""


def alike(left: Any, right: Any) -> bool:
    """Whether two known values are equal as Azure compares them: a truth value is no number."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)
