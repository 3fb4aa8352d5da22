"""``amlstack environments``: the curated environments that the catalogue knows, and what each really contains."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.cli.console import print_json, say, style

if TYPE_CHECKING:
    from amlstack.catalog.environments import CatalogEnvironment

app = typer.Typer(add_completion=False, no_args_is_help=True)

Name = Annotated[str | None, typer.Argument(help="One environment; unset: all.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]


@app.callback()
def environments() -> None:
    """Print the packages of Azure ML's curated environments, which their names do not promise."""


@app.command("list")
def list_(name: Name = None, *, as_json: Json = False) -> None:
    """List the curated environments with what their newest version contains, and since when.

    An unknown name ends with exit status 1 and the names most like it.

    Examples:
        amlstack environments list

        amlstack environments list acpt-pytorch-2.8-cuda12.6 --json
    """
    from amlstack.base.text import did_you_mean
    from amlstack.catalog import environments as catalogue

    known = catalogue.all_environments()
    if name is not None:
        one = catalogue.curated(name) or catalogue.get(name)
        if one is None:
            near = did_you_mean(name, [each.name for each in known])
            say(f"The catalogue has no curated environment `{name}`. {near}".rstrip(), err=True)
            raise typer.Exit(1)
        known = (one,)
    if as_json:
        print_json([as_dict(each) for each in known])
        return
    for index, each in enumerate(known):
        if index:
            say("")
        say(style(each.name, bold=True))
        say(f"  contains {each.describe()}")
        say(f"  changed  {each.changed}, read {each.checked}, {', '.join(each.source)}")
        if each.note:
            say(f"  note     {each.note}")


def as_dict(environment: CatalogEnvironment) -> dict[str, Any]:
    """An environment as plain data, days as ISO dates."""
    row = asdict(environment)
    days = {key: row[key].isoformat() for key in ("checked", "changed")}
    return {**row, **days, "id_of_latest": environment.label_id()}
