"""A job as a person declares it in Python: the same fields with the types of `jobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jobs
from jobs.values import Model

if TYPE_CHECKING:
    from jobs.model.pipeline import Declared

_WIDTH = 110


def as_python(job: Declared) -> str:
    """A Python job file with this job, as little enriched as a YAML file is."""
    used: set[str] = set()
    text = _expression(jobs.with_enrich(job, False), 0, used)
    return f"from jobs import {', '.join(sorted(used))}\n\njob = {text}\n"


def _expression(value: Any, indent: int, used: set[str]) -> str:
    """A value as Python, over several lines where one does not hold it."""
    if isinstance(value, Model):
        name = type(value).__name__
        fields = {key: getattr(value, key) for key, of in type(value).model_fields.items() if _said(value, key, of)}
        if name in jobs.__all__:
            used.add(name)
            return _joined(f"{name}(", [(f"{key}=", each) for key, each in fields.items()], ")", indent, used)
        value = fields
    if isinstance(value, dict):
        return _joined("{", [(f"{key!r}: ", each) for key, each in value.items()], "}", indent, used)
    if isinstance(value, (list, tuple)):
        return _joined("[", [("", each) for each in value], "]", indent, used)
    return repr(str(value)) if isinstance(value, str) else repr(value)


def _said(value: Model, key: str, field: Any) -> bool:
    """True for what the declaration says: what differs from its default, and the kind of what a mapping holds."""
    own = getattr(value, key)
    named = type(value).__name__ in jobs.__all__
    return own != field.get_default(call_default_factory=True) or (key == "type" and not named)


def _joined(begin: str, parts: list[tuple[str, Any]], end: str, indent: int, used: set[str]) -> str:
    inner = [f"{head}{_expression(each, indent + 4, used)}" for head, each in parts]
    line = f"{begin}{', '.join(inner)}{end}"
    if indent + len(line) <= _WIDTH and "\n" not in line:
        return line
    return f"{begin}\n" + "".join(f"{' ' * (indent + 4)}{each},\n" for each in inner) + f"{' ' * indent}{end}"
