"""Sizes that the three rules refuse, and their messages."""

from __future__ import annotations

from datetime import date

from amlstack.catalog import sizes
from policies.checks import sizes_for
from policies.checks.size import check_fabric, check_known_size, check_retired_size
from tests.support.rows import for_each

TODAY = date(2026, 8, 1)
BEFORE_NC_V3_WENT = date(2025, 9, 29)


def size(name: str) -> sizes.Size:
    found = sizes.get(name)
    assert found is not None, name
    return found


@for_each(
    "name, nodes, single_node_jobs, refused",
    [
        # RDMA without SR-IOV: always, whatever anybody declares.
        ("Standard_NC24r", 1, False, True),
        ("Standard_NC24r", 4, False, True),
        ("Standard_NC24r", 4, True, True),
        ("Standard_NC24r_Promo", 1, True, True),
        ("Standard_H16r", 1, False, True),
        ("Standard_H16mr", 2, False, True),
        ("Standard_A8", 1, False, True),
        ("Standard_A9", 1, False, True),
        # GPUs without InfiniBand: for more than one node.
        ("Standard_NC24s_v3", 2, False, True),
        ("Standard_NC24s_v3", 1, False, False),
        ("Standard_NC24s_v3", 0, False, False),
        ("Standard_NC24s_v3", 2, True, False),
        ("Standard_NC96ads_A100_v4", 2, False, True),
        ("Standard_ND96is_H100_v5", 2, False, True),
        ("Standard_ND96is_H100_v5", 100, True, False),
        # SR-IOV InfiniBand: never, not even when retired.
        ("Standard_NC24rs_v3", 4, False, False),
        ("Standard_ND40rs_v2", 2, False, False),
        ("Standard_ND96isr_H100_v5", 128, False, False),
        ("Standard_ND128isr_NDR_GB200_v6", 2, False, False),
        ("Standard_HB120rs_v3", 2, False, False),
        # CPUs without RDMA: allowed.
        ("Standard_DS3_v2", 10, False, False),
        ("Standard_A10", 2, False, False),
        ("Standard_H16", 2, False, False),
    ],
)
def test_fabric_rule(name: str, nodes: int, single_node_jobs: bool, refused: bool) -> None:
    finding = check_fabric(size(name), nodes=nodes, on=TODAY, single_node_jobs=single_node_jobs)

    assert (finding is not None) is refused
    if finding is not None:
        assert finding.code == "sriov-fabric"


def test_a_size_with_rdma_but_no_sriov_is_refused_in_one_message() -> None:
    finding = check_fabric(size("Standard_NC24r"), nodes=2, on=TODAY, where="clusters[0].size")

    assert str(finding) == (
        "clusters[0].size: Standard_NC24r has RDMA without SR-IOV. NCCL, UCX and Open MPI reach InfiniBand through "
        "SR-IOV only and would train over Ethernet. Use Standard_ND40rs_v2 (8 x V100 32 GiB, EDR InfiniBand 100 Gb/s). "
        "[sriov-fabric]"
    )


def test_a_gpu_size_without_infiniband_is_refused_in_one_message() -> None:
    finding = check_fabric(size("standard_nc24ADS_a100_v4"), nodes=4, on=TODAY)

    assert str(finding) == (
        "size: Standard_NC24ads_A100_v4 (1 x A100 80 GiB, no InfiniBand) with 4 nodes. GPU jobs across nodes need "
        "InfiniBand with SR-IOV, else they train over Ethernet. Use Standard_ND96amsr_A100_v4 (8 x A100 80 GiB, HDR "
        "InfiniBand 1600 Gb/s), or stay on one node (a cluster may say single_node_jobs: true). [sriov-fabric]"
    )


def test_every_remedy_of_the_fabric_rule_passes_all_rules() -> None:
    for wanted in sizes.all_sizes():
        finding = check_fabric(wanted, nodes=2, on=TODAY)
        if finding is not None:
            nearest = sizes.nearest_compliant(wanted, TODAY)
            assert nearest is not None
            assert nearest.name in finding.remedy
            assert sizes_for(nearest.name, nodes=2, on=TODAY) == ()


@for_each(
    "name, remedy",
    [
        ("Standard_ND96isr_H100_v5", None),
        ("STANDARD_nd96ISR_h100_v5", None),
        (
            "ND96isr_H100_v5",
            "Did you mean Standard_ND96isr_H100_v5, Standard_ND96isrf_H100_v5 or Standard_ND96is_H100_v5?",
        ),
        ("Standard_NC24r_v3", "Did you mean Standard_NC24rs_v3 or Standard_NC24s_v3?"),
        ("p4d.24xlarge", "`amlstack sizes` lists those that it knows"),
        ("", "`amlstack sizes` lists those that it knows"),
    ],
)
def test_unknown_size_rule(name: str, remedy: str | None) -> None:
    finding = check_known_size(name)

    assert (finding.remedy if finding else None) == remedy
    if finding is not None:
        assert finding.code == "size-unknown"
        assert repr(name) in finding.seen


@for_each(
    "name, on, seen",
    [
        ("Standard_NC24rs_v3", TODAY, "Standard_NC24rs_v3 was retired on 2025-09-30"),
        ("Standard_NC24rs_v3", date(2025, 9, 30), "Standard_NC24rs_v3 was retired on 2025-09-30"),
        ("Standard_NC24rs_v3", BEFORE_NC_V3_WENT, None),
        ("Standard_NC24r", BEFORE_NC_V3_WENT, "Standard_NC24r was retired on 2023-08-31"),
        ("Standard_HC44rs", TODAY, None),
        ("Standard_HC44rs", date(2027, 5, 31), "Standard_HC44rs was retired on 2027-05-31"),
        ("Standard_ND96isr_H100_v5", date(2100, 1, 1), None),
    ],
)
def test_retired_size_rule(name: str, on: date, seen: str | None) -> None:
    finding = check_retired_size(size(name), on=on)

    assert (finding.seen if finding else None) == seen
    if finding is not None:
        assert finding.code == "size-retired"
        assert finding.remedy.startswith("Use Standard_")


@for_each(
    "name, nodes, codes",
    [
        ("Standard_NC24rs_v3", 4, ["size-retired"]),
        ("Standard_NC24r", 1, ["sriov-fabric", "size-retired"]),
        ("Standard_NC24s_v3", 4, ["sriov-fabric", "size-retired"]),
        ("Standard_NC24s_v3", 1, ["size-retired"]),
        ("Standard_NC96ads_A100_v4", 2, ["sriov-fabric"]),
        ("Standard_NC24rs_v9", 4, ["size-unknown"]),
        ("Standard_ND40rs_v2", 4, []),
    ],
)
def test_several_rules_speak_about_one_size_and_only_one_about_an_unknown_one(
    name: str, nodes: int, codes: list[str]
) -> None:
    found = sizes_for(name, nodes=nodes, on=TODAY, where="clusters[1].size")

    assert [finding.code for finding in found] == codes
    assert {finding.where for finding in found} <= {"clusters[1].size"}
