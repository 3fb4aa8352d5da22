"""Paths of properties in the engine's grammar: ``scaleSettings.maxNodeCount``, ``tags["a.b"]``, ``rules[0]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PART: Final = re.compile(r'\.?(?P<name>[^.\[\]"]+)|\["(?P<quoted>(?:[^"\\]|\\.)*)"\]|\[(?P<index>\d+)\]')
MISSING: Final = object()
"""Stands for a value that is not there; None is one that is."""


def parts(path: str) -> list[str | int]:
    """The names and indices of a path."""
    found: list[str | int] = []
    for match in _PART.finditer(path):
        if match["index"] is not None:
            found.append(int(match["index"]))
        elif match["quoted"] is not None:
            found.append(re.sub(r"\\(.)", r"\1", match["quoted"]))
        else:
            found.append(match["name"])
    return found


def value_at(values: Any, path: str) -> Any:
    """The value of a path; `MISSING` where there is none."""
    for part in parts(path):
        if isinstance(part, str):
            values = values.get(part, MISSING) if isinstance(values, dict) else MISSING
        else:
            values = values[part] if isinstance(values, list) and part < len(values) else MISSING
    return values


def member(path: str, name: str) -> str:
    """The path of a member."""
    if name and not any(sign in name for sign in '.[]"'):
        return f"{path}.{name}" if path else name
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'{path}["{quoted}"]'


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Path, old and new value of each difference; objects are gone through, lists are one value.

    Nothing there, None and an empty object are the same: services differ in which of them they answer.
    """
    old, new = (None if value is MISSING or value == {} else value for value in (old, new))
    if old == new:
        return
    if isinstance(old, dict | None) and isinstance(new, dict | None):
        for name in dict.fromkeys((*(old or ()), *(new or ()))):
            yield from differences((old or {}).get(name), (new or {}).get(name), member(path, name))
        return
    yield path, old, new
