"""A resource's properties off the wire: plain Python, secrets as their values, what is not known yet as `UNKNOWN`.

The signatures and sentinels are constants of Pulumi's protocol.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Struct, Value

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a constant of the protocol
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWNS: Final = frozenset(
    {
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",  # text, and what SDKs send for any type
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)


class NotKnown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"


UNKNOWN: Final = NotKnown.UNKNOWN
"""Stands for a value that the engine knows only once another resource exists."""


def decode(struct: Struct) -> dict[str, Any]:
    """The properties as plain Python; whole numbers stay floats, as they arrive."""
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: Value) -> Any:
    match value.WhichOneof("kind"):
        case "string_value":
            text = value.string_value
            return UNKNOWN if text in _UNKNOWNS else text
        case "struct_value":
            fields = value.struct_value.fields
            return _special(fields) if SIGNATURE in fields else {key: _value(one) for key, one in fields.items()}
        case "list_value":
            return [_value(one) for one in value.list_value.values]
        case "number_value":
            return value.number_value
        case "bool_value":
            return value.bool_value
        case _:
            return None


def _special(fields: Any) -> Any:
    match fields[SIGNATURE].string_value:
        case kind if kind == _SECRET:
            return _value(fields["value"]) if "value" in fields else UNKNOWN
        case kind if kind == _OUTPUT:
            return _value(fields["value"]) if "value" in fields else UNKNOWN
        case _:  # assets, archives, references to resources: nothing that a rule reads
            return {key: _value(one) for key, one in fields.items() if key != SIGNATURE}


def put(struct: Struct, path: tuple[str, ...], value: Any) -> None:
    """Write one value into properties, in place; what stands beside it stays as it is, secrets included.

    Args:
        struct: The properties.
        path: Property names, outermost first; maps on the way are made where they are missing.
        value: Text, a number, or a map of texts.
    """
    at = struct
    for name in path[:-1]:
        inner = at.fields[name]
        at = inner.struct_value
        if SIGNATURE in at.fields:  # a secret map: its content is one level further down
            at = at.fields["value"].struct_value
    if isinstance(value, dict):
        put_all = at.fields[path[-1]].struct_value
        put_all.Clear()
        put_all.update(value)
    else:
        at.update({path[-1]: value})
