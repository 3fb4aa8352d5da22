"""Definitions that Microsoft publishes, in checkouts that AMLSTACK_PUBLIC_POLICIES names: azure-policy, landing zones.

They are test material from outside, and no part of the project: none uses a construct that is not known, but for the
functions named here; and each of our definitions names the published one that it is a reading of.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.base.arm_language.effects import unknown_in
from policies.tenant import library
from tests.support.rows import for_each

if TYPE_CHECKING:
    from policies.tenant.library import PolicyDefinition

FOLDERS = [Path(one) for one in os.environ.get("AMLSTACK_PUBLIC_POLICIES", "").split(os.pathsep) if one]
pytestmark = pytest.mark.skipif(
    not FOLDERS, reason="AMLSTACK_PUBLIC_POLICIES names no checkouts of azure-policy and Azure-Landing-Zones-Library"
)
NOT_WORKED_OUT = {"the function `uniquestring`"}
"""Its results cannot be foreseen."""


@cache
def published() -> library.PolicyLibrary:
    return library.read([one for folder in FOLDERS for one in folder.rglob("policy*efinitions") if one.is_dir()])


def test_published_definitions_use_nothing_that_is_not_known() -> None:
    found = {key: unknown_in(one.rule) for key, one in published().definitions.items()}
    assert len(found) > 3000
    assert {what for each in found.values() for what in each} <= NOT_WORKED_OUT


@for_each("ours", library.definitions().values())
def test_a_definition_of_ours_has_the_name_version_and_mode_of_the_published_one(ours: PolicyDefinition) -> None:
    definition = published().definition(ours.id)
    assert definition is not None
    assert (ours.title, ours.version, ours.mode) == (definition.title, definition.version, definition.mode)
