"""``amlstack rehearse``: run a job file on the sandbox, stream its rank logs, exit like the job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amlstack.cli.commands.check import Size, Stack
from amlstack.cli.console import Json
from amlstack.cli.rehearsal import scale as scales

File = Annotated[Path, typer.Argument(help="Job file: Python, or Azure ML CLI v2 YAML.")]
Only = Annotated[str | None, typer.Option("--job", help="Name of one job, when the file has several.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the lines of rank 0 alone, and what failed.")]
OnlyRank = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Run all ranks and print the lines of this one alone.")
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=PATH",
        help="Read an input from a file or folder of this machine; of a pipeline's step STEP.NAME=PATH. A step whose "
        "output is given the same way is not run. Repeatable.",
    ),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="NAME=PATH",
        help="Write an output to a folder or file of this machine; of a pipeline's step STEP.NAME=PATH. Repeatable.",
    ),
]
Fetch = Annotated[
    bool,
    typer.Option(
        "--fetch",
        help="Fetch inputs at https addresses and in Azure storage into the user's cache; unset: ask on a terminal.",
    ),
]
FetchAtMost = Annotated[int, typer.Option(metavar="MB", min=1, help="Fetch no larger one.")]
Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME=env:VARIABLE",
        help="Take a secret that the job names from a variable of this shell; unset: from the variable that the job "
        "sets. Repeatable.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say whether it can be rehearsed here, and start nothing: exit status 0, or 2."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Start it although its code has lines that cannot run on this machine.")
]
NoShim = Annotated[
    bool, typer.Option("--no-shim", help="Leave GPU calls as they are on a machine without a GPU; they fail.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Set aside what earlier rehearsals wrote to named outputs.")]


def rehearse(
    file: File,
    *,
    size: Size = None,
    stack: Stack = None,
    only: Only = None,
    inputs: Inputs = None,
    outputs: Outputs = None,
    secrets: Secrets = None,
    fetch: Fetch = False,
    fetch_at_most: FetchAtMost = 2000,
    nodes: scales.Nodes = None,
    ranks: scales.Ranks = None,
    both: scales.Both = None,
    fresh: Fresh = False,
    no_shim: NoShim = False,
    yes: scales.Yes = False,
    quiet: Quiet = False,
    only_rank: OnlyRank = None,
    as_json: Json = False,
    dry_run: DryRun = False,
    force: Force = False,
) -> int:
    """Run a job file on the sandbox, stream its rank logs, exit like the job.

    It checks the file first; then the same body that Azure would get goes to the sandbox, which starts every rank of
    every node as a real process on this machine. Of a sweep every trial runs, of a pipeline every step. Ctrl-C cancels
    the job. With `-j 2x2` at most two nodes with two ranks each start, whatever the file declares.

    Examples:
        amlstack rehearse examples/ddp_torchrun/job.py

        amlstack rehearse job.yml -j 2x2

        amlstack rehearse job.yml --size Standard_ND96isr_H100_v5

        amlstack rehearse job.yml --input cifar=./data --output model=./model

        amlstack rehearse job.yml -j 1x2 --fetch --fetch-at-most 500

        amlstack rehearse job.yml --only-rank 3

        amlstack rehearse job.yml -j 2x2 --dry-run
    """
    from amlstack.cli.rehearsal import outcome, run
    from amlstack.cli.rehearsal.request import RehearsalRequest

    if quiet and only_rank is not None and not dry_run:
        raise typer.BadParameter("Give `--quiet`, which is `--only-rank 0`, or `--only-rank`.")
    request = RehearsalRequest(
        file,
        size,
        stack,
        only,
        inputs or (),
        secrets or (),
        scales.chosen(nodes, ranks, both),
        outputs or (),
        fresh=fresh,
        shim=not no_shim,
        yes=yes,
        force=force,
        shown=0 if quiet else only_rank,
        fetch=fetch_at_most * 10**6 if fetch else 0,
        offer=0 if as_json or yes or dry_run else fetch_at_most * 10**6,
    )
    if dry_run:
        return run.dry_run(request, as_json=as_json)
    with outcome.printed(as_json=as_json) as outcomes:
        raise typer.Exit(run.rehearse(request, outcomes))  # `printed` reads the exit status from it
