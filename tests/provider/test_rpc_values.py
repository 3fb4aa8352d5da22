from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from amlstack.base.credentials import scrub
from amlstack.rpc import (
    UNKNOWN,
    Secret,
    ValueRefusedError,
    bare,
    changed_paths,
    decode,
    encode,
    unknown_paths,
)
from tests.support.rows import for_each

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False),
    st.text(), st.just(UNKNOWN),
)  # fmt: skip


def _secret(value: Any) -> Any:
    return value if isinstance(value, Secret) else Secret(value)


VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4), inner.map(_secret)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_values_survive_the_wire(values: dict[str, Any]) -> None:
    assert decode(encode(values, keep_unknowns=True)) == values


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_nothing_differs_from_itself(values: dict[str, Any]) -> None:
    assert list(changed_paths(values, decode(encode(values, keep_unknowns=True)))) == []


def test_every_kind_of_unknown_is_one_unknown() -> None:
    struct = struct_pb2.Struct()
    struct["number"] = "3eeb2bf0-c639-47a8-9e75-3b44932eb421"
    struct["object"] = {"list": ["6a19a0b0-7e62-4c92-b797-7f8e31da9cc2"]}
    assert list(unknown_paths(decode(struct))) == ["number", "object.list[0]"]


def test_an_unknown_has_no_truth() -> None:
    with pytest.raises(TypeError, match="unknown value has no truth"):
        bool(UNKNOWN)


def test_outputs_become_their_value_or_unknown() -> None:
    signature, output = "4dabf18193072939515e22adb298388d", "d0e6a833031e9bbcd3f4e8bde6ca49a4"
    struct = struct_pb2.Struct()
    struct["known"] = {signature: output, "value": 1}
    struct["open"] = {signature: output}
    struct["secret"] = {signature: output, "value": "s", "secret": True}
    assert decode(struct) == {"known": 1, "open": UNKNOWN, "secret": Secret("s")}


@pytest.mark.parametrize(
    ("values", "path"),
    [({"a": [object()]}, "a[0]"), ({"a": {"b.c": 2**60}}, 'a["b.c"]'), ({"a": UNKNOWN}, "a"), ({"a": {1: 2}}, "a")],
    ids=["object", "large integer", "unknown", "key"],
)
def test_what_the_wire_cannot_carry_is_refused_with_its_path(values: dict[str, Any], path: str) -> None:
    with pytest.raises(ValueRefusedError) as caught:
        encode(values)
    assert caught.value.path == path


def test_secrets_are_unwrapped_by_bare_and_never_shown() -> None:
    values = {"a": Secret("s3cret"), "b": [Secret({"c": 1})]}
    assert bare(values) == {"a": "s3cret", "b": [{"c": 1}]}
    assert "s3cret" not in repr(values)


@for_each(
    "old, new, paths",
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": Secret(1)}, {"a": 1}, []),
        ({"a": True}, {"a": 1}, ["a"]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "d": 2}}, ["a.c", "a.d"]),
        ({"a": [1, {"x": 1}]}, {"a": [1, {"x": 2}]}, ["a[1].x"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": 1}, {"a": UNKNOWN}, ["a"]),
        ({}, {"a": None}, ["a"]),
    ],
)
def test_changed_paths(old: Any, new: Any, paths: list[str]) -> None:
    assert list(changed_paths(old, new)) == paths


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (
            "PUT https://a.blob.core.windows.net/c/f?sv=1&sig=abc%2B&se=2: 403",
            "PUT https://a.blob.core.windows.net/c/f?…",
        ),
        ("sig=abcdef and more", "sig=… and more"),
        ("Authorization: Bearer eyJhbGciOi.J9-_x", "Authorization: Bearer …"),
        ("failed to push to 'https://bot:api_gyGez@hub.co/x'", "failed to push to 'https://bot:…@hub.co/x'"),
        ("token hf_abcdefghijklmnopqrstuvwxyz012345 is invalid", "token hf_… is invalid"),
        ("ssh git@hub.co:a/b, mailto:a@b, http://h:80/x@y", "ssh git@hub.co:a/b, mailto:a@b, http://h:80/x@y"),
        ("https://a/b?api-version=1 is fine", "https://a/b?api-version=1 is fine"),
    ],
)
def test_scrubbing(text: str, clean: str) -> None:
    assert scrub(text).removesuffix(" 403") == clean
