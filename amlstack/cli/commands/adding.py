"""``amlstack add``: a job, cluster, environment, schedule or stack more in a team's repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from amlstack.cli.additions import Addition

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Add to a team's repository. Shows the difference and asks; comments stay, and nothing is overwritten.",
)
Name = Annotated[str, typer.Argument(help="Its name.", show_default=False)]
Stacks = Annotated[list[str], typer.Option("--stack", "-s", help="A stack that gets it; may be repeated.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the difference, and write nothing.")]
Nodes = Annotated[int, typer.Option(help="The most nodes.", min=1)]


def _add(made: Callable[..., Addition], *given: Any, yes: bool, dry_run: bool) -> None:
    from amlstack.cli import additions
    from amlstack.cli.console import say

    try:
        asked = made(*given)
    except (additions.AdditionError, OSError) as error:
        said = f"{error.filename} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        say(said, err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(additions.add(asked, yes=yes, dry_run=dry_run))


@app.command()
def job(
    name: Name,
    *,
    stack: Stacks = ["dev"],  # noqa: B006 - typer copies it
    cluster: Annotated[str, typer.Option(help="The cluster that it runs on.")] = "gpu",
    nodes: Nodes = 2,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """A job with its code in workloads/NAME, like the first one of `amlstack init`.

    Examples:
        amlstack add job finetune --stack dev --stack prod --cluster a100 --nodes 4
    """
    from amlstack.cli import additions

    _add(additions.job, name, cluster, nodes, stack, yes=yes, dry_run=dry_run)


@app.command()
def cluster(
    name: Name,
    *,
    stack: Stacks = ["dev"],  # noqa: B006
    size: Annotated[str, typer.Option(help="VM size; `amlstack sizes` lists them.")] = "Standard_ND96asr_v4",
    nodes: Nodes = 2,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """A cluster that shrinks to no node.

    Examples:
        amlstack add cluster h100 --size Standard_ND96isr_H100_v5 --nodes 8
    """
    from amlstack.cli.additions import Addition

    item = {"name": name, "size": size, "nodes": {"min": 0, "max": nodes}}
    _add(Addition, {}, "amlstack:clusters", item, stack, yes=yes, dry_run=dry_run)


@app.command()
def environment(
    name: Name,
    *,
    stack: Stacks = ["dev"],  # noqa: B006
    image: Annotated[
        str | None, typer.Option(help="Its image; unset: NAME is a curated environment.", show_default=False)
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """An environment: a curated one by its name, or an image.

    Examples:
        amlstack add environment acpt-pytorch-2.8-cuda12.6

        amlstack add environment mine --image contoso.azurecr.io/train:7
    """
    from amlstack.cli.additions import Addition

    item = {"name": name, "image": image} if image else name
    _add(Addition, {}, "amlstack:environments", item, stack, yes=yes, dry_run=dry_run)


@app.command()
def schedule(
    name: Name,
    starts: Annotated[str, typer.Argument(help="File of a pipeline, or azureml:NAME of a job that ran before.")],
    *,
    cron: Annotated[str, typer.Option(help="When, as cron has it, in UTC.")] = "0 2 * * *",
    begin: Annotated[str, typer.Option(help="Not before this time.", show_default=False)],
    stack: Stacks = ["dev"],  # noqa: B006
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """A schedule that starts a pipeline, or a job that ran before once more.

    Examples:
        amlstack add schedule nightly azureml:train --cron "0 2 * * *" --begin 2026-12-01T00:00:00
    """
    from amlstack.cli import additions

    _add(additions.schedule, name, starts, cron, begin, stack, yes=yes, dry_run=dry_run)


@app.command()
def stack(
    name: Name,
    *,
    like: Annotated[str, typer.Option(help="The stack whose settings it begins with.")] = "dev",
    workspace: Annotated[str | None, typer.Option(help="Its workspace; unset: aml-NAME.", show_default=False)] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """A stack like another one, with a workspace of its own. `amlstack gitops add` then prints what it needs in CI.

    Examples:
        amlstack add stack prod --like dev --workspace aml-vision-prod
    """
    from amlstack.cli import additions

    _add(additions.stack, name, like, workspace or f"aml-{name}", yes=yes, dry_run=dry_run)
