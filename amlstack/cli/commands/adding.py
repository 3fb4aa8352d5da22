"""``amlstack add``: a job, cluster, environment, schedule or stack more in a team's repository."""

from __future__ import annotations

from typing import Annotated

import typer

from amlstack.cli.console import confirmed, difference, end, on_a_terminal, say

Kind = Annotated[str, typer.Argument(help="job, cluster, environment, schedule or stack.")]
Name = Annotated[str, typer.Argument(help="Its name.")]
Stacks = Annotated[
    list[str] | None, typer.Option("--stack", "-s", help="A stack that gets it, or several; unset: dev.")
]
Nodes = Annotated[int | None, typer.Option(help="job, cluster: the most nodes; unset: 2.", min=1)]
Cluster = Annotated[str | None, typer.Option(help="job: the cluster that it runs on; unset: gpu.")]
Size = Annotated[str | None, typer.Option(help="cluster: its VM size; `amlstack sizes` lists them.")]
Image = Annotated[str | None, typer.Option(help="environment: its image; unset: NAME is a curated environment.")]
Starts = Annotated[str | None, typer.Option(help="schedule: file of a pipeline, or azureml:NAME of a job that ran.")]
Cron = Annotated[str | None, typer.Option(help="schedule: when, as cron has it, in UTC; unset: 0 2 * * *.")]
Begin = Annotated[str | None, typer.Option(help="schedule: not before this time.")]
Like = Annotated[str | None, typer.Option(help="stack: whose settings it begins with; unset: dev.")]
Workspace = Annotated[str | None, typer.Option(help="stack: its workspace; unset: aml-NAME.")]


def add(
    kind: Kind,
    name: Name,
    *,
    stack: Stacks = None,
    nodes: Nodes = None,
    cluster: Cluster = None,
    size: Size = None,
    image: Image = None,
    starts: Starts = None,
    cron: Cron = None,
    begin: Begin = None,
    like: Like = None,
    workspace: Workspace = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference, and write nothing.")] = False,
) -> int:
    """Add to a team's repository. It shows the difference and asks; comments stay, and nothing is overwritten.

    A job comes with its code in workloads/NAME; a cluster shrinks to no node; a stack begins with the settings of
    another one, without its secrets. Settings that would have an error are not written.

    Exit status: 0 written or shown, 1 the answer was no, 2 wrong use.

    Examples:
        amlstack add job finetune --stack dev --stack prod --cluster a100 --nodes 4

        amlstack add cluster h100 --size Standard_ND96isr_H100_v5 --nodes 8

        amlstack add environment mine --image contoso.azurecr.io/train:7

        amlstack add schedule nightly --starts azureml:train --begin 2026-12-01T00:00:00

        amlstack add stack prod --like dev --workspace aml-vision-prod
    """
    from amlstack.base import paths
    from amlstack.base.files import write_whole
    from amlstack.cli import additions

    options = {"nodes": nodes, "cluster": cluster, "size": size, "image": image, "starts": starts}
    options |= {"cron": cron, "begin": begin, "like": like, "workspace": workspace}
    try:
        asked = additions.of_kind(kind, name, {key: value for key, value in options.items() if value is not None})
        edits = additions.edits(asked, stack or ["dev"])
    except (additions.AdditionError, OSError) as error:
        end(f"{error.filename} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error))
    for file, (before, after) in edits.items():
        path = str(file.relative_to(paths.PROJECT))
        say(difference(before, after, path, path), nl=False)
    if dry_run or not (yes or (on_a_terminal() and confirmed("Write this?"))):
        say("nothing was written" if dry_run or on_a_terminal() else "nothing was written: `--yes` needs no answer")
        return 0 if dry_run else 1
    for file, (_, after) in edits.items():
        write_whole(file, after, folders=True)
    return 0
