"""Quota of a subscription: declared clusters against Azure's answers."""

from __future__ import annotations

from typing import Any

import pytest

from amlstack.base.findings import Level
from infra import quota
from infra.settings import parse
from tests.support.rows import for_each

H100 = "Standard_ND96isr_H100_v5"
FAMILY = "standardNDv5H100Family"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


def demands(*clusters: dict[str, Any], **settings: Any) -> tuple[quota.Demand, ...]:
    reading = parse({"location": "westeurope", "workspace": "w-team", "clusters": list(clusters), **settings})
    assert reading.settings is not None, reading.findings
    return quota.demands(reading.settings)


def one(name: str = "train", most: int = 4, **more: Any) -> dict[str, Any]:
    return {"name": name, "size": H100, "nodes": {"max": most}, **more}


def usage(name: str, limit: int, current: int = 0, label: str = "") -> dict[str, Any]:
    return {"name": name, "label": label or name, "current": current, "limit": limit}


def region(*usages: dict[str, Any], offered: bool = True, low: bool = True, listed: int = 100) -> dict[str, Any]:
    size = {"family": FAMILY, "vcpus": 96, "lowPriority": low}
    return {"usages": list(usages), "sizes": {H100: size} if offered else {}, "listed": listed, "problem": ""}


def short(wanted: tuple[quota.Demand, ...], answer: dict[str, Any], *there: dict[str, Any]) -> list[quota.Shortage]:
    return list(quota.shortages(wanted, {"westeurope": answer}, SUBSCRIPTION, quota.Existing.of(there)))


def existing(name: str = "train", most: int = 4, **more: Any) -> dict[str, Any]:
    return {"name": name, "location": "westeurope", "size": H100, "priority": "Dedicated", "max": most, **more}


@pytest.mark.parametrize(
    "row",
    [
        {"name": FAMILY, "label": "Standard NDv5H100 Family Cluster Dedicated vCPUs"},
        {"name": "Standard NDv5H100 Family Cluster Dedicated vCPUs", "label": ""},
        {"name": "", "label": "Standard NDv5H100 Family vCPUs"},
    ],
)
def test_a_family_is_found_by_its_id_and_by_its_name_in_words(row: dict[str, str]) -> None:
    (found,) = short(demands(one()), region({**row, "current": 0, "limit": 383}))
    assert found.finding.level is Level.ERROR
    assert found.finding.seen == (
        f"`{FAMILY}` in `westeurope` has a quota of 383 vCPUs, and `nodes.max` asks for 384: `train` 4 × 96"
    )
    assert "Request 384 " in found.finding.remedy
    assert f"--resource-name '{FAMILY}'" in found.finding.remedy
    assert (found.index, found.path) == (0, ("nodes", "max"))


def test_all_clusters_of_a_family_are_added_and_the_largest_one_is_named() -> None:
    (found,) = short(demands(one("small", 1), one("large", 3)), region(usage(FAMILY, 383)))
    assert "`small` 1 × 96, `large` 3 × 96" in found.finding.seen
    assert found.index == 1
    assert short(demands(one("small", 1), one("large", 3)), region(usage(FAMILY, 384))) == []


def test_what_others_use_is_a_warning_where_the_limit_itself_has_room() -> None:
    (found,) = short(demands(one()), region(usage(FAMILY, 480, current=192)))
    assert found.finding.level is Level.WARNING
    assert "480, of which others use 192," in found.finding.seen
    assert "Request 576 " in found.finding.remedy


def test_nodes_that_are_asked_for_at_once_are_an_error_where_others_use_the_rest() -> None:
    busy = region(usage(FAMILY, 480, current=192))
    (found,) = short(demands(one(nodes={"min": 4, "max": 4})), busy)
    assert found.finding.level is Level.ERROR


@pytest.mark.parametrize("current", [0, 192, 384, 480])
def test_a_stack_that_does_not_grow_is_no_finding(current: int) -> None:
    assert short(demands(one()), region(usage(FAMILY, 96, current=current)), existing()) == []


def test_own_nodes_are_not_taken_for_those_of_others() -> None:
    """Azure counts either the nodes that there are or the most that there may be."""
    grown = demands(one(most=5))
    assert short(grown, region(usage(FAMILY, 480, current=384)), existing()) == []
    assert short(grown, region(usage(FAMILY, 480, current=0)), existing()) == []
    (found,) = short(grown, region(usage(FAMILY, 480, current=480)), existing())
    assert "of which others use 96" in found.finding.seen


def test_another_size_under_the_same_name_is_another_cluster() -> None:
    (found,) = short(demands(one()), region(usage(FAMILY, 96)), existing(size="Standard_ND96asr_v4"))
    assert found.finding.level is Level.ERROR


def test_low_priority_is_held_against_its_own_total_and_not_against_the_family() -> None:
    wanted = demands(one(priority="low_priority"))
    assert short(wanted, region(usage(FAMILY, 0), usage("Total Cluster Low Priority Regional vCPUs", 384))) == []
    (found,) = short(wanted, region(usage("Total Cluster LowPriority Regional vCPUs", 0)))
    assert found.finding.seen.startswith("Low priority, all families together, in `westeurope` has a quota of 0 vCPUs")
    assert "--resource-name 'TotalLowPriorityCores' --resource-type lowPriority" in found.finding.remedy


def test_the_region_s_total_is_a_limit_of_its_own() -> None:
    (found,) = short(demands(one()), region(usage(FAMILY, 384), usage(quota.OF_REGION, 20)))
    assert found.finding.seen.startswith(f"{quota.OF_REGION} in `westeurope` has a quota of 20 vCPUs")
    assert "az quota" not in found.finding.remedy


@for_each(
    "answer",
    [
        region(usage(FAMILY, -1)),
        region(usage("standardDSv2Family", 0)),
        region(),
        {"usages": [], "sizes": {}, "listed": 0, "problem": ""},
        {"usages": [], "sizes": {}, "listed": 0, "problem": "Forbidden: no"},
    ],
)
def test_what_azure_does_not_say_is_no_finding(answer: dict[str, Any]) -> None:
    assert short(demands(one()), answer) == []


def test_a_region_that_could_not_be_asked_is_one_warning() -> None:
    (found,) = quota.unchecked({"westeurope": {"problem": "Forbidden: no"}, "northeurope": {"problem": ""}})
    assert found.level is Level.WARNING
    assert "`westeurope` were not checked: Forbidden: no" in found.seen


def test_a_size_that_is_not_listed_is_not_offered_unless_the_cluster_is_there() -> None:
    (found,) = short(demands(one()), region(offered=False))
    assert (found.finding.code, found.path) == ("size-not-offered", ("size",))
    assert short(demands(one()), region(offered=False), existing()) == []


def test_a_size_that_cannot_be_low_priority_is_reported() -> None:
    (found,) = short(demands(one(priority="low_priority")), region(low=False))
    assert (found.finding.code, found.path) == ("size-not-low-priority", ("priority",))


def test_regions_are_asked_about_the_sizes_that_are_declared_there() -> None:
    wanted = demands(one(), one("north", location="northeurope", size="Standard_ND96asr_v4"), one("more"))
    assert quota.regions(wanted) == {"westeurope": {H100}, "northeurope": {"Standard_ND96asr_v4"}}


def granted(limit: int, name: str = "Standard NDv5H100 Family Cluster Dedicated vCPUs") -> dict[str, Any]:
    return region(usage(FAMILY, 960)) | {"granted": [usage("", limit, label=name.replace(" ", "_"))]}


def test_what_a_workspace_was_given_is_a_limit_of_its_own() -> None:
    (found,) = short(demands(one()), granted(96))
    assert found.finding.level is Level.ERROR
    assert found.finding.seen == (
        f"The workspace's own part of `{FAMILY}` in `westeurope` is 96 vCPUs, and `nodes.max` asks for 384: "
        "`train` 4 × 96"
    )
    assert "Give the workspace 384 " in found.finding.remedy


@pytest.mark.parametrize("limit", [384, -1])
def test_a_part_with_room_or_without_a_limit_is_no_finding(limit: int) -> None:
    assert short(demands(one()), granted(limit)) == []


def test_a_part_that_is_not_for_the_stack_s_nodes_or_that_they_use_already_is_no_finding() -> None:
    assert short(demands(one(priority="low_priority")), granted(0)) == []
    assert short(demands(one()), granted(0, "Standard DSv2 Family Cluster Dedicated vCPUs")) == []
    assert short(demands(one()), granted(96), existing()) == []


def test_a_part_that_is_the_whole_family_is_said_once() -> None:
    answer = region(usage(FAMILY, 96)) | {"granted": [usage(FAMILY, 96)]}
    (found,) = short(demands(one()), answer)
    assert f"`{FAMILY}` in `westeurope` has a quota of 96" in found.finding.seen


def test_a_part_that_could_not_be_read_is_one_warning() -> None:
    (found,) = quota.unchecked({"westeurope": {"problem": "", "grantedProblem": "Forbidden: no"}})
    assert "The workspace's own part" in found.seen
    assert "Forbidden" in found.seen
