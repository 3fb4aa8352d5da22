"""Property values on Pulumi's wire: protobuf ``Struct`` to plain Python (`amlstack.rpc.values`) and back.

The signatures are those of Pulumi's SDK (``sdk/go/common/resource/sig`` and ``plugin/rpc.go``); they are protocol
constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import struct_pb2

from amlstack.base import pulumi_wire
from amlstack.base.pulumi_wire import OUTPUT, SECRET, SIGNATURE, UNKNOWN_TEXT, NotKnown
from amlstack.rpc.values import Secret, ValueRefusedError, member

_REFUSED: Final = {
    "c44067f5952c0a294b673a41bacd8c17": "an asset",
    "0def7320c3a5731c473e5ecbe6d01bc7": "an archive",
    "5cf8f73096256a8f31e491e813e4eb8e": "a resource reference",
}
_EXACT: Final = 2**53
"""Integers beyond this lose digits in a protobuf double."""


def decode(struct: struct_pb2.Struct | None) -> dict[str, Any]:
    """A wire struct as plain Python, secrets as `Secret`; whole numbers become ``int``.

    Raises:
        ValueRefusedError: An asset, an archive, a resource reference or an unknown signature, naming its path.
    """
    if struct is None:
        return {}
    try:
        return pulumi_wire.decode(struct, _marked)
    except _SignatureRefusedError as refused:
        path = next(_refused_paths(struct_pb2.Value(struct_value=struct), ""))
        what = _REFUSED.get(refused.signature, f"a value with the signature {refused.signature}")
        raise ValueRefusedError(path, f"{what} is not taken here; give plain JSON values") from None


class _SignatureRefusedError(Exception):
    def __init__(self, signature: str) -> None:
        super().__init__(signature)
        self.signature = signature


def _marked(signature: str, fields: Mapping[str, struct_pb2.Value], read: Callable[[struct_pb2.Value], Any]) -> Any:
    if signature not in {SECRET, OUTPUT}:
        raise _SignatureRefusedError(signature)
    inner = pulumi_wire.opened(signature, fields, read)
    return _secret(inner) if signature == SECRET or ("secret" in fields and fields["secret"].bool_value) else inner


def _refused_paths(value: struct_pb2.Value, path: str) -> Iterator[str]:
    """The places of refused signatures; asked only once one was met, as paths cost time."""
    for index, item in enumerate(value.list_value.values):
        yield from _refused_paths(item, f"{path}[{index}]")
    fields = value.struct_value.fields
    if SIGNATURE not in fields:
        for key, item in fields.items():
            yield from _refused_paths(item, member(path, key))
    elif fields[SIGNATURE].string_value not in {SECRET, OUTPUT}:
        yield path
    elif "value" in fields:
        yield from _refused_paths(fields["value"], path)


def _secret(value: Any) -> Any:
    # A secret of a secret says nothing more; a secret unknown stays both, so that the state keeps it encrypted.
    return value if isinstance(value, Secret) else Secret(value)


def encode(values: Mapping[str, Any], *, keep_unknowns: bool = False) -> struct_pb2.Struct:
    """Plain Python as a wire struct.

    Args:
        values: What to send; may hold `UNKNOWN` and `Secret` anywhere.
        keep_unknowns: Send unknowns (at preview only); without, an unknown is refused.

    Raises:
        ValueRefusedError: A type that JSON does not have, an integer that a double cannot hold, or an unknown.
    """
    result = struct_pb2.Struct()
    _Encoder(keep_unknowns).struct(result, values)
    return result


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Writes values into messages in place; what is refused gets its path on the way out, as paths cost time."""

    keep_unknowns: bool

    def struct(self, target: struct_pb2.Struct, values: Mapping[str, Any]) -> None:
        fields = target.fields
        for key, value in values.items():
            if not isinstance(key, str):
                raise ValueRefusedError("", f"the key {key!r} is no string")
            try:
                self.value(fields[key], value)
            except ValueRefusedError as refused:
                raise ValueRefusedError(_joined(member("", key), refused.path), refused.reason) from None

    def value(self, target: struct_pb2.Value, value: Any) -> None:
        match value:
            case None:
                target.null_value = struct_pb2.NULL_VALUE
            case str():
                target.string_value = str(value)
            case NotKnown():
                if not self.keep_unknowns:
                    raise ValueRefusedError("", "is not known yet, and only a preview may leave it open")
                target.string_value = UNKNOWN_TEXT
            case Secret():
                self.secret(target, value)
            case bool():
                target.bool_value = value
            case int() if abs(value) > _EXACT:
                raise ValueRefusedError("", f"the integer {value} does not fit Pulumi's wire; write it as a string")
            case int() | float():
                target.number_value = float(value)
            case Mapping():
                target.struct_value.SetInParent()
                self.struct(target.struct_value, value)
            case Sequence() if not isinstance(value, bytes | bytearray):
                self.items(target.list_value, value)
            case _:
                raise ValueRefusedError("", f"a {type(value).__name__} is no JSON value")

    def items(self, target: struct_pb2.ListValue, values: Sequence[Any]) -> None:
        target.SetInParent()
        for index, item in enumerate(values):
            try:
                self.value(target.values.add(), item)
            except ValueRefusedError as refused:
                raise ValueRefusedError(_joined(f"[{index}]", refused.path), refused.reason) from None

    def secret(self, target: struct_pb2.Value, secret: Secret) -> None:
        fields = target.struct_value.fields
        fields[SIGNATURE].string_value = SECRET
        self.value(fields["value"], secret.value)


def _joined(outer: str, inner: str) -> str:
    return f"{outer}{inner}" if not inner or inner.startswith("[") else f"{outer}.{inner}"
