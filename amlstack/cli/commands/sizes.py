"""``amlstack sizes``: the catalogue as a table, one size explained, both as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.cli.console import print_findings, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from amlstack.catalog.sizes import Size

app = typer.Typer(add_completion=False)

Name = Annotated[str | None, typer.Argument(help="A size to explain; unset: the table.", show_default=False)]
Gpus = Annotated[int | None, typer.Option(help="Only sizes with this many GPUs; 0: CPU sizes.", show_default=False)]
Model = Annotated[str | None, typer.Option("--gpu", help="Only this GPU model, e.g. H100.", show_default=False)]
Family = Annotated[
    str | None, typer.Option(help="Only series or quota families that contain this, e.g. ND.", show_default=False)
]
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
    str | None,
    typer.Option(envvar="AZURE_SUBSCRIPTION_ID", help="With --refresh: id of a subscription.", show_default=False),
]
Location = Annotated[str, typer.Option(help="With --refresh: the region to ask for.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]


@app.command()
def sizes(
    name: Name = None,
    gpus: Gpus = None,
    gpu: Model = None,
    family: Family = None,
    *,
    infiniband: InfiniBand = None,
    alive: Alive = None,
    refresh: Refresh = False,
    write: Write = False,
    subscription: Subscription = None,
    location: Location = "westeurope",
    as_json: Json = False,
) -> None:
    """List the VM sizes that the catalogue knows, or explain one.

    The table says what training across nodes depends on: GPUs, InfiniBand and its rate, whether it is exposed by
    SR-IOV, and when a size is retired. An unknown name ends with exit status 1 and the names most like it.

    Examples:
        amlstack sizes --infiniband --alive

        amlstack sizes Standard_NC24rs_v3

        amlstack sizes --refresh --subscription ID --location westeurope --write
    """
    from amlstack.catalog import clock
    from amlstack.catalog import sizes as catalogue

    day = clock.today()
    if refresh:
        _refresh(subscription, location, day, write=write)
        return
    if name is not None:
        _explain(name, day, as_json=as_json)
        return
    found = [
        size
        for size in catalogue.all_sizes()
        if (gpus is None or size.gpus == gpus)
        and (gpu is None or (size.gpu_model or "").lower() == gpu.lower())
        and (family is None or family.lower() in f"{size.series} {size.family or ''}".lower())
        and (infiniband is None or size.fabric.usable is infiniband)
        and (alive is None or size.retired_on(day) is not alive)
    ]
    if as_json:
        print_json([as_dict(size, day) for size in found])
    else:
        _table(found, day)


def as_dict(size: Size, on: date) -> dict[str, Any]:
    """A size as plain data, the fabric's facts beside the others, ``retired`` an ISO date or null."""
    row = asdict(size)
    fabric = row.pop("fabric")
    return {
        **row,
        **fabric,
        "retired": size.retired.isoformat() if size.retired else None,
        "alive": not size.retired_on(on),
        "checked": size.checked.isoformat(),
        "multi_node": size.fabric.usable or not (size.gpus or size.fabric.rdma),
    }


def _refresh(subscription: str | None, location: str, on: date, *, write: bool) -> None:
    from amlstack.catalog.files import path
    from amlstack.cli import catalogue_refresh
    from amlstack.provider.arm import ArmClient, ArmError, SignIn, endpoint

    if not subscription:
        typer.echo("--refresh asks Azure: name a subscription, --subscription ID or AZURE_SUBSCRIPTION_ID.", err=True)
        raise typer.Exit(2)
    file = path("sizes")
    before = file.read_text(encoding="utf-8")
    try:
        skus, listed = catalogue_refresh.ask(ArmClient(endpoint(cloud=SignIn.read({}).cloud)), subscription, location)
    except ArmError as error:
        typer.echo(f"Azure could not be asked for sizes. {error}", err=True)
        raise typer.Exit(1) from None
    done = catalogue_refresh.fold(json.loads(before), skus, listed, location=location, on=on)
    after = catalogue_refresh.text(done.rows)
    if change := catalogue_refresh.diff(before, after):
        typer.echo(change)
    for note in done.notes:
        typer.echo(f"note: {note}.")
    if not change:
        typer.echo(f"The catalogue says what Azure says in {location}.")
    elif write:
        file.write_text(after, encoding="utf-8")
        typer.echo(f"{file} is written: review it, then commit it.")
    else:
        typer.echo("Nothing is written yet; --write does.")


def _explain(name: str, on: date, *, as_json: bool) -> None:
    from amlstack.catalog import sizes as catalogue
    from policies.checks import sizes_for
    from policies.checks.size import known_size

    size = catalogue.get(name)
    if size is None:
        finding = known_size.check(name, "NAME")
        findings = [finding] if finding else []
        if as_json:
            print_json({"findings": [each.as_dict() for each in findings]})
        else:
            print_findings(findings, err=True)
        raise typer.Exit(1)
    findings = list(sizes_for(size.name, nodes=2, on=on, where="size"))
    nearest = catalogue.nearest_compliant(size, on) if findings else None
    if as_json:
        print_json(
            {
                **as_dict(size, on),
                "nearest_compliant": nearest.name if nearest else None,
                "findings": [each.as_dict() for each in findings],
            }
        )
        return
    for label, value in _facts(size, on):
        typer.echo(f"{label:16}{value}")
    typer.echo("")
    if not findings:
        typer.echo("Work across nodes: no rule on sizes refuses it.")
    for finding in findings:
        typer.echo(f"Work across nodes: {finding.message} [{finding.code}]")
    if nearest is not None:
        typer.echo(f"Nearest:        {nearest.name} ({nearest.describe()})")


def _facts(size: Size, on: date) -> list[tuple[str, str]]:
    facts = [
        ("Name", size.name),
        ("Series", f"{size.series} (quota family {size.family or 'unknown'})"),
        ("vCPUs, memory", f"{_some(size.vcpus)} and {_some(size.memory_gib)} GiB, {size.architecture}"),
        ("GPUs", _gpus(size) or "none"),
        ("Fabric", _fabric(size)),
        ("Retired", _retired(size, on) or "no date known"),
        ("Azure ML", {True: "supported", False: "not supported", None: "not documented"}[size.azureml_supported]),
        ("Price", _price(size) or "not looked up"),
        ("Shared memory", size.shm_size() or "unknown"),
        ("Source", f"{', '.join(size.source)} ({size.checked:%Y-%m})"),
    ]
    return [*facts, ("Note", size.note)] if size.note else facts


def _table(found: Sequence[Size], on: date) -> None:
    if not found:
        typer.echo("No size is like that. `amlstack sizes` without filters lists all.")
        return
    rows = [_row(size) for size in found]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    typer.secho(_line(HEADINGS, widths), bold=True)
    for size, row in zip(found, rows, strict=True):
        typer.secho(_line(row, widths), dim=size.retired_on(on) or None)
    typer.echo(f"{len(found)} sizes; `amlstack sizes NAME` explains one.")


HEADINGS = ("Size", "GPUs", "Fabric", "Gb/s", "SR-IOV", "Retired", "USD/h")


def _row(size: Size) -> tuple[str, ...]:
    rdma = size.fabric.rdma
    return (
        size.name,
        _gpus(size) or f"{_some(size.vcpus)} vCPUs",
        size.fabric.infiniband or ("RDMA" if rdma else "Ethernet"),
        f"{size.fabric.gbps_per_node:g}" if size.fabric.gbps_per_node else "",
        ("yes" if size.fabric.sriov else "no") if rdma else "",
        size.retired.isoformat() if size.retired else "",
        f"{size.price_per_hour.usd:,.2f}" if size.price_per_hour else "",
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _gpus(size: Size) -> str:
    return f"{size.gpus} x {size.gpu_model} {_some(size.gpu_memory_gib)} GiB" if size.gpus else ""


def _fabric(size: Size) -> str:
    if size.fabric.infiniband is None:
        return "RDMA without InfiniBand" if size.fabric.rdma else "Ethernet"
    rate = f", {size.fabric.gbps_per_node:g} Gb/s per node" if size.fabric.gbps_per_node else ""
    return f"{size.fabric.infiniband} InfiniBand{rate}, {'SR-IOV' if size.fabric.sriov else 'without SR-IOV'}"


def _retired(size: Size, on: date) -> str:
    if size.retired is None:
        return ""
    return size.retired.isoformat() if size.retired_on(on) else f"{size.retired.isoformat()} (announced)"


def _price(size: Size) -> str:
    price = size.price_per_hour
    return f"{price.usd:,.2f} USD per hour ({price.region}, {price.checked:%Y-%m}, {price.source})" if price else ""


def _some(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
