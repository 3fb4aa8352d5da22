"""Definitions that Microsoft publishes, in checkouts that AMLSTACK_PUBLIC_POLICIES names: azure-policy, landing zones.

They are test material from outside, and no part of the project: none uses a construct that is not known, but for the
functions named here; and each of our statements says of every resource what the published definition says.
"""

from __future__ import annotations

import os
import random
from functools import cache
from pathlib import Path

import pytest

from amlstack.base.arm_language.constructs import unknown_in
from amlstack.base.arm_language.parameters import with_defaults
from policies.tenant import library, stated_verdicts, statements
from policies.tenant.application import AppliedPolicy
from policies.tenant.verdicts import of_files
from tests.support.policies.tenant_stacks import rulings, some_stack

FOLDERS = [Path(one) for one in os.environ.get("AMLSTACK_PUBLIC_POLICIES", "").split(os.pathsep) if one]
pytestmark = pytest.mark.skipif(
    not FOLDERS, reason="AMLSTACK_PUBLIC_POLICIES names no checkouts of azure-policy and Azure-Landing-Zones-Library"
)
NOT_WORKED_OUT = {"the function `uniquestring`"}
"""Its results cannot be foreseen."""

OTHERWISE = {
    "afe0c3be-ba3b-4544-ba52-0c99672a8ad6",  # asks about retention, which we leave out: nobody sets it any more
    "cf820ca0-f99e-4f3e-84fb-66e913812d21",
    "deploy-diagnostics-mlworkspace",  # asks about one setting by its name
    "94de2ad3-e0c1-4caf-ad78-5d47bbc83d3d",  # has a parameter without a default, which its initiative gives
    "d0793b48-0edc-4296-a390-4c75d1bdfd71",  # names the values that it refuses, not those that it takes
}
"""Definitions that ask more than we state."""


@cache
def published() -> library.PolicyLibrary:
    return library.read([one for folder in FOLDERS for one in folder.rglob("policy*efinitions") if one.is_dir()])


def test_published_definitions_use_nothing_that_is_not_known() -> None:
    found = {key: unknown_in(one.rule) for key, one in published().definitions.items()}
    assert len(found) > 3000
    assert {what for each in found.values() for what in each} <= NOT_WORKED_OUT


@pytest.mark.parametrize(
    "stated", [one for one in statements.definitions().values() if not one.judges], ids=lambda one: one.id
)
def test_statement_and_published_definition_say_the_same(stated: statements.StatedDefinition) -> None:
    definition = published().definition(stated.id)
    assert definition is not None
    assert definition.title == stated.name
    assert definition.version == stated.version
    if stated.id.lower() in OTHERWISE:
        return
    chance = random.Random(stated.id)
    values = with_defaults(definition.parameters, {})
    effect = next((name for name in values if name.lower() in {"effect", "effects", "audit_effect"}), None)
    assert effect is None or values[effect].lower() == stated.effects[0].lower()
    policy = AppliedPolicy(stated.id, definition, values)
    for _ in range(60):
        stack = some_stack(stated, chance)
        assert rulings(stated_verdicts.of_definition(stated, stack)) == rulings(of_files([policy], stack)), (
            stack.targets
        )
