"""Verbs on one job file or stack: ``show`` and ``graph`` print what it becomes, ``rehearse`` runs it on the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from amlstack.base.findings import errors
from amlstack.cli.commands.check import Size, Stack
from amlstack.cli.console import Json, ended_by, print_findings, print_json, say, tables
from amlstack.cli.jobfiles.judgement import Checked, check_file, plan_gate
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal.site import On

if TYPE_CHECKING:
    import jobs
    from jobs.planning.plans import Cost

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
Preflight = Annotated[
    bool,
    typer.Option(
        "--preflight",
        help="Before each job check its nodes and measure an all-reduce over them; the job starts only if both are "
        "good.",
    ),
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
    on: On = None,
    preflight: Preflight = False,
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
    the job. With `-j 2x2` at most two nodes with two ranks each start, whatever the file declares. With `--on slurm`
    the nodes are those of a site with Slurm, which see this machine's files: one allocation for each job.

    Examples:
        amlstack rehearse examples/ddp_torchrun/job.py

        amlstack rehearse job.yml -j 2x2

        amlstack rehearse job.yml --size Standard_ND96isr_H100_v5

        amlstack rehearse job.yml --input cifar=./data --output model=./model

        amlstack rehearse job.yml -j 1x2 --fetch --fetch-at-most 500

        amlstack rehearse job.yml --only-rank 3

        amlstack rehearse job.yml -j 2x2 --dry-run

        amlstack rehearse job.yml --on slurm:h100 --stack dev --preflight
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
        on=on,
        preflight=preflight,
    )
    if dry_run:
        return run.dry_run(request, as_json=as_json)
    with outcome.printed(as_json=as_json) as outcomes:
        raise typer.Exit(run.rehearse(request, outcomes))  # `printed` reads the exit status from it


class OutputForm(StrEnum):
    """The form of the output."""

    PLAN = "plan"
    ARM = "arm"
    YAML = "yaml"
    COMMAND = "command"
    COMPONENTS = "components"


def show(
    file: Annotated[Path, typer.Argument(help="A job file.")],
    form: Annotated[
        OutputForm,
        typer.Option("--as", help="plan, arm (the request body), yaml (az ml), command, or a pipeline's components."),
    ] = OutputForm.PLAN,
    *,
    size: Size = None,
    stack: Stack = None,
    enrich: Annotated[
        bool | None,
        typer.Option("--enrich/--no-enrich", help="Add the fabric's variables and shared memory; unset: as declared."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show what a job file becomes, without sending anything.

    `plan` lists nodes, ranks and every value that was added, by whom and why. `arm` is the body of the REST request.
    `yaml` is the same job for `az ml job create -f`; of a YAML file comments and order stay. `command` is the command
    line that each node runs. `components` are the bodies of the component versions that a pipeline's steps refer to.
    A file of Azure ML's own CLI passes through unchanged: `--enrich` shows the additions of a typed launcher.

    Examples:
        amlstack show job.py --size Standard_ND96isr_H100_v5

        amlstack show job.yml --as arm --enrich
    """
    from amlstack.catalog import clock
    from amlstack.cli import targets
    from amlstack.cli.stack import run_orders

    where = targets.find(size, stack)
    checked = check_file(file, where, gate=plan_gate(where, clock.today()), enrich=enrich)
    checked = checked._replace(findings=(*checked.findings, *run_orders.findings((checked,), where)))
    if not checked.plans:
        print_findings(checked.findings, err=True)
        return 1
    _PRINTING[form](checked, as_json=as_json)
    if form in {OutputForm.YAML, OutputForm.COMPONENTS}:
        for note in _left_behind(checked):
            say(note, err=True)
    if form is not OutputForm.PLAN:
        print_findings(checked.findings, err=True)
    return 1 if errors((*where.findings, *checked.findings)) else 0


def _left_behind(checked: Checked) -> list[str]:
    """A line for each package that `up` puts beside a code folder, and no other client does."""
    beside = {
        (part.code, package)
        for plan in checked.plans
        for part in plan.parts.values()
        for package in part.beside
        if part.code is not None and not (part.code / package.name).exists()
    }
    return [
        f"note: the code in {folder} needs `{package.name}` beside it. `up`, `submit` and `rehearse` put it there; "
        f"for `az ml job create` copy {package} into the folder first."
        for folder, package in sorted(beside)
    ]


def _print_bodies(checked: Checked, *, as_json: bool) -> None:  # noqa: ARG001 - it is JSON always
    import jobs

    bodies = [jobs.render(plan.enriched).body for plan in checked.plans]
    print_json(bodies[0] if len(bodies) == 1 else bodies)


def _print_yaml(checked: Checked, *, as_json: bool) -> None:
    import yaml

    files = [file for plan in checked.plans for file in _files(plan)]
    if as_json:
        print_json(files[0] if len(files) == 1 else files)
        return
    if (kept := _in_place(checked)) is not None:
        say(kept, nl=False)
        return
    say("---\n".join(yaml.safe_dump(each, sort_keys=False, width=110, allow_unicode=True) for each in files), nl=False)


def _files(plan: jobs.Planned) -> Iterator[dict[str, Any]]:
    """The files that a plan becomes: one, and of a schedule with its job inline, the job's too."""
    from jobs.azureml.write import file_of

    yield file_of(plan.enriched)
    if plan.timed and plan.runs is not None and getattr(plan.job, "source", None) is None:
        yield file_of(plan.runs.enriched)


def _in_place(checked: Checked) -> str | None:
    """The YAML file itself with what was added to its job, comments and order kept; None when it is no such file."""
    from jobs.azureml.write import file_of, rewritten
    from jobs.loading import YAML_SUFFIXES

    if checked.file.suffix.lower() not in YAML_SUFFIXES or len(checked.plans) != 1:
        return None
    if any(finding.code in {"component-alone", "yaml-duplicate-key"} for finding in checked.findings):
        return None  # what is shown is another file than the one that was read
    text = checked.file.read_bytes().decode("utf-8")  # line ends as they are
    plan = checked.plans[0]
    text_with_additions = rewritten(text, file_of(plan.job), file_of(plan.enriched))
    if text_with_additions is None:
        say(
            f"{checked.file}: note: written anew, without comments: what is added belongs to a value that an alias "
            "shares.",
            err=True,
        )
    return text_with_additions


def _print_components(checked: Checked, *, as_json: bool) -> None:  # noqa: ARG001 - it is JSON always
    import jobs

    rendered = [jobs.render(plan.enriched).components for plan in checked.plans]
    print_json([components for components in rendered if components])


def _print_commands(checked: Checked, *, as_json: bool) -> None:
    commands = [part.enriched.command for plan in checked.plans for part in plan.parts.values()]
    if as_json:
        print_json(commands)
        return
    say("\n".join(commands))


def graph(stack: Annotated[str, typer.Option("--stack", "-s", help="A stack of Pulumi.NAME.yaml.")] = "sandbox") -> int:
    """Print a stack as a Mermaid flowchart, which GitHub, Azure DevOps and most editors draw.

    Arrows lead from data to the jobs that read it, from a job to those that wait for it, and dotted to the cluster.

    Examples:
        { echo '```mermaid'; amlstack graph --stack dev; echo '```'; } > STACK.md
    """
    from amlstack.catalog import clock
    from amlstack.cli import stack_files
    from amlstack.cli.stack.run_orders import mermaid
    from infra.declaration import declare

    with ended_by(stack_files.NoStackError):
        found = stack_files.read_settings(stack)
    declaration = declare(found.reading, on=clock.today())
    print_findings(errors(declaration.findings), err=True)
    if found.settings is None:
        return 1
    say("\n".join(mermaid(found.settings, declaration.runs)))
    return 0 if declaration.ok else 1


def _print_plans(checked: Checked, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "file": str(checked.file),
                "plans": [_planned_data(plan) for plan in checked.plans],
                "findings": [finding.as_dict() for finding in checked.findings],
            }
        )
        return
    import jobs
    from amlstack.cli.jobfiles.plan_view import panel, when
    from jobs.planning.plans import costs

    console = tables()
    for plan in checked.plans:
        name = plan.job.name or checked.file.stem
        if isinstance(plan, jobs.SchedulePlan):
            console.print(when(plan))
        for place, part in plan.parts.items():
            title = f"{name}: {place}" if place else name
            console.print(panel(part, title, costs(plan).get(place), after=getattr(plan.job, "after", ())))
    print_findings(checked.findings)


_PRINTING: Final = {
    OutputForm.PLAN: _print_plans,
    OutputForm.ARM: _print_bodies,
    OutputForm.YAML: _print_yaml,
    OutputForm.COMMAND: _print_commands,
    OutputForm.COMPONENTS: _print_components,
}


def _planned_data(plan: jobs.Planned) -> dict[str, Any]:
    """A plan for a program, its parts by their place; a single job is its own one part."""
    from jobs.planning.plans import costs

    prices = costs(plan)
    parts = {place: _plan_data(part, prices.get(place)) for place, part in plan.parts.items()}
    return parts.get("", {"name": plan.job.name, "parts": parts, "declaration": plan.declaration})


def _plan_data(plan: jobs.Plan, price: Cost | None) -> dict[str, Any]:
    return {
        "name": plan.job.name,
        "target": {"cluster": plan.target.cluster, "size": plan.target.size},
        "launcher": plan.job.launcher.type,
        "nodes": plan.nodes,
        "processes_per_node": plan.processes_per_node,
        "world_size": plan.world_size,
        "command": plan.enriched.command,
        "cost": None if price is None else price._asdict(),
        "added": [
            {"what": each.what, "value": each.value, "by": each.by, "why": each.why, "instead_of": each.instead_of}
            for each in plan.added
        ],
        "declaration": plan.declaration,
    }
