"""Names that the provider's classes had before, in programs of one's own."""

from __future__ import annotations

import pytest

from amlstack import resources


@pytest.mark.parametrize("name", ["Snapshot", "EnvironmentVersion", "ComponentVersion", "Job", "Schedule"])
def test_a_former_name_gives_the_class_and_names_its_new_one(name: str) -> None:
    with pytest.deprecated_call(match=f"amlstack.resources.{name} is now {name}Resource"):
        former = getattr(resources, name)

    assert former is vars(resources)[f"{name}Resource"]


def test_a_misspelt_name_is_unknown() -> None:
    assert not hasattr(resources, "Jobs")
