"""``${{parent.…}}``: what a step of a pipeline takes from the pipeline and from other steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_BOUND = re.compile(r"\$\{\{\s*parent\.(?P<path>[^}]+?)\s*\}\}")


@dataclass(frozen=True, slots=True)
class BindingSource:
    """What a binding refers to.

    Attributes:
        text: The binding as it was written.
        step: Name of a step; None for the pipeline itself.
        side: ``inputs`` or ``outputs``; what else was written there, which binds nothing.
        name: Of the input or output.
    """

    text: str
    step: str | None
    side: str
    name: str


def sources(text: str) -> tuple[BindingSource, ...]:
    """All bindings in a text, in order."""
    return tuple(_source(found) for found in _BOUND.finditer(text))


def whole(text: str) -> BindingSource | None:
    """The binding that a text is, and nothing else."""
    found = _BOUND.fullmatch(text.strip())
    return None if found is None else _source(found)


def replaced(text: str, value: Callable[[BindingSource], str]) -> str:
    """The text with every binding in it replaced."""
    return _BOUND.sub(lambda found: value(_source(found)), text)


def _source(found: re.Match[str]) -> BindingSource:
    words = found["path"].split(".")
    step = None
    if words[0] == "jobs" and len(words) > 2:
        step, words = words[1], words[2:]
    side, name = words[0], ".".join(words[1:]).removesuffix(".path")
    return BindingSource(found[0], step, side, name)
