"""Pulumi's wire to plain Python: protobuf structs, their marked values, and what is not known yet.

The signatures and sentinels are constants of Pulumi's protocol (``sdk/go/common/resource/sig``, ``plugin/rpc.go``).
No protobuf is imported for it: callers bring their structs.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Struct, Value

    Read = Callable[[Value], Any]
    Marked = Callable[[str, Mapping[str, Value], Read], Any]

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""The key that marks a wire object as something else than a map."""

SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a constant of the protocol
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""The sentinel for text, and what SDKs send for any type."""

_UNKNOWNS: Final = frozenset(
    {
        UNKNOWN_TEXT,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


class NotKnown(enum.Enum):
    """The type of `UNKNOWN`: a value that is only known once something else has been created."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("an unknown value has no truth: compare with `is UNKNOWN` first")


UNKNOWN: Final = NotKnown.UNKNOWN


class SecretText(str):
    """A text that the engine keeps encrypted; equal to the text itself."""

    __slots__ = ()


def opened(signature: str, fields: Mapping[str, Value], read: Read) -> Any:
    """A marked value as what is in it: secrets and outputs as their values, all else as a plain map."""
    if signature in {SECRET, OUTPUT}:
        return read(fields["value"]) if "value" in fields else UNKNOWN
    return {key: read(one) for key, one in fields.items() if key != SIGNATURE}


def opened_but_known(signature: str, fields: Mapping[str, Value], read: Read) -> Any:
    """The same; a secret text is still known for one."""
    value = opened(signature, fields, read)
    return SecretText(value) if signature == SECRET and isinstance(value, str) else value


def decode(struct: Struct, marked: Marked = opened) -> dict[str, Any]:
    """A wire struct as plain Python; whole numbers become ``int``, what is not known `UNKNOWN`.

    Args:
        struct: The properties.
        marked: Makes the value of a marked object, from its signature, its fields and a reader of them.
    """

    def read(value: Value) -> Any:
        match value.WhichOneof("kind"):
            case "string_value":
                text = value.string_value
                return UNKNOWN if text in _UNKNOWNS else text
            case "struct_value":
                fields = value.struct_value.fields
                if SIGNATURE in fields:
                    return marked(fields[SIGNATURE].string_value, fields, read)
                # Not by items(): protobuf's maps make those in Python, one by one.
                return {key: read(fields[key]) for key in fields}
            case "list_value":
                return [read(one) for one in value.list_value.values]
            case "number_value":
                number = value.number_value
                return int(number) if number.is_integer() else number
            case "bool_value":
                return value.bool_value
            case _:
                return None

    fields = struct.fields
    return {key: read(fields[key]) for key in fields}
