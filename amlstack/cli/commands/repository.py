"""A repository that holds the team's files alone: ``amlstack init``, ``upgrade``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amlstack.cli.console import end, ended_by, on_a_terminal, say

Folder = Annotated[Path, typer.Argument(help="Folder of the repository; made where it is not there.")]
Name = Annotated[str | None, typer.Option(help="Name of the project; unset: the folder's.")]
Workspace = Annotated[str | None, typer.Option(help="Workspace of the stack `dev`, new or existing; unset: aml-NAME.")]
Location = Annotated[str, typer.Option(help="Region of the workspace and its cluster.")]
Size = Annotated[str, typer.Option(help="VM size of the cluster; `amlstack sizes --infiniband --alive` lists them.")]
Nodes = Annotated[int, typer.Option(help="The most nodes of the cluster, which the first job uses.")]
Requirement = Annotated[
    str | None, typer.Option("--amlstack", help="amlstack as pyproject.toml names it; unset: as it is here.")
]


def init(
    folder: Folder = Path(),
    name: Name = None,
    *,
    workspace: Workspace = None,
    location: Location = "westeurope",
    size: Size = "Standard_ND96asr_v4",
    nodes: Nodes = 2,
    requirement: Requirement = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take the defaults.")] = False,
) -> int:
    """Make a repository for a team: a stack, a first job, its program. amlstack itself stays an installed package.

    In a terminal it asks for what no option says. In a folder that has files already, it adds what is missing and
    changes none of them.

    Examples:
        amlstack init training

        amlstack init training --size Standard_ND96isr_H100_v5 --nodes 4 --location eastus --yes
    """
    from amlstack.cli import repository

    name = name or folder.resolve().name.lower().replace("_", "-")
    workspace = workspace or f"aml-{name}"
    if on_a_terminal() and not (yes or dry_run):
        name = typer.prompt("Name of the project", default=name)
        workspace = typer.prompt("Workspace, new or existing", default=workspace)
        location = typer.prompt("Region", default=location)
        size = typer.prompt("VM size of the cluster", default=size)
        nodes = typer.prompt("The most nodes", default=nodes)
    choices = repository.Choices(name, workspace, location, size, nodes, requirement or repository.requirement())
    if wrong := list(repository.faults(choices)):
        end("\n".join(wrong))
    for line in repository.write(folder, choices, dry_run=dry_run):
        say(line)
    if not dry_run:
        say(f"\nNext:\n  cd {folder} && make venv && . .venv/bin/activate")
        say("  amlstack rehearse workloads/train/job.py -j 2x2")
    return 0


def upgrade(
    to: Annotated[str | None, typer.Argument(metavar="[VERSION]", help="A version, or the path of a wheel.")] = None,
    *,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Preview the stacks on the sandbox instead of Azure.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show all of it, and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
) -> int:
    """Take a newer version of amlstack: the pin in pyproject.toml, and the files that it has written and changed since.

    It first shows what changes: each file, with your own edits and marked conflicts; and for each stack,
    tried in a copy of the repository, new findings and what the plan has otherwise. Then it asks.

    Exit status: 0 written, or nothing to do; 1 conflicts are left, or the answer was no; 2 wrong use.

    Examples:
        amlstack upgrade 0.2.0

        amlstack upgrade dist/amlstack-0.2.0-py3-none-any.whl --sandbox --dry-run
    """
    from amlstack.cli import repository as upgrading

    given = {"--sandbox": sandbox, "--dry-run": dry_run, "--yes": yes}
    with ended_by(upgrading.UpgradeError):
        if to is not None:
            return upgrading.by_that_version(to, [option for option, meant in given.items() if meant])
        return upgrading.run(sandbox=sandbox, dry_run=dry_run, yes=yes)
