"""Subjects of the tables, and a row."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from amlstack.catalog import images, sizes
from amlstack.catalog.prices import Price


def size(name: str, usd: float | None = None) -> sizes.Size:
    found = sizes.get(name)
    assert found is not None, name
    made_up = () if usd is None else (Price(usd, "westeurope", date(2026, 7, 1), "made up"),)
    return replace(found, prices=made_up)


TODAY = date(2026, 8, 1)
H100 = size("Standard_ND96isr_H100_v5")
PRICED = size("Standard_ND96isr_H100_v5", 100.0)
ELSEWHERE = replace(
    PRICED, prices=(*PRICED.prices, Price(120.0, "uksouth", date(2026, 7, 1), "made up", low_priority=24.0))
)
NO_IB = size("Standard_ND96is_H100_v5")
CPU = size("Standard_DS3_v2")
HB = size("Standard_HB120rs_v3")
ONE_GPU = size("Standard_NC24ads_A100_v4")
UNDOCUMENTED = replace(CPU, vcpus=None)
SMALL = replace(H100, memory_gib=64.0)
GB200 = size("Standard_ND128isr_NDR_GB200_v6")
MI300X = size("Standard_ND96isr_MI300X_v5")
V100 = size("Standard_ND40rs_v2")
T4 = size("Standard_NC4as_T4_v3")
RTX = size("Standard_NC144ds_xl_RTXPRO6000BSE_v6")
ACPT = images.Image("acpt", ("x64",), cuda="12.6", torch="2.10.0+cu126", vendor="NVIDIA")
CUDA_ALONE = images.Image("tf", ("x64",), cuda="12.6", vendor="NVIDIA")
ROCM = images.Image("rocm", (), vendor="AMD")
OWN_BUILD = images.Image("own", (), cuda="12.6", vendor="NVIDIA", build="2.7.1")
UNKNOWN_BUILD = images.Image("own", (), cuda="12.8", vendor="NVIDIA", build="2.7.1")
NO_VERSION = images.Image("own", (), vendor="NVIDIA", build="2.7.1")
NEW_RELEASE = images.Image("ngc", (), vendor="NVIDIA", least="7.5")
MPI_5 = images.Image("base", ("x64",), open_mpi="5.0")
MPI_4 = images.Image("base", ("x64",), open_mpi="4.1.0")
EVERYWHERE = images.Image("multi", ("x64", "arm64"), cuda="12.9", torch="2.10.0+cu129")
CU13 = images.Image("new", ("x64",), cuda="13.0", torch="2.10.0+cu130")
OPENIB = "mpirun --mca btl self,openib python t.py"
AGAIN = "torchrun --max_restarts 3 train.py"
CLOSED = date(2026, 7, 1)
SPOT_SAYS = {"preemptible": True, "nodes": 2}


class Row(NamedTuple):
    """One call: positional arguments, keyword arguments, and what the finding must contain; None for no finding."""

    args: tuple[Any, ...]
    named: dict[str, Any]
    says: str | None
    function: str = "check"


def row(*args: Any, says: str | None, function: str = "check", **named: Any) -> Row:
    return Row(args, named, says, function)
