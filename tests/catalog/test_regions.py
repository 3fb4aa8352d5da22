"""Names of regions: what is misspelt is refused, what may be new is only noted."""

from __future__ import annotations

import pytest

from amlstack.base.findings import Level
from amlstack.catalog import regions
from tests.support.rows import for_each


@for_each("written", ["westeurope", "West Europe", "eastus2", "usgovvirginia", "eastus2euap"])
def test_a_region_by_name_or_code_has_no_finding(written: str) -> None:
    assert regions.finding(written, "location") is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("westeuropa", "westeurope"),
        ("norhteurope", "northeurope"),
        ("useast", "eastus"),
        ("swedencentrale", "swedencentral"),
    ],
)
def test_a_misspelt_region_is_an_error_that_names_the_right_one(written: str, meant: str) -> None:
    found = regions.finding(written, "location")
    assert found is not None
    assert found.level is Level.ERROR
    assert found.remedy.startswith(f"Did you mean `{meant}`? ")
    assert "catalogue.yaml" in found.remedy  # a region may be new and yet spelt nearly like another


@pytest.mark.parametrize("written", ["westus4", "denmarkwest", "atlantis"])
def test_a_region_that_may_be_new_is_a_warning(written: str) -> None:
    found = regions.finding(written, "location")
    assert found is not None
    assert found.level is Level.WARNING


@pytest.mark.parametrize(
    ("one", "other"),
    [("West Europe", "northeurope"), ("northeurope", "westeurope"), ("westus3", "eastus"), ("polandcentral", None)],
)
def test_a_region_has_the_pair_to_which_storage_is_replicated(one: str, other: str | None) -> None:
    assert regions.pair(one) == other
    assert regions.pair("eastus") == "westus", "westus3 has no pair of its own"
