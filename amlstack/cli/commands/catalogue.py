"""Verbs on the catalogue: ``sizes`` explained or renewed; ``environments``, ``schema`` of job files."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.base.findings import Finding, Level
from amlstack.base.text import did_you_mean
from amlstack.catalog import clock, fabric, regions
from amlstack.catalog import environments as known_environments
from amlstack.catalog import sizes as known_sizes
from amlstack.cli.console import Json, columns, end, print_findings, print_json, say, style

if TYPE_CHECKING:
    from amlstack.catalog.fabric import Bandwidth
    from amlstack.catalog.prices import Price
    from amlstack.catalog.sizes import Size

Name = Annotated[str | None, typer.Argument(help="A size to explain; unset: the table.")]
Gpus = Annotated[int | None, typer.Option(help="Only sizes with this many GPUs; 0: CPU sizes.")]
Model = Annotated[str | None, typer.Option(help="Only this GPU model, e.g. H100.")]
Family = Annotated[str | None, typer.Option(help="Only series or quota families that contain this, e.g. ND.")]
InfiniBand = Annotated[
    bool | None,
    typer.Option("--infiniband/--no-infiniband", help="Only sizes whose InfiniBand training reaches; or only others."),
]
Alive = Annotated[
    bool | None, typer.Option("--alive/--retired", help="Only sizes that still exist; or only retired ones.")
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="Ask Azure, and show what would change in the data file; needs a sign-in.")
]
Write = Annotated[bool, typer.Option("--write", help="With --refresh: write the data file, for review and commit.")]
Subscription = Annotated[
    str | None, typer.Option(envvar="AZURE_SUBSCRIPTION_ID", help="With --refresh: id of a subscription.")
]
Location = Annotated[str, typer.Option(help="With --refresh: the region whose sizes to ask for.")]
Region = Annotated[str | None, typer.Option(help="Show prices of this region; unset: of the region first known.")]
Prices = Annotated[
    bool, typer.Option("--prices", help="With --refresh: only prices, from the public price list; needs no sign-in.")
]


def sizes(
    name: Name = None,
    gpus: Gpus = None,
    gpu: Model = None,
    family: Family = None,
    *,
    infiniband: InfiniBand = None,
    alive: Alive = None,
    region: Region = None,
    refresh: Refresh = False,
    prices: Prices = False,
    write: Write = False,
    subscription: Subscription = None,
    location: Location = "westeurope",
    as_json: Json = False,
) -> None:
    """List the VM sizes that the catalogue knows, or explain one.

    The table has the living sizes first and says what training across nodes depends on: GPUs, InfiniBand and its rate,
    whether it is exposed by SR-IOV, the stage in a size's life, and its price with region and month. An unknown name
    ends with exit status 1 and the names most like it.

    Examples:
        amlstack sizes --infiniband --alive

        amlstack sizes Standard_NC24rs_v3

        amlstack sizes --gpu H100 --region uksouth

        amlstack sizes --refresh --prices --region westeurope --write

        amlstack sizes --refresh --subscription ID --location westeurope --write
    """
    day = clock.today()
    where = _region(region, as_json=as_json)
    if refresh:
        from amlstack.cli import refresh as renewal

        if prices:
            renewal.refresh_prices(where or location, day, write=write)
        else:
            renewal.refresh(subscription, location, day, write=write)
        return
    if name is not None:
        _explain(name, day, where, as_json=as_json)
        return
    everything = known_sizes.all_sizes()
    _stop(list(_unmet(gpu, family, everything)), as_json=as_json)
    asked = _meant_models(gpu, everything)
    found = [
        size
        for size in everything
        if (gpus is None or size.gpus == gpus)
        and (asked is None or size.gpu_model in asked)
        and _is_of_family(size, family)
        and (infiniband is None or size.fabric.usable is infiniband)
        and (alive is None or size.retired_on(day) is not alive)
    ]
    found.sort(key=lambda size: size.retired_on(day))
    if as_json:
        # Of each size the one price: all of all sizes are megabytes.
        print_json([_as_dict(size, day, where, all_prices=False) for size in found])
    else:
        _print_table(found, day, where)


def _region(written: str | None, *, as_json: bool) -> str | None:
    """The region as programs write it; a name that is nearly one ends with a finding."""
    if written is None:
        return None
    finding = regions.finding(written, "--region")
    if finding is not None and finding.level is Level.ERROR:
        _stop([finding], as_json=as_json)
    elif finding is not None:
        print_findings([finding], err=True)
    return regions.code(written)


def _stop(findings: Sequence[Finding], *, as_json: bool) -> None:
    """End with what is wrong with the words of the command, if anything is."""
    if not findings:
        return
    if as_json:
        print_json({"findings": [each.as_dict() for each in findings]})
    else:
        print_findings(findings, err=True)
    raise typer.Exit(1)


def _explain(name: str, on: date, region: str | None, *, as_json: bool) -> None:
    from policies.checks import sizes_for
    from policies.checks.size import check_known_size

    size = known_sizes.get(name)
    if size is None:
        finding = check_known_size(name, "NAME")
        if finding is not None and (meant := _meant_models(name, known_sizes.all_sizes())):
            remedy = f"`amlstack sizes --gpu {shlex.quote(name)}` lists the sizes with {', '.join(meant)}"
            finding = replace(finding, remedy=remedy)
        _stop([finding] if finding else [], as_json=as_json)
        return
    findings = list(sizes_for(size.name, nodes=2, on=on, where="size"))
    nearest = known_sizes.nearest_compliant(size, on) if findings else None
    if as_json:
        print_json(
            {
                **_as_dict(size, on, region),
                "nearest_compliant": nearest.name if nearest else None,
                "findings": [each.as_dict() for each in findings],
            }
        )
        return
    for label, value in _facts(size, on, region):
        say(f"{label:16}{value}")
    say("")
    if not findings:
        say("Work across nodes: no rule on sizes refuses it.")
    for finding in findings:
        say(f"Work across nodes: {finding.message} [{finding.code}]")
    if nearest is not None:
        say(f"Nearest:        {nearest.name} ({nearest.describe()})")


def _meant_models(written: str | None, sizes: Sequence[Size]) -> Collection[str] | None:
    """The GPU models that a name means: the model, else all that begin with it; None where none was asked for."""
    if written is None:
        return None
    known = _models(sizes)
    wanted = written.lower()
    return [each for each in known if each.lower() == wanted] or [
        each for each in known if each.lower().startswith(wanted)
    ]


def _is_of_family(size: Size, written: str | None) -> bool:
    """True where a size's series or quota family contains the text given; always true for an empty text."""
    return written is None or written.lower() in f"{size.series} {size.family or ''}".lower()


def _unmet(gpu: str | None, family: str | None, sizes: Sequence[Size]) -> Iterator[Finding]:
    """A finding for a GPU that no size has, and for a series that there is none of."""
    if gpu is not None and not _meant_models(gpu, sizes):
        known = _models(sizes)
        seen, rule = f"No size of the catalogue has `{gpu}` GPUs", "A GPU is named as Azure's sizes name it"
        remedy = did_you_mean(gpu, known, otherwise=f"There are {', '.join(f'`{each}`' for each in known)}.")
        yield Finding("gpu-unknown", "--gpu", seen, rule, remedy)
    if family is not None and not any(_is_of_family(size, family) for size in sizes):
        series = list(dict.fromkeys(size.series for size in sizes))
        near = did_you_mean(family, series, otherwise="`amlstack sizes --json` has the series of each size.")
        named = "A series is named as Microsoft's pages on sizes name it"
        yield Finding("series-unknown", "--family", f"No series or quota family contains `{family}`", named, near)


def _models(sizes: Sequence[Size]) -> list[str]:
    return list(dict.fromkeys(size.gpu_model for size in sizes if size.gpu_model))


def _price_in(size: Size, region: str | None) -> Price | None:
    """The price in a region, or the first known; none where a region was asked for and it is not known there."""
    if region is None:
        return size.price_per_hour
    return next((price for price in size.prices if price.region == region), None)


def _as_dict(size: Size, on: date, region: str | None = None, *, all_prices: bool = True) -> dict[str, Any]:
    """A size for `print_json`, the fabric's facts beside the others.

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
    price = _price_in(size, region)
    return {
        **row,
        **fabric,
        "price_per_hour": asdict(price) if price else None,
        "stage": size.stage(on),
        "alive": not size.retired_on(on),
        "multi_node": size.fabric.usable or not (size.gpus or size.fabric.rdma),
    }


def _facts(size: Size, on: date, region: str | None) -> list[tuple[str, str]]:
    """Label and value of each fact of a size; see `_price_in` for the region."""
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


def _print_table(found: Sequence[Size], on: date, region: str | None) -> None:
    """Print one line per size."""
    if not found:
        say("No size is like that. `amlstack sizes` without filters lists all.")
        return
    headings, *lines = columns([HEADINGS, *(_row(size, on, region) for size in found)])
    say(style(headings, bold=True))
    for size, line in zip(found, lines, strict=True):
        say(style(line, dim=size.retired_on(on) or None))
    say(f"{len(found)} size{'' if len(found) == 1 else 's'}; `amlstack sizes NAME` explains one.")
    if region is not None and any(_price_in(size, region) is None and not size.retired_on(on) for size in found):
        say(f"Without a price: the catalogue has none of {region}.")


HEADINGS = ("Size", "GPUs", "vCPUs", "GiB", "Fabric", "Gb/s", "SR-IOV", "Stage", "USD/h", "Region, month")


def _row(size: Size, on: date, region: str | None) -> tuple[str, ...]:
    rdma = size.fabric.rdma
    price = _price_in(size, region)
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
    price = _price_in(size, region)
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


environments_app = typer.Typer(add_completion=False, no_args_is_help=True)

Environment = Annotated[str | None, typer.Argument(help="One environment; unset: all.")]


@environments_app.callback()
def environments() -> None:
    """Print the packages of Azure ML's curated environments, which their names do not promise."""


@environments_app.command("list")
def list_environments(name: Environment = None, *, as_json: Json = False) -> None:
    """List the curated environments with what their newest version contains, and since when.

    An unknown name ends with exit status 1 and the names most like it.

    Examples:
        amlstack environments list

        amlstack environments list acpt-pytorch-2.8-cuda12.6 --json
    """
    known = known_environments.all_environments()
    if name is not None:
        one = known_environments.curated(name) or known_environments.get(name)
        if one is None:
            near = did_you_mean(name, [each.name for each in known])
            end(f"The catalogue has no curated environment `{name}`. {near}".rstrip(), 1)
        known = (one,)
    if as_json:
        print_json([{**each._asdict(), "id_of_latest": each.label_id()} for each in known])
        return
    for index, each in enumerate(known):
        if index:
            say("")
        say(style(each.name, bold=True))
        say(f"  contains {each.describe()}")
        say(f"  changed  {each.changed}, read {each.checked}, {', '.join(each.source)}")
        if each.version:
            say(f"  version  {each.version}, or newer")
        if each.note:
            say(f"  note     {each.note}")


def schema(*, settings: Annotated[bool, typer.Option("--settings", help="Of stack files instead.")] = False) -> None:
    """Print the JSON Schema of Azure ML job files in YAML, for completion and marks in an editor.

    VS Code's YAML extension, and every editor with yaml-language-server, takes it by the first line of a file:
    `# yaml-language-server: $schema=../docs/schema/job.schema.json`. A clone holds both there already. With
    `--settings` it is that of `Pulumi.<stack>.yaml`.

    Examples:
        amlstack schema > job.schema.json

        amlstack schema --settings > stack.schema.json
    """
    if settings:
        from infra.settings.model.stack import stack_file_schema

        say(printed(stack_file_schema(), "$defs"))
        return
    from jobs.azureml.schema import job_files

    say(printed(job_files(), "definitions"))


def printed(whole: dict[str, Any], definitions: str) -> str:
    """One definition a line: small, and a change of one key shows as one line."""
    import json

    blocks = [
        f"  {json.dumps({name: each}, ensure_ascii=False)[1:-1]}" for name, each in whole.pop(definitions).items()
    ]
    return f'{json.dumps(whole, ensure_ascii=False)[:-1]},\n "{definitions}": {{\n' + ",\n".join(blocks) + "\n}}"
