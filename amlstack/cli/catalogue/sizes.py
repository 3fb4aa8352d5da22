"""VM sizes of the catalogue as text: filters, a table, the facts of one size, and plain data."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding
from amlstack.base.text import did_you_mean
from amlstack.catalog import fabric
from amlstack.cli.console import columns, say, style

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from amlstack.catalog.fabric import Bandwidth
    from amlstack.catalog.sizes import Price, Size


def models(written: str | None, sizes: Sequence[Size]) -> Collection[str] | None:
    """The GPU models that a name means: the model, else all that begin with it; None where none was asked for."""
    if written is None:
        return None
    known = _models(sizes)
    wanted = written.lower()
    return [each for each in known if each.lower() == wanted] or [
        each for each in known if each.lower().startswith(wanted)
    ]


def of_family(size: Size, written: str | None) -> bool:
    """True where a size's series or quota family contains the text given; always true for an empty text."""
    return written is None or written.lower() in f"{size.series} {size.family or ''}".lower()


def unmet(gpu: str | None, family: str | None, sizes: Sequence[Size]) -> Iterator[Finding]:
    """A finding for a GPU that no size has, and for a series that there is none of."""
    if gpu is not None and not models(gpu, sizes):
        known = _models(sizes)
        yield Finding(
            "gpu-unknown",
            "--gpu",
            f"No size of the catalogue has `{gpu}` GPUs",
            "A GPU is named as Azure's sizes name it",
            did_you_mean(gpu, known, otherwise=f"There are {', '.join(f'`{each}`' for each in known)}."),
        )
    if family is not None and not any(of_family(size, family) for size in sizes):
        series = list(dict.fromkeys(size.series for size in sizes))
        yield Finding(
            "series-unknown",
            "--family",
            f"No series or quota family contains `{family}`",
            "A series is named as Microsoft's pages on sizes name it",
            did_you_mean(family, series, otherwise="`amlstack sizes --json` has the series of each size."),
        )


def _models(sizes: Sequence[Size]) -> list[str]:
    return list(dict.fromkeys(size.gpu_model for size in sizes if size.gpu_model))


def price_in(size: Size, region: str | None) -> Price | None:
    """The price in a region, or the first known; none where a region was asked for and it is not known there."""
    if region is None:
        return size.price_per_hour
    return next((price for price in size.prices if price.region == region), None)


def as_dict(size: Size, on: date, region: str | None = None, *, all_prices: bool = True) -> dict[str, Any]:
    """A size as plain data, the fabric's facts beside the others, days as ISO dates.

    Args:
        size: The size.
        on: The day of its stage.
        region: The region whose price is ``price_per_hour``; unset: the first known.
        all_prices: Whether those of all regions, tens for a size, are there too, as ``prices``.
    """
    row = asdict(size if all_prices else replace(size, prices=()))
    if not all_prices:
        del row["prices"]
    fabric = row.pop("fabric")
    price = price_in(size, region)
    plain: dict[str, Any] = _plain(
        {
            **row,
            **fabric,
            "price_per_hour": asdict(price) if price else None,
            "stage": size.stage(on),
            "alive": not size.retired_on(on),
            "multi_node": size.fabric.usable or not (size.gpus or size.fabric.rdma),
        }
    )
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def facts(size: Size, on: date, region: str | None) -> list[tuple[str, str]]:
    """Label and value of each fact of a size; see `price_in` for the region."""
    known = [
        ("Name", size.name),
        ("Series", f"{size.series} (quota family {size.family or 'unknown'})"),
        ("vCPUs, memory", f"{_some(size.vcpus)} and {_some(size.memory_gib)} GiB, {size.architecture}"),
        ("GPUs", _chip(size) or "none"),
        ("Fabric", _fabric(size)),
        ("On request", ", ".join(fabric.blocks(size))),
        ("all_reduce", "; ".join(map(_bandwidth, fabric.bandwidths(size)))),
        ("NVLink domain", _nvlink(size)),
        ("Stage", _stage(size, on) or "unknown"),
        ("Retired", _retired(size, on) or "no date known"),
        ("Azure ML", {True: "supported", False: "not supported", None: "not documented"}[size.azureml_supported]),
        ("Price", _price(size, on, region) or "not looked up"),
        ("Shared memory", size.shm_size() or "unknown"),
        ("Source", f"{', '.join(size.source)} ({size.checked:%Y-%m})"),
    ]
    shown = [(label, value) for label, value in known if value]
    return [*shown, ("Note", size.note)] if size.note else shown


def table(found: Sequence[Size], on: date, region: str | None) -> None:
    """Print one line per size."""
    if not found:
        say("No size is like that. `amlstack sizes` without filters lists all.")
        return
    headings, *lines = columns([HEADINGS, *(_row(size, on, region) for size in found)])
    say(style(headings, bold=True))
    for size, line in zip(found, lines, strict=True):
        say(style(line, dim=size.retired_on(on) or None))
    say(f"{len(found)} size{'' if len(found) == 1 else 's'}; `amlstack sizes NAME` explains one.")
    if region is not None and any(price_in(size, region) is None and not size.retired_on(on) for size in found):
        say(f"Without a price: the catalogue has none of {region}.")


HEADINGS = ("Size", "GPUs", "vCPUs", "GiB", "Fabric", "Gb/s", "SR-IOV", "Stage", "USD/h", "Region, month")


def _row(size: Size, on: date, region: str | None) -> tuple[str, ...]:
    rdma = size.fabric.rdma
    price = price_in(size, region)
    return (
        size.name,
        _gpus(size),
        _some(size.vcpus),
        _some(size.memory_gib),
        size.fabric.infiniband or ("RDMA" if rdma else "Ethernet"),
        f"{size.fabric.gbps_per_node:g}" if size.fabric.gbps_per_node else "",
        ("yes" if size.fabric.sriov else "no") if rdma else "",
        _stage(size, on),
        f"{price.usd:,.3f}".removesuffix("0") if price else "",
        f"{price.region}, {price.checked:%Y-%m}" if price else "",
    )


def _gpus(size: Size) -> str:
    if not size.gpus:
        return ""
    share = f" ({size.gpu_share})" if size.gpu_share else ""
    return f"{size.gpus} x {size.gpu_model} {_some(size.gpu_memory_gib)} GiB{share}"


def _chip(size: Size) -> str:
    if size.gpu is None or size.gpu.compute_capability is None:
        return _gpus(size)
    until = f" to {size.gpu.cuda_until}" if size.gpu.cuda_until else " or later"
    return f"{_gpus(size)}, compute capability {size.gpu.compute_capability} (CUDA {size.gpu.cuda_from}{until})"


def _nvlink(size: Size) -> str:
    if size.nvlink_nodes is None:
        return ""
    return "the GPUs of a node" if size.nvlink_nodes == 1 else f"the GPUs of {size.nvlink_nodes} nodes, one rack"


def _stage(size: Size, on: date) -> str:
    stage = size.stage(on) or ""
    when = f" {size.retired}" if size.retired else ""
    closed = not size.retired_on(on) and size.lifecycle is not None and size.lifecycle.new_subscriptions
    return f"{stage}{when}{f', {closed} to new subscriptions' if closed else ''}"


def _fabric(size: Size) -> str:
    if size.fabric.infiniband is None:
        return "RDMA without InfiniBand" if size.fabric.rdma else "Ethernet"
    rate = f", {size.fabric.gbps_per_node:g} Gb/s per node" if size.fabric.gbps_per_node else ""
    return f"{size.fabric.infiniband} InfiniBand{rate}, {'SR-IOV' if size.fabric.sriov else 'without SR-IOV'}"


def _bandwidth(row: Bandwidth) -> str:
    low, high = row.expected
    reached = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    nodes = f"{row.nodes} node{'' if row.nodes == 1 else 's'}"
    rack = " of one rack" if row.racks == 1 and row.nodes > 1 else ""
    network = {"nvlink": "NVLink", "xgmi": "xGMI", "infiniband": "InfiniBand", "ethernet": "Ethernet"}[row.network]
    return f"{reached} GB/s on {nodes}{rack} over {network}"


def _retired(size: Size, on: date) -> str:
    if size.retired is None:
        return ""
    return size.retired.isoformat() if size.retired_on(on) else f"{size.retired.isoformat()} (announced)"


def _price(size: Size, on: date, region: str | None) -> str:
    price = price_in(size, region)
    if price is None:
        first = size.price_per_hour
        known = f"; {first.usd:,.2f} USD per hour in {first.basis(on)}" if first else ""
        return f"not known in {region}{known}" if region is not None else ""
    less = "".join(
        f", {value:,.2f} {name}"
        for name, value in (("low priority", price.low_priority), ("spot", price.spot))
        if value is not None
    )
    return f"{price.usd:,.2f} USD per hour{less} ({price.basis(on)})"


def _some(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
