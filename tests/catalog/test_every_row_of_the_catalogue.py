"""Every row of the data files is complete and agrees with itself and with what is known."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from datetime import date
from fractions import Fraction
from importlib.resources import files
from typing import Any, get_args

import pytest

from amlstack.catalog import environments, fabric, images, prices, regions, sizes
from tests.support.rows import for_each

DATA = files("amlstack.catalog").joinpath("data")
SIZES = sizes.all_sizes()
GENERATIONS = {"QDR", "FDR", "EDR", "HDR", "NDR", "XDR-class"}
# RDMA that is no SR-IOV; two of them carry no r in their names.
NO_SRIOV = {"NC24r", "NC24r_Promo", "H16r", "H16mr", "H16r_Promo", "H16mr_Promo", "A8", "A9"}
NO_R_IN_THE_NAME = {"A8", "A9"}
# Undocumented variants, of which no source tells more.
MEMORY_UNKNOWN = {
    "ND96isrf_H100_v5",
    "ND96is_noIB_H100_v5",
    "ND96is_flex_H100_v5",
    "ND96is_MI300X_v5",
}


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DATA.joinpath(f"{name}.json").read_text())
    return found


def sources(row: dict[str, Any]) -> list[str]:
    given = row["source"]
    return [given] if isinstance(given, str) else given


def short(size: sizes.Size) -> str:
    return size.name.removeprefix("Standard_")


def test_the_catalogue_holds_each_size_once() -> None:
    assert len({row["name"].lower() for row in rows("sizes")}) == len(rows("sizes")) == len(SIZES) == 516


def test_every_row_stands_on_a_line_of_its_own_so_that_a_change_reads_as_one() -> None:
    lines = DATA.joinpath("sizes.json").read_text().splitlines()

    assert [json.loads(line.removesuffix(","))["name"] for line in lines[1:-1]] == [
        row["name"] for row in rows("sizes")
    ]


def test_a_row_has_exactly_the_fields_of_a_size() -> None:
    of_other_files = {"fabric", "prices", "lifecycle", "gpu"}
    flat = {field.name for kind in (sizes.Size, sizes.Fabric) for field in fields(kind)} - of_other_files

    for row in rows("sizes"):
        assert set(row) | {"gpu_share", "nvlink_nodes"} == flat, row["name"]


def test_a_size_is_well_formed() -> None:
    for size in SIZES:
        assert re.fullmatch(r"Standard_[A-Z][A-Za-z0-9]*(-\d+)?[a-z]*(_[A-Za-z0-9]+)*", size.name), size.name
        assert size.series, size.name
        assert size.architecture in {"x64", "arm64"}, size.name
        assert size.vcpus is None or size.vcpus > 0, size.name
        assert (size.memory_gib is None) == (short(size) in MEMORY_UNKNOWN), size.name
        assert date(2010, 1, 1) < size.checked <= date(2100, 1, 1), size.name
        assert size.retired is None or date(2020, 1, 1) < size.retired < date(2100, 1, 1), size.name
        assert size.note == size.note.strip(), size.name


def test_gpu_facts_come_together_or_not_at_all() -> None:
    for size in SIZES:
        facts = (size.gpu_vendor, size.gpu_model, size.gpu_memory_gib)

        if size.gpus:
            assert size.gpus in {1, 2, 4, 8}, size.name
            assert None not in facts, size.name
            assert size.gpu_vendor in {"NVIDIA", "AMD"}, size.name
            assert size.name.startswith("Standard_N"), size.name
        else:
            assert facts == (None, None, None), size.name
            assert not size.name.startswith("Standard_N"), size.name


def test_an_r_in_the_second_field_of_the_name_means_rdma() -> None:
    for size in SIZES:
        says_r = "r" in size.name.split("_")[1]

        assert size.fabric.rdma == (says_r or short(size) in NO_R_IN_THE_NAME), size.name


def test_sriov_needs_rdma_and_infiniband_comes_with_rdma() -> None:
    for size in SIZES:
        assert size.fabric.sriov == (size.fabric.rdma and short(size) not in NO_SRIOV), size.name
        assert (size.fabric.infiniband is not None) == size.fabric.rdma, size.name
        assert size.fabric.infiniband in {None, *GENERATIONS}, size.name
        assert size.fabric.gbps_per_node is None or (size.fabric.rdma and size.fabric.gbps_per_node >= 40), size.name


def _card(size: sizes.Size) -> float | None:
    """GiB of a whole card, of which the guest may see a part."""
    return size.gpu_memory_gib and size.gpu_memory_gib / Fraction(size.gpu_share or 1)


def test_sizes_of_one_series_share_chip_and_generation() -> None:
    for series in {size.series for size in SIZES}:
        members = [size for size in SIZES if size.series == series]
        assert len({(size.gpu_vendor, size.gpu_model, _card(size), size.architecture) for size in members}) == 1, series
        assert len({size.fabric.infiniband for size in members if size.fabric.rdma}) <= 1
        assert len({size.retired for size in members}) == 1


ALL = ["sizes", "prices", "lifecycle", "gpus", "environments", "fabric", "bandwidth", "regions", "torch_builds",
       "region_pairs", "ngc_releases", "roles", "retired_environments"]  # fmt: skip


@for_each("name", ALL)
def test_every_row_names_sources_that_the_source_table_explains(name: str) -> None:
    known = json.loads(DATA.joinpath("sources.json").read_text())

    for row in rows(name):
        assert row["source"], row
        assert {source.split("/")[0] for source in sources(row)} <= known.keys(), row
        date.fromisoformat(row["checked"])


def test_the_source_table_explains_nothing_that_no_row_uses() -> None:
    used = {source.split("/")[0] for name in ALL for row in rows(name) for source in sources(row)}

    assert used | {"team"} == json.loads(DATA.joinpath("sources.json").read_text()).keys()


@for_each(
    "name, gpus, model, memory, infiniband, gbps, retired",
    [
        ("Standard_NC24r", 4, "K80", 12, "FDR", 56, date(2023, 8, 31)),
        ("Standard_NC24rs_v3", 4, "V100", 16, "FDR", 56, date(2025, 9, 30)),
        ("Standard_NC24s_v3", 4, "V100", 16, None, None, date(2025, 9, 30)),
        ("Standard_ND40rs_v2", 8, "V100", 32, "EDR", 100, None),
        ("Standard_ND96asr_v4", 8, "A100", 40, "HDR", 1600, None),
        ("Standard_ND96amsr_A100_v4", 8, "A100", 80, "HDR", 1600, None),
        ("Standard_ND96isr_H100_v5", 8, "H100", 80, "NDR", 3200, None),
        ("Standard_ND96is_H100_v5", 8, "H100", 80, None, None, None),
        ("Standard_ND96isr_H200_v5", 8, "H200", 141, "NDR", 3200, None),
        ("Standard_ND96isr_MI300X_v5", 8, "MI300X", 192, "NDR", 3200, None),
        ("Standard_ND128isr_NDR_GB200_v6", 4, "GB200", 192, "NDR", 1600, None),
        ("Standard_NC96ads_A100_v4", 4, "A100", 80, None, None, None),
        ("Standard_H16r", 0, None, None, "FDR", 56, date(2022, 8, 31)),
        ("Standard_HB120rs_v3", 0, None, None, "HDR", 200, None),
        ("Standard_DS3_v2", 0, None, None, None, None, date(2028, 5, 1)),
    ],
)
def test_known_sizes_are_as_known(
    *,
    name: str,
    gpus: int,
    model: str | None,
    memory: float | None,
    infiniband: str | None,
    gbps: float | None,
    retired: date | None,
) -> None:
    size = sizes.get(name)

    assert size is not None
    assert (size.gpus, size.gpu_model, size.gpu_memory_gib) == (gpus, model, memory)
    assert (size.fabric.infiniband, size.fabric.gbps_per_node) == (infiniband, gbps)
    assert size.retired == retired


def test_the_gpu_sizes_alive_with_usable_infiniband_are_all_nd() -> None:
    on = date(2026, 8, 1)
    alive = {short(size) for size in SIZES if size.gpus and size.fabric.usable and not size.retired_on(on)}

    assert alive == {
        "ND40rs_v2",
        "ND96asr_v4",
        "ND96amsr_A100_v4",
        "ND96isr_H100_v5",
        "ND96isrf_H100_v5",
        "ND96isr_H200_v5",
        "ND96isrf_H200_v5",
        "ND96isr_MI300X_v5",
        "ND128isr_NDR_GB200_v6",
        "ND128isr_GB300_v6",
        "ND128isrG5_GB300_v6",
    }


def test_fabric_settings_name_series_and_bandwidths_name_sizes_that_exist() -> None:
    series = {size.series for size in SIZES}

    for row in rows("fabric"):
        assert set(row["series"] or ()) <= series
        assert all(sizes.get(name) is not None for name in row["sizes"] or ())
        assert row["block"] in {None, *get_args(fabric.Block)}
        # A file of the image is named only where a job, or what is known of the image, says that it is there.
        assert (row["block"] == "topology") == (row["only_if_image_has"] is not None) == ("_FILE" in row["name"])
        assert set(row["collectives"]) <= {"nccl", "mpi", "gloo"}
        assert row["why"]
    for row in rows("bandwidth"):
        assert set(row["series"]) <= series
        assert all(sizes.get(name) is not None for name in row["sizes"])
        assert row["series"] or row["sizes"]
        assert row["network"] in {"nvlink", "xgmi", "infiniband", "ethernet"}
        low, high = row["expected"]
        marks = [mark for mark in (row["fault_below"], row["warn_below"], low, high) if mark is not None]
        assert marks == sorted(marks)
        assert (row["racks"] == 1) == (row["network"] in {"nvlink", "xgmi"})
        assert row["nodes"] > 1 or row["racks"] == 1


def test_no_setting_ever_switches_infiniband_off() -> None:
    assert not {row["name"] for row in rows("fabric")} & {"NCCL_IB_DISABLE", "NCCL_NET", "NCCL_P2P_DISABLE"}


def test_no_size_has_two_values_of_one_variable_in_one_block() -> None:
    for size in SIZES:
        named = [(row["name"], row["block"]) for row in fabric._of(size)]
        assert len(named) == len(set(named)), size.name
        asked = [block for _, block in named if block is not None]
        assert set(asked) == set(fabric.blocks(size)), size.name


def test_environment_names_state_framework_and_cuda() -> None:
    for environment in environments.all_environments():
        assert environment.framework in {"pytorch", "tensorflow", "sklearn", "lightgbm"}
        cuda = f"-cuda{environment.cuda}" if environment.cuda else ""
        assert environment.name.endswith(f"{environment.framework}-{environment.framework_version}{cuda}")
        assert environment.registry == "azureml"


@pytest.mark.parametrize("on", [date(2026, 8, 1), date(2026, 11, 22), date(2030, 1, 1)])
def test_no_living_size_lacks_architecture_or_stage(on: date) -> None:
    stages = {"current", "extended", "current or extended", "end of life"}

    for size in SIZES:
        if size.retired_on(on):
            assert size.stage(on) == "retired"
        else:
            assert size.stage(on) in stages, size.name
            assert size.architecture in {"x64", "arm64"}, size.name


def test_a_series_that_is_at_the_end_of_its_life_has_a_date_and_no_other_series_has_one() -> None:
    for size in SIZES:
        found = sizes.lifecycle_of(size.series)
        if found is not None:
            assert (size.retired is not None) == (found.stage == "end of life"), size.name
            assert (found.new_subscriptions is not None) == (found.stage == "end of life"), size.name
            assert (found.closed_since is not None) == (found.new_subscriptions == "closed"), size.name


def test_every_gpu_is_known_and_cuda_builds_for_those_of_nvidia() -> None:
    known = images.by_model()
    assert {size.gpu_model for size in SIZES if size.gpus} == known.keys()
    for gpu in known.values():
        assert (gpu.compute_capability is not None) == (gpu.cuda_from is not None) == (gpu.vendor == "NVIDIA")
        if gpu.cuda_from is not None:
            assert gpu.builds_for(gpu.cuda_from)
            assert gpu.cuda_until is None or gpu.builds_for(gpu.cuda_until)


@for_each(
    "model, cuda, builds",
    [
        ("H100", "12.6", True),
        ("H100", "11.7", False),
        ("GB200", "12.6", False),
        ("GB200", "12.8.1", True),
        ("GB300", "12.6", False),
        ("V100", "12.9", True),
        ("V100", "13.0", False),
        ("A100", "10.2", False),
        ("MI300X", "12.6", None),
    ],
)
def test_a_gpu_runs_what_cuda_builds_for_it(model: str, cuda: str, *, builds: bool | None) -> None:
    gpu = images.get(model)

    assert gpu is not None
    assert gpu.builds_for(cuda) is builds


def test_one_nvlink_domain_of_more_nodes_is_a_rack_of_grace_blackwell() -> None:
    assert {size.series: size.nvlink_nodes for size in SIZES if (size.nvlink_nodes or 0) > 1} == {
        "ND_GB200_v6": 18,
        "ND_GB300_v6": 18,
    }


def test_a_price_is_of_a_known_size_or_series_positive_and_low_priority_is_less() -> None:
    names = {size.name for size in SIZES}
    series = {size.series for size in SIZES}

    for row in rows("prices"):
        of_size, of_series = "usd_by_region", "usd_per_vcpu_by_region"
        assert (row.get("size") in names) != (row.get("series") in series), row
        assert len(row.keys() & {"usd", of_size, of_series}) == 1, row
        assert (of_series in row) == ("series" in row), row
        by_region: dict[str, float] = row.get(of_size) or row.get(of_series) or {row["region"]: row["usd"]}
        assert by_region.keys() <= regions.names(), row
        assert all(usd > 0 for usd in by_region.values()), row
        assert row.get("low_priority") is None or 0 < row["low_priority"] < row["usd"], row
        assert row.get("spot") is None or 0 < row["spot"] <= row["usd"], row
    keys = [(row.get("size"), row.get("series"), row.get("region")) for row in rows("prices")]
    assert len(keys) == len(set(keys))


# Sizes whose price no public copy of Azure's list has; a price of one of them is a row, and then its name goes here.
NO_PRICE = {"ND96is_H200_v5", "ND96isrf_H200_v5", "ND128isr_GB300_v6", "ND128isrG5_GB300_v6"}


def test_every_living_size_has_a_price_but_those_that_no_public_list_has() -> None:
    on = date(2026, 11, 22)

    assert {short(size) for size in SIZES if not size.retired_on(on) and not size.prices} == NO_PRICE


def test_a_size_has_one_price_of_a_region_and_that_of_the_home_region_first() -> None:
    for size in SIZES:
        listed = [price.region for price in size.prices]
        assert len(listed) == len(set(listed)), size.name
        assert prices.HOME not in listed[1:], size.name


@for_each(
    "name, region, usd, month",
    [
        ("Standard_ND96isr_H100_v5", None, 98.32, date(2026, 9, 16)),
        ("Standard_ND96isr_H100_v5", "westeurope", 127.816, date(2026, 6, 18)),
        ("Standard_ND96isr_H100_v5", "uksouth", 122.9, date(2026, 8, 14)),
        ("Standard_HB368rs_v5", "southcentralus", 23.76, date(2026, 6, 18)),
        ("Standard_NV24ads_V710_v5", "eastus", 2.0, date(2026, 6, 18)),
        ("Standard_D8s_v5", "eastus", 0.384, date(2026, 6, 18)),
        ("Standard_D8s_v5", "westeurope", 0.46, date(2026, 6, 18)),
        ("Standard_ND40rs_v2", "uksouth", 22.032, date(2026, 6, 18)),
    ],
)
def test_a_price_is_the_newest_of_its_region(name: str, region: str | None, usd: float, month: date) -> None:
    size = sizes.get(name)

    assert size is not None
    price = size.price_in(region)
    assert price is not None
    assert (price.usd, price.checked) == (usd, month)
