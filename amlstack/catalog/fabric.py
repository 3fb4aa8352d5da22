"""What training over InfiniBand wants: environment variables, container arguments, the bandwidth to expect.

Data, not code, says which size gets what: ``data/fabric.json`` and ``data/bandwidth.json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from amlstack.catalog.files import day, load

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import date

    from amlstack.catalog.sizes import Size

Collectives = Literal["nccl", "mpi", "gloo"]
"""The library that carries the collectives of a job."""

Network = Literal["nvlink", "xgmi", "infiniband", "ethernet"]


@dataclass(frozen=True, slots=True)
class FabricSetting:
    """One environment variable, with the reason for it."""

    name: str
    value: str
    why: str
    source: tuple[str, ...]
    checked: date


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """What all_reduce reaches on healthy nodes, in GB/s of bus bandwidth at large messages.

    Attributes:
        nodes: Number of nodes of the measurement.
        network: What carries the traffic that limits it.
        expected: Least and most of what is reported.
        warn_below: Below it somebody should look; None where no source draws a line.
        fault_below: Below it something is broken; None where no source draws a line.
        source: Where it was read, as keys of ``data/sources.json`` followed by the page.
        checked: Month of that, as its first day.
        note: What a reader should know besides; may be empty.
    """

    nodes: int
    network: Network
    expected: tuple[float, float]
    warn_below: float | None
    fault_below: float | None
    source: tuple[str, ...]
    checked: date
    note: str


def settings(
    size: Size,
    *,
    collectives: Collectives,
    mpi_starts_ranks: bool = False,
    image_files: Collection[str] = (),
) -> tuple[FabricSetting, ...]:
    """The variables that let a job use the InfiniBand of its size; none for sizes and jobs that need none.

    CPU sizes get none, nor do jobs whose collectives MPI or Gloo carries: the variables that keep MPI on TCP are right
    only where NCCL does the work, and would send everybody else over Ethernet. ``NCCL_IB_DISABLE`` is never among them.

    Args:
        size: The size of the nodes.
        collectives: The library that carries the collectives.
        mpi_starts_ranks: Whether mpirun starts the processes although NCCL carries the collectives.
        image_files: Absolute paths known to exist in the image, for settings that name a file in it.
    """
    if not (size.gpus and size.fabric.usable):
        return ()
    return tuple(
        _setting(row)
        for row in _rows("fabric")
        if collectives in row["collectives"]
        and (row["series"] is None or size.series in row["series"])
        and (row["vendors"] is None or size.gpu_vendor in row["vendors"])
        and (mpi_starts_ranks or not row["only_if_mpi_starts_ranks"])
        and (row["only_if_image_has"] is None or row["only_if_image_has"] in image_files)
    )


def docker_args(size: Size) -> str | None:
    """Container arguments for InfiniBand: locked memory without a limit, the host's shared memory; else None.

    RDMA registers memory by locking it, and the default limit of a container refuses that.
    """
    return "--ipc=host --ulimit memlock=-1" if size.fabric.usable else None


def bandwidths(size: Size) -> tuple[Bandwidth, ...]:
    """What is known of all_reduce on this size, by number of nodes; empty when nothing is."""
    return tuple(
        _bandwidth(row) for row in _rows("bandwidth") if size.series in row["series"] or size.name in row["sizes"]
    )


@cache
def _rows(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(load(name))


def _setting(row: dict[str, Any]) -> FabricSetting:
    return FabricSetting(row["name"], row["value"], row["why"], tuple(row["source"]), day(row["checked"]))


def _bandwidth(row: dict[str, Any]) -> Bandwidth:
    low, high = row["expected"]
    return Bandwidth(
        nodes=row["nodes"],
        network=row["network"],
        expected=(low, high),
        warn_below=row["warn_below"],
        fault_below=row["fault_below"],
        source=tuple(row["source"]),
        checked=day(row["checked"]),
        note=row["note"],
    )
