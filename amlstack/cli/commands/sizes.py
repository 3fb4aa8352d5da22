"""``amlstack sizes``: the catalogue as a table, one size explained, both as JSON."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.base.files import write_whole
from amlstack.cli.catalogue.sizes import as_dict, facts, table
from amlstack.cli.console import print_findings, print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from amlstack.base.findings import Finding

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
Location = Annotated[str, typer.Option(help="With --refresh: the region whose sizes to ask for.")]
Region = Annotated[
    str | None, typer.Option(help="Show prices of this region; unset: of the region first known.", show_default=False)
]
Prices = Annotated[
    bool, typer.Option("--prices", help="With --refresh: only prices, from the public price list; needs no sign-in.")
]
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
    from amlstack.catalog import clock
    from amlstack.catalog import sizes as catalogue
    from amlstack.cli.catalogue.sizes import models, of_family, unmet

    day = clock.today()
    where = _region(region, as_json=as_json)
    if refresh and prices:
        _refresh_prices(where or location, day, write=write)
        return
    if refresh:
        _refresh(subscription, location, day, write=write)
        return
    if name is not None:
        _explain(name, day, where, as_json=as_json)
        return
    everything = catalogue.all_sizes()
    _stop(list(unmet(gpu, family, everything)), as_json=as_json)
    asked = models(gpu, everything)
    found = [
        size
        for size in everything
        if (gpus is None or size.gpus == gpus)
        and (asked is None or size.gpu_model in asked)
        and of_family(size, family)
        and (infiniband is None or size.fabric.usable is infiniband)
        and (alive is None or size.retired_on(day) is not alive)
    ]
    found.sort(key=lambda size: size.retired_on(day))
    if as_json:
        # Of each size the one price: all of all sizes are megabytes.
        print_json([as_dict(size, day, where, all_prices=False) for size in found])
    else:
        table(found, day, where)


def _region(written: str | None, *, as_json: bool) -> str | None:
    """The region as programs write it; a name that is nearly one ends with a finding."""
    if written is None:
        return None
    from amlstack.base.findings import Level
    from amlstack.catalog import regions

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


def _refresh(subscription: str | None, location: str, on: date, *, write: bool) -> None:
    from amlstack.catalog.files import path
    from amlstack.cli.catalogue.prices import ask, fold, fold_prices
    from amlstack.provider.arm import ArmClient, ArmError, SignIn, endpoint

    if not subscription:
        say(
            "--refresh asks Azure: name a subscription, --subscription ID or AZURE_SUBSCRIPTION_ID; "
            "--refresh --prices reads the public price list without one.",
            err=True,
        )
        raise typer.Exit(2)
    before = json.loads(path("sizes").read_text(encoding="utf-8"))
    try:
        skus, listed = ask(ArmClient(endpoint(cloud=SignIn.read({}).cloud)), subscription, location)
    except ArmError as error:
        say(f"Azure could not be asked for sizes. {error}", err=True)
        raise typer.Exit(1) from None
    done = fold(before, skus, listed, location=location, on=on)
    changed = _renew("sizes", done.rows, write=write)
    changed |= _renew("prices", fold_prices(_rows("prices"), done.prices), write=write)
    for note in done.notes:
        say(f"note: {note}.")
    _close(location, changed=changed, write=write)


def _refresh_prices(location: str, on: date, *, write: bool) -> None:
    from amlstack.catalog import sizes as catalogue
    from amlstack.cli.catalogue import prices as prices_module
    from amlstack.cli.catalogue.prices import fold_prices

    names = [size.name for size in catalogue.all_sizes() if not size.retired_on(on)]
    try:
        read = prices_module.read(names, location, on)
    except prices_module.PriceListError as error:
        say(f"{error}.", err=True)
        raise typer.Exit(1) from None
    changed = _renew("prices", fold_prices(_rows("prices"), read), write=write)
    say(f"The price list has {len(read)} of {len(names)} living sizes in {location}.")
    _close(location, changed=changed, write=write)


def _rows(data: str) -> Any:
    from amlstack.catalog.files import path

    return json.loads(path(data).read_text(encoding="utf-8"))


def _renew(data: str, rows: Sequence[dict[str, Any]], *, write: bool) -> bool:
    """Show what changes in a data file, and write it if it is to be written; whether anything changes."""
    from amlstack.catalog.files import path
    from amlstack.cli.catalogue.prices import diff, text

    file = path(data)
    before, after = file.read_text(encoding="utf-8"), text(rows)
    change = diff(before, after, data)
    if change:
        say(change)
        if write:
            write_whole(file, after)
            say(f"{file} is written: review it, then commit it.")
    return bool(change)


def _close(location: str, *, changed: bool, write: bool) -> None:
    if not changed:
        say(f"The catalogue says what Azure says in {location}.")
    elif not write:
        say("Nothing is written yet; --write does.")


def _explain(name: str, on: date, region: str | None, *, as_json: bool) -> None:
    from amlstack.catalog import sizes as catalogue
    from amlstack.catalog.sizes import nearest_compliant
    from amlstack.cli.catalogue.sizes import models
    from policies.checks import sizes_for
    from policies.checks.size import check_known_size

    size = catalogue.get(name)
    if size is None:
        finding = check_known_size(name, "NAME")
        if finding is not None and (meant := models(name, catalogue.all_sizes())):
            remedy = f"`amlstack sizes --gpu {shlex.quote(name)}` lists the sizes with {', '.join(meant)}"
            finding = replace(finding, remedy=remedy)
        _stop([finding] if finding else [], as_json=as_json)
        return
    findings = list(sizes_for(size.name, nodes=2, on=on, where="size"))
    nearest = nearest_compliant(size, on) if findings else None
    if as_json:
        print_json(
            {
                **as_dict(size, on, region),
                "nearest_compliant": nearest.name if nearest else None,
                "findings": [each.as_dict() for each in findings],
            }
        )
        return
    for label, value in facts(size, on, region):
        say(f"{label:16}{value}")
    say("")
    if not findings:
        say("Work across nodes: no rule on sizes refuses it.")
    for finding in findings:
        say(f"Work across nodes: {finding.message} [{finding.code}]")
    if nearest is not None:
        say(f"Nearest:        {nearest.name} ({nearest.describe()})")
