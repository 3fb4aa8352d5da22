"""The questions that the rest of the project asks of the catalogue."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

import pytest

from amlstack.catalog import environments, fabric, sizes
from tests.support.rows import for_each

TODAY = date(2026, 8, 1)
MPI_ONLY = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0", "OMPI_MCA_coll_hcoll_enable": "0"}


def size(name: str) -> sizes.Size:
    found = sizes.get(name)
    assert found is not None, name
    return found


def variables(name: str, collectives: fabric.Collectives, **more: object) -> dict[str, str]:
    return {one.name: one.value for one in fabric.settings(size(name), collectives=collectives, **more)}


@pytest.mark.parametrize(
    "spelling", ["Standard_ND96isr_H100_v5", "STANDARD_ND96ISR_H100_V5", "standard_nd96isr_h100_v5"]
)
def test_a_size_is_found_in_any_letter_case(spelling: str) -> None:
    assert size(spelling).name == "Standard_ND96isr_H100_v5"


@for_each("spelling", ["", " ", "ND96isr_H100_v5", "Standard_ND96isr_H100_v5 ", "Standard_"])
def test_what_azure_would_not_take_is_not_found(spelling: str) -> None:
    assert sizes.get(spelling) is None


@for_each(
    "written, first",
    [
        ("ND96isr_H100_v5", "Standard_ND96isr_H100_v5"),
        ("standard_nd96isr_h100v5", "Standard_ND96isr_H100_v5"),
        ("Standard_ND96isr_H100_v6", "Standard_ND96isr_H100_v5"),
        ("Standard_NC24rs_v4", "Standard_NC24rs_v3"),
        ("Standard_HB120rs_V33", "Standard_HB120rs_v3"),
    ],
)
def test_a_misspelled_size_has_near_misses(written: str, first: str) -> None:
    assert sizes.near(written)[0] == first
    assert len(sizes.near(written)) <= 3
    assert len(sizes.near(written, n=1)) == 1


@pytest.mark.parametrize("written", ["p4d.24xlarge", "", "Standard_"])
def test_a_name_like_no_other_has_none(written: str) -> None:
    assert sizes.near(written) == ()


@for_each(
    "wanted, nearest",
    [
        ("Standard_NC24r", "Standard_ND40rs_v2"),
        ("Standard_NC24rs_v3", "Standard_ND40rs_v2"),
        ("Standard_NC96ads_A100_v4", "Standard_ND96amsr_A100_v4"),
        ("Standard_NC80adis_H100_v5", "Standard_ND96isr_H100_v5"),
        ("Standard_ND96is_H200_v5", "Standard_ND96isr_H200_v5"),
        ("Standard_ND96is_MI300X_v5", "Standard_ND96isr_MI300X_v5"),
        ("Standard_H16r", "Standard_HB120-16rs_v3"),
        ("Standard_HB60rs", "Standard_HB120-64rs_v3"),
        ("Standard_ND96isr_H100_v5", "Standard_ND96isr_H100_v5"),
    ],
)
def test_the_nearest_compliant_size(wanted: str, nearest: str) -> None:
    found = sizes.nearest_compliant(size(wanted), TODAY)

    assert found is not None
    assert found.name == nearest


def test_a_nearest_compliant_size_is_alive_reachable_and_of_the_same_kind() -> None:
    for wanted in sizes.all_sizes():
        for on in (date(2020, 1, 1), TODAY, date(2035, 1, 1)):
            found = sizes.nearest_compliant(wanted, on)
            assert found is not None
            assert found.fabric.sriov
            assert found.fabric.infiniband
            assert found.gpu_vendor == wanted.gpu_vendor
            assert not found.retired_on(on)


def test_what_is_recommended_follows_the_day() -> None:
    before, after = (
        sizes.nearest_compliant(size("Standard_NC24s_v3"), on) for on in (date(2025, 9, 29), date(2025, 9, 30))
    )

    assert before is not None
    assert after is not None
    assert (before.name, after.name) == ("Standard_NC24rs_v3", "Standard_ND40rs_v2")


def test_a_size_is_retired_from_its_day_on() -> None:
    v3 = size("Standard_NC24rs_v3")

    assert [v3.retired_on(date(2025, 9, day)) for day in (29, 30)] == [False, True]
    assert not size("Standard_ND96isr_H100_v5").retired_on(date.max)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Standard_ND96isr_H100_v5", "950g"),
        ("Standard_ND40rs_v2", "336g"),
        ("Standard_F4s_v2", "4g"),
        ("Standard_ND96is_noIB_H100_v5", None),
    ],
)
def test_shared_memory_is_half_of_the_vm_s(name: str, text: str | None) -> None:
    assert size(name).shm_size() == text
    assert size(name).shm_bytes() == (None if text is None else int(text[:-1]) * 2**30)


@for_each(
    "name, text",
    [
        ("Standard_ND96isr_H100_v5", "8 x H100 80 GiB, NDR InfiniBand 3200 Gb/s"),
        ("Standard_NC24r", "4 x K80 12 GiB, FDR InfiniBand 56 Gb/s without SR-IOV"),
        ("Standard_NC24s_v3", "4 x V100 16 GiB, no InfiniBand"),
        ("Standard_A8", "8 vCPUs, QDR InfiniBand without SR-IOV"),
        ("Standard_DS3_v2", "4 vCPUs, no InfiniBand"),
    ],
)
def test_a_size_describes_itself(name: str, text: str) -> None:
    assert size(name).describe() == text


def test_nccl_on_infiniband_gpus_gets_the_settings_of_its_series() -> None:
    common = {
        "NCCL_IB_PCI_RELAXED_ORDERING": "1",
        "UCX_IB_PCI_RELAXED_ORDERING": "on",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "NCCL_SOCKET_IFNAME": "eth0",
    }

    assert variables("Standard_ND96asr_v4", "nccl") == {**common, "NCCL_IGNORE_CPU_AFFINITY": "1"}
    assert variables("Standard_ND40rs_v2", "nccl") == {**common, "NCCL_IGNORE_CPU_AFFINITY": "1"}
    assert variables("Standard_ND96isr_H100_v5", "nccl") == {**common, "NCCL_IGNORE_CPU_AFFINITY": "1"}
    assert variables("Standard_ND96isr_H200_v5", "nccl") == {**common, "NCCL_IGNORE_CPU_AFFINITY": "1"}
    assert "CUDA_DEVICE_ORDER" not in variables("Standard_ND96isr_MI300X_v5", "nccl")


def test_mpi_is_kept_on_tcp_only_where_it_merely_starts_the_ranks() -> None:
    nccl = variables("Standard_ND96isr_H100_v5", "nccl")

    assert variables("Standard_ND96isr_H100_v5", "nccl", mpi_starts_ranks=True) == {**nccl, **MPI_ONLY}
    assert not nccl.keys() & MPI_ONLY.keys()


@for_each("collectives", ["nccl", "mpi", "gloo"])
@for_each("name", ["Standard_HB120rs_v3", "Standard_HC44rs", "Standard_NC24s_v3", "Standard_NC24r", "Standard_DS3_v2"])
def test_cpu_sizes_and_sizes_without_usable_infiniband_get_no_settings(
    name: str, collectives: fabric.Collectives
) -> None:
    assert fabric.settings(size(name), collectives=collectives, mpi_starts_ranks=True) == ()


@pytest.mark.parametrize("collectives", ["mpi", "gloo"])
def test_jobs_whose_collectives_nccl_does_not_carry_get_no_settings(collectives: fabric.Collectives) -> None:
    for one in sizes.all_sizes():
        assert fabric.settings(one, collectives=collectives, mpi_starts_ranks=True) == ()


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("Standard_ND40rs_v2", "ndv2"),
        ("Standard_ND96asr_v4", "ndv4"),
        ("Standard_ND96isr_H100_v5", "ndv5"),
        ("Standard_ND96isr_H200_v5", "ndv5"),
    ],
)
def test_the_topology_file_is_named_only_when_the_job_asks(name: str, generation: str) -> None:
    assert "NCCL_TOPO_FILE" not in variables(name, "nccl")
    asked = variables(name, "nccl", blocks=["topology"])
    assert asked["NCCL_TOPO_FILE"] == f"/opt/microsoft/{generation}-topo.xml"


def test_four_a100_without_infiniband_get_affinity_and_on_request_graph_and_topology() -> None:
    four, one = "Standard_NC96ads_A100_v4", "Standard_NC24ads_A100_v4"

    assert variables(four, "nccl") == {"NCCL_IGNORE_CPU_AFFINITY": "1"}
    assert variables(four, "nccl", blocks=["topology"]) == {
        "NCCL_IGNORE_CPU_AFFINITY": "1",
        "NCCL_TOPO_FILE": "/opt/microsoft/ncv4-topo.xml",
        "NCCL_GRAPH_FILE": "/opt/microsoft/ncv4-graph.xml",
    }
    assert variables(one, "nccl", blocks=["topology"]) == {}
    assert variables(four, "gloo", blocks=["topology"]) == {}
    assert variables("Standard_NC144lds_xl_RTXPRO6000BSE_v6", "nccl") == {"NCCL_SOCKET_IFNAME": "eth0"}


@for_each(
    "name, blocks",
    [
        ("Standard_ND96isr_H100_v5", {"topology", "azure-tuned", "sharp"}),
        ("Standard_ND96isr_H200_v5", {"topology", "azure-tuned", "sharp"}),
        ("Standard_ND96asr_v4", {"topology"}),
        ("Standard_ND128isr_GB300_v6", {"azure-tuned"}),
        ("Standard_ND96isr_MI300X_v5", set()),
        ("Standard_ND96is_H100_v5", set()),
        ("Standard_HB120rs_v3", set()),
    ],
)
def test_a_size_has_the_blocks_that_azure_publishes_for_it(name: str, blocks: set[str]) -> None:
    assert set(fabric.blocks(size(name))) == blocks


def test_a_block_adds_its_variables_and_goes_before_the_usual_values() -> None:
    h100, gb = "Standard_ND96isr_H100_v5", "Standard_ND128isr_GB300_v6"
    usual = variables(h100, "nccl")

    tuned = variables(h100, "nccl", blocks=["azure-tuned"])
    assert {name: value for name, value in tuned.items() if name not in usual} == {
        "NCCL_PXN_DISABLE": "1",
        "NCCL_MIN_NCHANNELS": "32",
        "NCCL_IB_QPS_PER_CONNECTION": "4",
        "NCCL_P2P_NET_CHUNKSIZE": "2097152",
    }
    sharp = variables(h100, "nccl", blocks=["sharp"])
    assert sharp.keys() - usual.keys() == {
        "NCCL_COLLNET_ENABLE",
        "SHARP_COLL_ENABLE_SAT",
        "SHARP_SMX_UCX_INTERFACE",
        "SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING",
    }
    assert variables(gb, "nccl")["NCCL_MNNVL_ENABLE"] == "2"
    assert variables(gb, "nccl", blocks=["azure-tuned"])["NCCL_MNNVL_ENABLE"] == "1"
    assert variables(gb, "nccl", blocks=["sharp"]) == variables(gb, "nccl")


def test_containers_lock_memory_only_where_there_is_rdma_to_register_it() -> None:
    assert fabric.docker_args(size("Standard_ND40rs_v2")) == "--ipc=host --ulimit memlock=-1"
    assert fabric.docker_args(size("Standard_NC24s_v3")) is None


@for_each(
    "name, nodes, network, expected, fault_below",
    [
        ("Standard_ND96amsr_A100_v4", 2, "infiniband", (187, 189), 180),
        ("Standard_ND96asr_v4", 2, "ethernet", (3.1, 3.1), None),
        ("Standard_ND96isr_H100_v5", 1, "nvlink", (460, 460), 460),
        ("Standard_ND96isr_H100_v5", 8, "infiniband", (450, 450), 300),
        ("Standard_ND40rs_v2", 2, "infiniband", (16.3, 16.3), None),
        ("Standard_ND96is_H200_v5", 1, "nvlink", (432, 432), 432),
        ("Standard_NC80adis_H100_v5", 1, "nvlink", (208, 208), 208),
        ("Standard_ND128isr_GB300_v6", 18, "nvlink", (937, 937), 600),
        ("Standard_ND128isr_GB300_v6", 18, "infiniband", (200, 200), 150),
    ],
)
def test_bandwidth_to_expect(
    name: str, nodes: int, network: str, expected: tuple[float, float], fault_below: float | None
) -> None:
    found = [one for one in fabric.bandwidths(size(name)) if (one.nodes, one.network) == (nodes, network)]

    assert [(one.expected, one.fault_below) for one in found] == [(expected, fault_below)]


@pytest.mark.parametrize(
    "spelling", ["acpt-pytorch-2.8-cuda12.6", "AzureML-acpt-pytorch-2.8-cuda12.6", "ACPT-PyTorch-2.8-CUDA12.6"]
)
def test_a_curated_environment_is_a_reference_that_can_be_pinned(spelling: str) -> None:
    environment = environments.get(spelling)

    assert environment is not None
    asset = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6"
    assert environment.version_id("12") == f"{asset}/versions/12"
    assert environment.label_id() == f"{asset}/labels/latest"


def test_an_unknown_environment_has_near_misses() -> None:
    assert environments.get("acpt-pytorch-2.9-cuda12.6") is None
    assert environments.near("acpt-pytorch-2.9-cuda12.6", n=1) == ("acpt-pytorch-2.8-cuda12.6",)


def test_importing_the_catalogue_reads_no_data() -> None:
    script = (
        "import sys; from amlstack.catalog import environments, fabric, files, sizes; "
        "assert sizes._table.cache_info().currsize == 0; "
        "assert environments._by_name.cache_info().currsize == 0; "
        "assert files.rows.cache_info().currsize == 0; "
        "assert not {'pulumi', 'azure', 'pydantic'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", ["Standard_ND128isr_NDR_GB200_v6", "Standard_ND128isr_GB300_v6"])
def test_grace_blackwell_gets_no_relaxed_ordering_and_no_topology_file(name: str) -> None:
    given = variables(name, "nccl", blocks=["topology"])

    assert given["NCCL_IGNORE_CPU_AFFINITY"] == "1"
    assert not {"NCCL_IB_PCI_RELAXED_ORDERING", "UCX_IB_PCI_RELAXED_ORDERING", "NCCL_TOPO_FILE"} & given.keys()
    assert variables("Standard_ND96isr_H100_v5", "nccl")["NCCL_IB_PCI_RELAXED_ORDERING"] == "1"
