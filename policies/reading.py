"""Reads values out of a resource as the engine shows it to a policy: wire names, proxies, unknowns.

During a preview the engine does not know every value, and touching such a one raises. Here that becomes a value of its
own, so that a rule can say what it could not judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pulumi_policy.proxy import UnknownValueError

AT_UP = "is not known before the update"
AT_RUN = "is an expression that Azure resolves later"
ABSENT = "is not declared"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that nobody can judge yet: where it stands and why, e.g. ``is not known before the update``."""

    path: str
    why: str = AT_UP


def dig(props: Any, *path: str) -> Any:
    """The value at a path of property names: None where something on the way is missing, Unknown where unknown.

    Args:
        props: A resource's properties as the SDK hands them over (or plain dictionaries).
        path: Property names, outermost first.
    """
    value = props
    for depth, name in enumerate(path, start=1):
        if not isinstance(value, Mapping):
            return None
        try:
            value = value[name]
        except KeyError:
            return None
        except UnknownValueError:
            return Unknown(".".join(path[:depth]))
    return value


def text(props: Any, *path: str) -> str | Unknown | None:
    """The text at a path; None where there is none, Unknown for an expression or an unknown value."""
    value = dig(props, *path)
    if isinstance(value, str) and _is_expression(value):
        return Unknown(".".join(path), AT_RUN)
    return value if isinstance(value, str | Unknown) else None


def number(props: Any, *path: str) -> int | Unknown | None:
    """The whole number at a path, also when written as text; None where there is none, Unknown as for `text`.

    Numbers arrive as floats. What is neither a number nor missing is taken for an expression.
    """
    value = dig(props, *path)
    if value is None or isinstance(value, Unknown):
        return value
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return Unknown(".".join(path), AT_RUN)


def flag(props: Any, *path: str) -> bool | Unknown:
    """Whether the tag at a path says ``true``; tags are text."""
    value = dig(props, *path)
    if isinstance(value, Unknown):
        return value
    return str(value).strip().lower() == "true"


def names(props: Any, *path: str) -> tuple[str, ...]:
    """The names in the mapping at a path, sorted: the wire keeps no order. Empty where there is no mapping."""
    value = dig(props, *path)
    return tuple(sorted(map(str, value))) if isinstance(value, Mapping) else ()


def _is_expression(value: str) -> bool:
    return "${{" in value or (value.startswith("[") and value.endswith("]"))
