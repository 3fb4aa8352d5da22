"""The needs of training over InfiniBand: environment variables, container arguments, the bandwidth to expect.

Data, not code, says which size gets what: ``data/fabric.json`` and ``data/bandwidth.json``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from amlstack.catalog.files import rows

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size

Collectives = Literal["nccl", "mpi", "gloo"]
"""The library that carries the collectives of a job."""

Block = Literal["azure-tuned", "sharp", "topology"]
"""Variables that a job gets only when it asks: Azure's own tuning of its tests, reduction in the switches, and the
topology files of Azure's HPC images, for an image that holds them.
"""

_OF_A_SETTING = ("name", "value", "why", "source", "checked")
Network = Literal["nvlink", "xgmi", "infiniband", "ethernet"]


class FabricSetting(NamedTuple):
    """One environment variable, with the reason for it."""

    name: str
    value: str
    why: str
    source: tuple[str, ...]
    checked: date


class Bandwidth(NamedTuple):
    """The bus bandwidth that all_reduce reaches on healthy nodes, in GB/s at large messages.

    Attributes:
        nodes: Number of nodes of the measurement.
        racks: 1 for nodes of one rack; None where a source does not say, or they are of several.
        network: What carries the traffic that limits it.
        expected: Least and most of what is reported.
        warn_below: Below it somebody should look; None where no source draws a line.
        fault_below: Below it something is broken; None where no source draws a line.
        source: Where it was read, as keys of ``data/sources.json`` followed by the page.
        checked: Month of that, as its first day.
        note: What a reader should know besides; may be empty.
    """

    nodes: int
    racks: int | None
    network: Network
    expected: tuple[float, float]
    warn_below: float | None
    fault_below: float | None
    source: tuple[str, ...]
    checked: date
    note: str


def settings(
    size: Size, *, collectives: Collectives, mpi_starts_ranks: bool = False, blocks: Collection[Block] = ()
) -> tuple[FabricSetting, ...]:
    """The variables that let a job use the fabric of its size; none for sizes and jobs that need none.

    CPU sizes get none, nor do jobs whose collectives MPI or Gloo carries: the variables that keep MPI on TCP are right
    only where NCCL does the work, and would send everybody else over Ethernet. ``NCCL_IB_DISABLE`` is never among them.

    Args:
        size: The size of the nodes.
        collectives: The library that carries the collectives.
        mpi_starts_ranks: Whether mpirun starts the processes although NCCL carries the collectives.
        blocks: Blocks that the job asks for; a value of theirs goes before the usual one.
    """
    found: dict[str, FabricSetting] = {}
    for row in _of(size):
        if (
            collectives in row["collectives"]
            and (mpi_starts_ranks or not row["only_if_mpi_starts_ranks"])
            and (row["block"] is None or row["block"] in blocks)
            and (row["name"] not in found or row["block"] is not None)
        ):
            found[row["name"]] = FabricSetting(**{key: row[key] for key in _OF_A_SETTING})
    return tuple(found.values())


def blocks(size: Size) -> tuple[Block, ...]:
    """The blocks that a job on this size may ask for."""
    return tuple(dict.fromkeys(row["block"] for row in _of(size) if row["block"] is not None))


def _of(size: Size) -> Iterator[dict[str, Any]]:
    """The rows about a size: it is named, or its series, or all that have GPUs and a fabric."""
    if not size.gpus:
        return
    for row in rows("fabric"):
        named = (row["series"] is None and row["sizes"] is None) or (
            size.series in (row["series"] or ()) or size.name in (row["sizes"] or ())
        )
        if (
            named
            and (size.fabric.usable or row["without_infiniband"])
            and (row["vendors"] is None or size.gpu_vendor in row["vendors"])
        ):
            yield row


def docker_args(size: Size) -> str | None:
    """Container arguments for InfiniBand: locked memory without a limit, the host's shared memory; else None.

    RDMA registers memory by locking it, and the default limit of a container refuses that.
    """
    return "--ipc=host --ulimit memlock=-1" if size.fabric.usable else None


def bandwidths(size: Size) -> tuple[Bandwidth, ...]:
    """The known figures of all_reduce on this size, by number of nodes and racks; empty when nothing is known."""
    return tuple(
        Bandwidth(**{key: value for key, value in row.items() if key not in ("series", "sizes")})
        for row in rows("bandwidth")
        if size.series in row["series"] or size.name in row["sizes"]
    )
