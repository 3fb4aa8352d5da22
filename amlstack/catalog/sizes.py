"""The VM sizes that Azure ML clusters and serverless jobs can name, and the questions asked of them.

The rows lie in ``data/sizes.json``, one line each; ``data/sources.json`` says what the source keys stand for.
``checked`` is the month in which a row was last held against its sources, written as that month's first day.

Where a series stands in its life, as Microsoft's pages on the lifecycle of VM sizes say.

The sizes that somebody may have meant, or may take instead of one that is gone, closed or without a fabric.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from amlstack.base import text
from amlstack.catalog import images as gpu_models
from amlstack.catalog import overlay
from amlstack.catalog.files import day, load, rows
from amlstack.catalog.prices import NodePrice, Price, prices_of

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.images import Gpu

Stage = Literal["current", "extended", "current or extended", "end of life", "retired"]
"""Microsoft's four stages; "current or extended" where no page says which of the two."""

NewSubscriptions = Literal["closed", "restricted"]


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The known facts of a series that is not retired.

    Attributes:
        stage: Its stage until it is retired.
        new_subscriptions: ``closed`` where new subscriptions cannot deploy it and no more quota is approved,
            ``restricted`` where Microsoft says only that there are restrictions; None for neither.
        closed_since: First day of the month since which it is closed; None for no date.
        source: Where it was read, as keys of ``data/sources.json`` followed by the page.
        checked: The date of that page.
        note: In a sentence, what the page says; may be empty.
    """

    stage: Stage
    new_subscriptions: NewSubscriptions | None
    closed_since: date | None
    source: tuple[str, ...]
    checked: date
    note: str


def lifecycle_of(series: str) -> Lifecycle | None:
    """The row of a series; None where no page speaks of it."""
    return _by_series().get(series)


@cache
def _by_series() -> dict[str, Lifecycle]:
    found = {}
    for row in rows("lifecycle"):
        one = Lifecycle(**{key: value for key, value in row.items() if key != "series"})
        found.update(dict.fromkeys(row["series"], one))
    return found


PREFIX = "standard_"
GIB = 1024**3

SHM_FRACTION = 0.5
"""Share of a VM's memory that a container may use as shared memory.

Half is what Linux gives /dev/shm by itself. It is a ceiling, not a reservation: pages count only when written, and the
other half stays for the processes, whose batches the DataLoader workers hand over through it.
"""


@dataclass(frozen=True, slots=True)
class Fabric:
    """The network between nodes of one size.

    Attributes:
        rdma: Whether the size has an RDMA network at all.
        sriov: Whether that network is exposed by SR-IOV, which NCCL, UCX and Open MPI need to reach it.
        infiniband: Generation (QDR, FDR, EDR, HDR, NDR, XDR-class); None without InfiniBand.
        gbps_per_node: Gb/s of all its ports together; None without InfiniBand or where no source gives it.
    """

    rdma: bool
    sriov: bool
    infiniband: str | None
    gbps_per_node: float | None

    @property
    def usable(self) -> bool:
        """True where training across nodes reaches InfiniBand through it."""
        return self.sriov and self.infiniband is not None


@dataclass(frozen=True, slots=True)
class Size:
    """One VM size.

    Attributes:
        name: Azure's name, e.g. ``Standard_ND96isr_H100_v5``.
        family: Family of Azure ML's quota; None where no source names it.
        series: Series as Microsoft's size pages name it, e.g. ``ND_H100_v5``.
        vcpus: Virtual cores; None where unknown.
        memory_gib: Memory of the VM in GiB; None where unknown.
        architecture: ``x64`` or ``arm64``; an image must be built for it.
        gpus: GPUs that the VM sees; 0 for CPU sizes.
        gpu_vendor: ``NVIDIA`` or ``AMD``; None for CPU sizes.
        gpu_model: E.g. ``H100``; None for CPU sizes.
        gpu_memory_gib: Memory of one GPU in GiB; None for CPU sizes.
        fabric: The network between nodes.
        retired: First day without the size, past or announced; None when none is known.
        azureml_supported: As Azure ML's own tables say; None where they are silent.
        source: Where the row was read, as keys of ``data/sources.json`` followed by the page.
        checked: When it was last held against its sources.
        note: What a reader should know besides; may be empty.
        prices: All that are known, best first: the team's own, then the list's by region.
        gpu_share: ``1/6`` where a GPU of the VM is such a part of a card; empty for whole ones.
        nvlink_nodes: Nodes over which one NVLink domain reaches; None where NVLink joins no GPUs, or nobody says.
        lifecycle: Its series' stage and what new subscriptions may do; None for retired series.
        gpu: What its GPU model can run; None for CPU sizes.
    """

    name: str
    family: str | None
    series: str
    vcpus: int | None
    memory_gib: float | None
    architecture: str
    gpus: int
    gpu_vendor: str | None
    gpu_model: str | None
    gpu_memory_gib: float | None
    fabric: Fabric
    retired: date | None
    azureml_supported: bool | None
    source: tuple[str, ...]
    checked: date
    note: str
    prices: tuple[Price, ...] = ()
    gpu_share: str = ""
    nvlink_nodes: int | None = None
    lifecycle: Lifecycle | None = None
    gpu: Gpu | None = None

    def stage(self, on: date) -> Stage | None:
        """Its stage on a day; None where no page speaks of its series."""
        if self.retired_on(on):
            return "retired"
        return self.lifecycle.stage if self.lifecycle else None

    @property
    def price_per_hour(self) -> Price | None:
        """Price of a node where its region is not known, the first of ``prices``; None when it was not looked up."""
        return self.prices[0] if self.prices else None

    def price_in(self, region: str | None) -> Price | None:
        """The price in a region; where none was read there, and for None, the first that is known."""
        here = (price for price in self.prices if price.region == region)
        return next(here, self.price_per_hour)

    def node_price(self, region: str | None, *, low_priority: bool) -> NodePrice | None:
        """The price that a budget is held against; None where none of the size is known.

        Where that of the region is not known it is the first known one, for low priority the dedicated one as a bound;
        the basis says so: ``uksouth, low priority``, ``eastus, none is known of westeurope``.

        Args:
            region: Where the node runs, as programs write it; None where that is not known.
            low_priority: Whether it is of low priority.
        """
        price = self.price_in(region)
        if price is None:
            return None
        basis = price.region
        if region is not None and region != price.region:
            basis = f"{price.region}, none is known of {region}"
        if low_priority:
            basis += ", dedicated nodes" if price.low_priority is None else ", low priority"
        return NodePrice(price.hourly(low_priority=low_priority), basis)

    def retired_on(self, on: date) -> bool:
        """True where the size is gone on that day."""
        return self.retired is not None and on >= self.retired

    def shm_bytes(self) -> int | None:
        """Shared memory for a container in bytes: ``SHM_FRACTION`` of the VM's; None where that is unknown."""
        return None if self.memory_gib is None else int(self.memory_gib * SHM_FRACTION) * GIB

    def shm_size(self) -> str | None:
        """The same as Azure ML writes it, in whole GiB, e.g. ``950g``; None where the memory is unknown."""
        size = self.shm_bytes()
        return None if size is None else f"{size // GIB}g"

    def describe(self) -> str:
        """The size in half a line, e.g. ``8 x H100 80 GiB, NDR InfiniBand 3200 Gb/s``."""
        part = f" ({self.gpu_share} of a card)" if self.gpu_share else ""
        gpus = f"{self.gpus} x {self.gpu_model} {self.gpu_memory_gib or 0:g} GiB{part}"
        chips = gpus if self.gpus else f"{self.vcpus} vCPUs"
        if self.fabric.infiniband is None:
            return f"{chips}, no InfiniBand"
        rate = f" {self.fabric.gbps_per_node:g} Gb/s" if self.fabric.gbps_per_node else ""
        return f"{chips}, {self.fabric.infiniband} InfiniBand{rate}{'' if self.fabric.sriov else ' without SR-IOV'}"


class _Table(Mapping[str, "Size"]):
    """Sizes by name in lower case, each built when it is first asked for: most commands ask for one or two."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = {row["name"].lower(): row for row in rows}
        self._built: dict[str, Size] = {}

    def __getitem__(self, name: str) -> Size:
        if name not in self._built:
            self._built[name] = _size(dict(self._rows[name]))
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def days(self, key: str) -> set[date]:
        """The days that the rows have under a key, without building a size of each."""
        return {day(given) for given in {row[key] for row in self._rows.values()} if given}

    def __len__(self) -> int:
        return len(self._rows)


def by_lower_name() -> Mapping[str, Size]:
    """Every size by its name in lower case; the same mapping as long as the facts are the same."""
    return _table(overlay.path())


@cache
def _table(file: Path | None) -> _Table:
    """The sizes of the catalogue and of one team's file: a size of its own goes before."""
    return _Table((*load("sizes"), *overlay.read(file).sizes))


def _size(row: dict[str, Any]) -> Size:
    fabric = Fabric(*(row.pop(key) for key in ("rdma", "sriov", "infiniband", "gbps_per_node")))
    row["retired"] = day(row["retired"]) if row["retired"] else None
    row["checked"] = day(row["checked"])
    row["source"] = tuple(row["source"])
    return Size(
        **row,
        fabric=fabric,
        prices=prices_of(row["name"], row["series"], row["vcpus"]),
        lifecycle=lifecycle_of(row["series"]),
        gpu=gpu_models.get(row["gpu_model"]) if row["gpu_model"] else None,
    )


def all_sizes() -> tuple[Size, ...]:
    """Every size of the catalogue, in the order of the data file."""
    return tuple(by_lower_name().values())


def last_checked() -> date:
    """The day on which a row of the catalogue was last checked."""
    return max(_table(overlay.path()).days("checked"))


def last_retirement() -> date | None:
    """The latest day from which a size of the catalogue is gone; None where none has such a day."""
    return max(_table(overlay.path()).days("retired"), default=None)


def get(name: str) -> Size | None:
    """The size of that name in any letter case, or None.

    The prefix ``Standard_`` belongs to the name: Azure knows no size without it, `substitutes.near` puts it back.
    """
    return by_lower_name().get(name.lower())


_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

_MOST_ANSWERS = 1000
_LETTERS = re.compile("[a-z]")
_VERSION = re.compile(r"_v(\d+)$")


def _once(question: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """A question whose answer follows from the table and what is given: of a thousand files most ask the same."""
    known: dict[Any, _Answer] = {}
    table: Mapping[str, Size] | None = None

    @wraps(question)
    def asked(*given: _Given.args, **named: _Given.kwargs) -> _Answer:
        nonlocal table
        if table is not by_lower_name() or len(known) > _MOST_ANSWERS:
            table = by_lower_name()
            known.clear()
        key = (given, tuple(named.items()))
        if key not in known:
            known[key] = question(*given, **named)
        return known[key]

    return asked


@_once
def near(name: str, n: int = 3) -> tuple[str, ...]:
    """Names that somebody who wrote ``name`` may have meant, best first; empty when nothing is close."""
    known = {lower.removeprefix(PREFIX): lower for lower in by_lower_name()}
    wanted = name.lower().removeprefix(PREFIX)
    return tuple(by_lower_name()[known[match]].name for match in text.near(wanted, known, n))


@_once
def nearest_compliant(size: Size, on: date) -> Size | None:
    """The size that comes closest to this one among those alive on that day with SR-IOV InfiniBand.

    A GPU size is matched with GPU sizes of the same vendor, a CPU size with CPU sizes. Only sizes that Microsoft
    documents well enough to recommend (bandwidth and memory known) are considered.

    Args:
        size: What somebody wanted.
        on: The day on which the answer must be available.
    """
    candidates = [
        other
        for other in all_sizes()
        if other.fabric.usable
        and other.fabric.gbps_per_node is not None
        and other.memory_gib is not None
        and not other.retired_on(on)
        and other.gpu_vendor == size.gpu_vendor
    ]
    return min(candidates, key=lambda other: (_distance(size, other), other.name), default=None)


@_once
def nearest_open(size: Size, on: date) -> Size | None:
    """The size that comes closest to this one among those that new subscriptions get, with GPUs and fabric like it."""
    candidates = [
        other
        for other in all_sizes()
        if other.lifecycle is not None
        and other.lifecycle.new_subscriptions is None
        and not other.retired_on(on)
        and (other.gpu_vendor, other.fabric.usable) == (size.gpu_vendor, size.fabric.usable)
    ]
    return min(candidates, key=lambda other: (_distance(size, other), *_unlike(size, other), other.name), default=None)


def _unlike(wanted: Size, other: Size) -> tuple[int, int]:
    """The number of feature letters that differ in the two names, and then the newer version first."""
    ours, theirs = ("".join(sorted(_LETTERS.findall(each.name.lower().split("_")[1]))) for each in (wanted, other))
    version = _VERSION.search(other.name)
    return abs(len(ours) - len(theirs)) + (ours != theirs), -int(version[1]) if version else 0


def _distance(wanted: Size, other: Size) -> float:
    """The distance of two sizes: doublings of count and memory, plus what a user would have to change or fear."""
    if wanted.gpus:
        apart = _doublings(wanted.gpus, other.gpus) + _doublings(wanted.gpu_memory_gib, other.gpu_memory_gib)
    else:
        apart = _doublings(wanted.vcpus, other.vcpus) + _doublings(wanted.memory_gib, other.memory_gib)
    apart += 1.0 * (wanted.gpu_model != other.gpu_model)
    apart += 1.0 * (other.retired is not None)
    apart += 0.5 * (other.azureml_supported is not True)
    apart += 4.0 * (wanted.architecture != other.architecture)
    return apart


def _doublings(a: float | None, b: float | None) -> float:
    return abs(log2(a / b)) if a and b else 1.0
