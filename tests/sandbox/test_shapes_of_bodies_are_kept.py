"""Shapes of bodies in the cache are those that azure-native's classes give, and made anew where these may differ."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox.protocol import body_shapes
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.protocol.body_shapes import BodyShape

MODULES = ("machinelearningservices", "storage")
"""Of those that a sandbox reads at its start: the largest, and one with other names on the wire."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "shapes"


def read_only(module: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, BodyShape]:
    """The shapes where azure-native cannot be imported."""
    with monkeypatch.context() as patch:
        patch.setattr(importlib, "import_module", lambda name: pytest.fail(f"{name} is imported"))
        return body_shapes._of_module(module)


@for_each("module", MODULES)
def test_what_is_kept_is_what_was_made(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = body_shapes._of_module(module)

    assert read_only(module, monkeypatch) == made
    assert made.keys() >= {
        name
        for shape in made.values()
        for field in shape.fields.values()
        for values in (field.values, field.values.item, field.values.entry)
        if values is not None
        for name in values.objects
    }


def test_shapes_of_another_version_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made = body_shapes._of_module("resources")
    monkeypatch.setattr(body_shapes, "_version", lambda: "another")

    with pytest.raises(pytest.fail.Exception, match=r"pulumi_azure_native\.resources is imported"):
        read_only("resources", monkeypatch)
    assert body_shapes._of_module("resources") == made


def test_a_damaged_file_is_made_anew(own_cache: Path) -> None:
    made = body_shapes._of_module("resources")
    (file,) = own_cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])

    assert body_shapes._of_module("resources") == made
    assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without(own_cache: Path) -> None:
    own_cache.parent.write_text("no folder")

    assert body_shapes._of_module("resources")["resources:ResourceGroup"].fields["location"].required is False
