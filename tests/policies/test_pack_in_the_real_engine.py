"""The pack, started as users start it, judges what the real engine shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest
from accepting_provider import Attached, attached
from harness import ANALYZER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Result, Stack

    class MakeStack(Protocol):
        def __call__(self, program: str, *, env: dict[str, str]) -> Stack: ...


pytestmark = pytest.mark.engine
TODAY = "2026-08-01"
FORMS = ("cluster", "versioned", "classic", "generic", "job", "own")
BOTH = {"sriov-fabric", "size-retired"}


@pytest.fixture
def azure() -> Iterator[Attached]:
    with attached() as provider:
        yield provider


def entry(form: str, size: str | None, nodes: int = 1, **more: Any) -> dict[str, Any]:
    named = {} if size is None else {"size": size}
    return {"name": f"{form}-{size or 'later'}-{nodes}", "as": form, "nodes": nodes, **named, **more}


def verdicts(result: Result) -> dict[str, set[str]]:
    """Resource → codes that refuse it."""
    found: dict[str, set[str]] = {}
    for one in result.violations:
        if one.level == "mandatory":
            found.setdefault(one.urn.rsplit("::", 1)[-1], set()).add(one.policy)
    return found


def test_preview_names_every_refused_size_in_every_form_and_nothing_else(stack: MakeStack, azure: Attached) -> None:
    expected: dict[str, set[str]] = {}
    asked = []
    for form in FORMS:
        for size, nodes, codes in (
            ("Standard_NC24r", 1, BOTH),
            ("Standard_NC24s_v3", 2, BOTH),
            ("Standard_NC24s_v3", 1, {"size-retired"}),
            ("Standard_NC24rs_v3", 2, {"size-retired"}),
            ("Standard_NC96ads_A100_v4", 2, {"sriov-fabric"}),
            ("Standard_ND96isr_H100", 2, {"size-unknown"}),
            ("Standard_ND96isr_H100_v5", 2, set()),
            ("Standard_HB120rs_v3", 2, set()),
        ):
            asked.append(entry(form, size, nodes))
            if codes:
                expected[asked[-1]["name"]] = codes
    program = stack("sizes_from_settings", env={**azure.environ, "AMLSTACK_TODAY": TODAY}).set("ask", asked)

    result = program.preview(policy_packs=[ANALYZER]).failed()

    assert verdicts(result) == expected
    assert {one.pack for one in result.violations} == {"amlstack"}
    assert {one.level for one in result.violations} == {"mandatory"}
    assert (
        "properties.properties.vmSize: Standard_NC24r has RDMA without SR-IOV. NCCL, UCX and Open MPI reach InfiniBand "
        "through SR-IOV only and would train over Ethernet. Use Standard_ND40rs_v2 (8 x V100 32 GiB, EDR InfiniBand "
        "100 Gb/s). [sriov-fabric]"
    ) in result.output


def test_a_size_known_only_at_up_is_announced_at_preview_and_refused_at_up(stack: MakeStack, azure: Attached) -> None:
    program = stack("sizes_from_settings", env={**azure.environ, "AMLSTACK_TODAY": TODAY})
    program.set("ask", [entry("cluster", None, 4), entry("job", None, 2)]).set("later", "Standard_NC24s_v3")

    preview = program.preview(policy_packs=[ANALYZER]).ok()
    assert sorted((one.policy, one.level, one.urn.rsplit("::", 1)[-1]) for one in preview.violations) == [
        ("checked-at-up", "advisory", "cluster-later-4"),
        ("checked-at-up", "advisory", "job-later-2"),
    ]
    assert "sriov-fabric, size-unknown and size-retired are checked at up" in preview.output

    refused = program.up(policy_packs=[ANALYZER]).failed()
    assert set().union(*verdicts(refused).values()) == BOTH
    assert azure.created == ["later"]


def test_what_no_rule_refuses_on_the_day_of_the_judgement_is_created(stack: MakeStack, azure: Attached) -> None:
    one_node = {"amlstack:single_node_jobs": "true"}
    forms = ("cluster", "versioned", "classic", "generic")
    asked = [
        *(entry(form, "Standard_NC96ads_A100_v4", 8, tags=one_node) for form in forms),
        entry("cluster", "Standard_NC24rs_v3", 4),  # retired the day after
        entry("cluster", None, 4),
        entry("own", None, 2),
    ]
    program = stack("sizes_from_settings", env={**azure.environ, "AMLSTACK_TODAY": "2025-09-29"}).set("ask", asked)

    assert program.up(policy_packs=[ANALYZER]).ok().violations == ()
    assert sorted(azure.created) == sorted(["later", *(one["name"] for one in asked)])
