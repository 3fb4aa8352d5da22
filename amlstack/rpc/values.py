"""Property values in plain Python: JSON's, and two markers.

`UNKNOWN` stands for what is not computed yet at preview, `Secret` around what the engine must encrypt in its state.
Nothing here needs protobuf, which who only asks ARM does not want to load; `amlstack.rpc.wire` turns values into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.pulumi_wire import NotKnown

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that Pulumi encrypts in its state. Its ``repr`` never shows it."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(…)"


class ValueRefusedError(ValueError):
    """A value that these providers do not take, with its property path.

    Attributes:
        path: Where it stands, e.g. ``body.properties.code[0]``.
        reason: What it is and why it is refused, one sentence.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


def bare(value: Any) -> Any:
    """The same value with every `Secret` unwrapped: what goes to a service, never into state or a log."""
    if isinstance(value, str):  # most are
        return value
    if isinstance(value, dict):
        return {key: item if isinstance(item, str) else bare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bare(item) for item in value]
    return bare(value.value) if isinstance(value, Secret) else value


def unknown_paths(value: Any, path: str = "") -> Iterator[str]:
    """The property paths of everything that is not known yet."""
    match value:
        case NotKnown():
            yield path
        case Secret():
            yield from unknown_paths(value.value, path)
        case dict():
            for key, item in value.items():
                yield from unknown_paths(item, member(path, key))
        case list():
            for index, item in enumerate(value):
                yield from unknown_paths(item, f"{path}[{index}]")


def secret_paths(value: Any, path: str = "") -> Iterator[str]:
    """The property paths of everything that is marked secret."""
    match value:
        case Secret():
            yield path
        case dict():
            for key, item in value.items():
                yield from secret_paths(item, member(path, key))
        case list():
            for index, item in enumerate(value):
                yield from secret_paths(item, f"{path}[{index}]")


def changed_paths(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The property paths at which two values differ, deepest first common map or list; secrets compared by value.

    An unknown differs from everything but an unknown: at preview it may turn out to be anything.
    """
    old, new = _open(old), _open(new)
    match old, new:
        case dict(), dict():
            for key in dict.fromkeys((*old, *new)):
                if key in old and key in new:
                    yield from changed_paths(old[key], new[key], member(path, key))
                else:
                    yield member(path, key)
        case list(), list() if len(old) == len(new):
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from changed_paths(one, other, f"{path}[{index}]")
        case _:
            if type(old) is not type(new) or old != new:
                yield path


def _open(value: Any) -> Any:
    while isinstance(value, Secret):
        value = value.value
    # Numbers come back from the wire as int or float by their value: 1 and 1.0 are one number.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def member(path: str, key: str) -> str:
    """The property path of a map's member, quoted where its name would be misread."""
    plain = bool(key) and not any(mark in key for mark in '.[]"')
    if plain:
        return f"{path}.{key}" if path else key
    quoted = '["' + key.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    return f"{path}{quoted}"
