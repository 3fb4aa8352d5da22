"""Property values on Pulumi's wire: protobuf ``Struct`` to plain Python (`amlstack.rpc.values`) and back.

The signatures are those of Pulumi's SDK (``sdk/go/common/resource/sig`` and ``plugin/rpc.go``); they are protocol
constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import struct_pb2

from amlstack.rpc.values import UNKNOWN, Secret, Unknown, ValueRefusedError, member

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""The key that marks a wire object as something else than a map."""

_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a protocol constant
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_REFUSED: Final = {
    "c44067f5952c0a294b673a41bacd8c17": "an asset",
    "0def7320c3a5731c473e5ecbe6d01bc7": "an archive",
    "5cf8f73096256a8f31e491e813e4eb8e": "a resource reference",
}
_UNKNOWNS: Final = frozenset(
    {
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",  # string, and what SDKs send for any type
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
_UNKNOWN_ON_WIRE: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_EXACT: Final = 2**53
"""Integers beyond this lose digits in a protobuf double."""


def decode(struct: struct_pb2.Struct | None) -> dict[str, Any]:
    """A wire struct as plain Python; whole numbers become ``int``.

    Raises:
        ValueRefusedError: An asset, an archive, a resource reference or an unknown signature, naming its path.
    """
    return {} if struct is None else _decode_fields(struct, "")


def _decode_fields(struct: struct_pb2.Struct, path: str) -> dict[str, Any]:
    return {key: _decode(value, member(path, key)) for key, value in struct.fields.items()}


def _decode(value: struct_pb2.Value, path: str) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            return _decode_struct(value.struct_value, path)
        case "list_value":
            return [_decode(item, f"{path}[{index}]") for index, item in enumerate(value.list_value.values)]
        case "string_value":
            return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
        case "number_value":
            number = value.number_value
            return int(number) if math.isfinite(number) and number.is_integer() else number
        case "bool_value":
            return value.bool_value
        case _:
            return None


def _decode_struct(struct: struct_pb2.Struct, path: str) -> Any:
    signature = struct.fields[SIGNATURE].string_value if SIGNATURE in struct.fields else None
    if signature is None:
        return _decode_fields(struct, path)
    if signature == _SECRET:
        return _secret(_decode(struct.fields["value"], path))
    if signature == _OUTPUT:
        inner = _decode(struct.fields["value"], path) if "value" in struct.fields else UNKNOWN
        return _secret(inner) if struct.fields["secret"].bool_value else inner
    what = _REFUSED.get(signature, f"a value with the signature {signature}")
    raise ValueRefusedError(path, f"{what} is not taken here; give plain JSON values")


def _secret(value: Any) -> Any:
    # A secret of a secret says nothing more; a secret unknown stays both, so that the state keeps it encrypted.
    return value if isinstance(value, Secret) else Secret(value)


def encode(
    values: Mapping[str, Any], *, keep_secrets: bool = True, keep_unknowns: bool = False, drop_none: bool = False
) -> struct_pb2.Struct:
    """Plain Python as a wire struct.

    Args:
        values: What to send; may hold `UNKNOWN` and `Secret` anywhere.
        keep_secrets: Mark secrets as such; without, their values are sent bare (a peer that did not accept secrets).
        keep_unknowns: Send unknowns (at preview only); without, an unknown is refused.
        drop_none: Leave out map members that are ``None``.

    Raises:
        ValueRefusedError: A type that JSON does not have, an integer that a double cannot hold, or an unknown.
    """
    encoder = _Encoder(keep_secrets, keep_unknowns, drop_none)
    return encoder.struct(values, "")


@dataclass(frozen=True, slots=True)
class _Encoder:
    keep_secrets: bool
    keep_unknowns: bool
    drop_none: bool

    def struct(self, values: Mapping[str, Any], path: str) -> struct_pb2.Struct:
        result = struct_pb2.Struct()
        for key, value in values.items():
            if not isinstance(key, str):
                raise ValueRefusedError(path, f"the key {key!r} is no string")
            if value is None and self.drop_none:
                continue
            result.fields[key].CopyFrom(self.value(value, member(path, key)))
        return result

    def value(self, value: Any, path: str) -> struct_pb2.Value:
        match value:
            case None:
                return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
            case Unknown():
                if not self.keep_unknowns:
                    raise ValueRefusedError(path, "is not known yet, and only a preview may leave it open")
                return struct_pb2.Value(string_value=_UNKNOWN_ON_WIRE)
            case Secret():
                return self.secret(value, path)
            case bool():
                return struct_pb2.Value(bool_value=value)
            case int() if abs(value) > _EXACT:
                raise ValueRefusedError(path, f"the integer {value} does not fit Pulumi's wire; write it as a string")
            case int() | float():
                return struct_pb2.Value(number_value=float(value))
            case str():
                return struct_pb2.Value(string_value=str(value))
            case Mapping():
                return struct_pb2.Value(struct_value=self.struct(value, path))
            case Sequence() if not isinstance(value, bytes | bytearray):
                items = [self.value(item, f"{path}[{index}]") for index, item in enumerate(value)]
                return struct_pb2.Value(list_value=struct_pb2.ListValue(values=items))
            case _:
                raise ValueRefusedError(path, f"a {type(value).__name__} is no JSON value")

    def secret(self, secret: Secret, path: str) -> struct_pb2.Value:
        inner = self.value(secret.value, path)
        if not self.keep_secrets:
            return inner
        wrapped = struct_pb2.Struct()
        wrapped.fields[SIGNATURE].string_value = _SECRET
        wrapped.fields["value"].CopyFrom(inner)
        return struct_pb2.Value(struct_value=wrapped)
