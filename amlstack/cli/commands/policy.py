"""``amlstack policy``: the rules with their levels, and what of them Azure Policy can hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.base.files import write_whole
from amlstack.cli.console import Json, end, print_json, say, style

if TYPE_CHECKING:
    from policies.config import Config

app = typer.Typer(add_completion=False, no_args_is_help=True, help="The rules that a platform team enforces.")

ConfigFile = Annotated[Path | None, typer.Option(help="Configuration of the pack, as --policy-pack-config takes it.")]
Out = Annotated[Path, typer.Option(help="Folder to write into.")]
Scope = Annotated[
    str,
    typer.Option(
        help="Where the definitions will live: id of a subscription (/subscriptions/ID) or of a management group."
    ),
]


@app.command("list")
def list_(config: ConfigFile = None, *, as_json: Json = False) -> None:
    """List the rules: level, settings, and whether Azure Policy can express them."""
    from policies import azure_policy
    from policies.config import ALL

    chosen = _config(config)
    if as_json:
        print_json(
            [
                {
                    "code": rule.code,
                    "title": rule.title,
                    "level": chosen.level(rule.code),
                    "settings": chosen.settings(rule.code),
                    "remediable": bool(rule.words.fix),
                    "azure_policy": rule.code in azure_policy.EXPRESSIBLE,
                    "azure_policy_note": azure_policy.reason(rule.code),
                }
                for rule in ALL
            ]
        )
        return
    width = max(len(rule.code) for rule in ALL)
    for rule in ALL:
        say(f"{rule.code:{width}}  {chosen.level(rule.code):9}  {rule.title}")
        values = {name: value for name, value in chosen.settings(rule.code).items() if value is not None}
        if rule.settings:
            shown = (
                json.dumps(values) if values else f"silent until set: {', '.join(one.name for one in rule.settings)}"
            )
            say(style(f"{'':{width}}  {shown}", dim=True))
    say("docs/reference/policies.md describes what each does, why, and how to configure it.")


@app.command()
def export(out: Out, scope: Scope, config: ConfigFile = None) -> None:
    """Write the rules as Azure Policy definitions and an initiative.

    Levels become default effects (mandatory: Deny, advisory: Audit), settings become default parameters. What Azure
    Policy cannot express is listed with its reason, and stays with `amlstack check` and the policy pack.

    Example:
        amlstack policy export --out azure-policy --scope /subscriptions/ID --config pack-config.json
    """
    from amlstack import __version__
    from amlstack.catalog import clock
    from policies import azure_policy

    made = azure_policy.definitions(_config(config), on=clock.today(), version=__version__)
    folder = out / "definitions"
    files = {folder / f"{one['name']}.json": one for one in made}
    files[out / "initiative.json"] = azure_policy.initiative(made, scope=scope, version=__version__)
    for path, value in files.items():
        write_whole(path, json.dumps(value, indent=2) + "\n", folders=True)
    say(f"{len(made)} definitions and initiative.json written to {out}.")
    for title, reasons in (("In part", azure_policy.IN_PART), ("Not expressible", azure_policy.NOT_EXPRESSIBLE)):
        say(f"{title}:")
        for code, why in reasons.items():
            say(f"  {code}: {why}")


def _config(path: Path | None) -> Config:
    from policies import config

    if path is not None and not path.is_file():
        end(f"There is no file {path}. --config names the pack's configuration, a JSON file.")
    try:
        return config.read(config.load(path) if path else {})
    except ValueError as error:
        end(f"{path}: {error}")
