"""``amlstack sandbox``: Azure on this machine, started, looked at and ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack.base import paths
from amlstack.base.findings import Finding
from amlstack.cli.console import Yes, end, ended_by, print_findings, print_json, say, tables
from amlstack.cli.rehearsal.site import OnForAll
from amlstack.cli.sandbox_env import Tool

if TYPE_CHECKING:
    from amlstack.sandbox.server.daemon import Endpoint
    from amlstack.sandbox.store.store import Store

app = typer.Typer(no_args_is_help=True, help="Azure on this machine: start it, look at it, end it.")


@app.command()
def up(
    *,
    shell: Annotated[bool, typer.Option("--shell", help="Print export lines instead, as `env` does.")] = False,
    hold_jobs: Annotated[
        bool, typer.Option("--hold-jobs", help="Keep jobs that have not started in the queue until `release`.")
    ] = False,
    on: OnForAll = None,
    stack: Annotated[str | None, typer.Option(help="Stack whose `amlstack:slurm` has the profile.")] = None,
) -> None:
    """Start the sandbox, or find it running.

    With `--on slurm`, jobs of all clients get nodes of a site with Slurm, whose queue they wait in.

    Examples:
        amlstack sandbox up

        amlstack sandbox up --on slurm:h100 --stack dev
    """
    site = None if on is None else _site(on, stack)
    endpoint = _running(hold_jobs=hold_jobs, site=site)
    if shell:
        _print_variables(endpoint)
        return
    if site is not None:
        say(f"jobs that are submitted from now on run on {on if site else 'this machine'}")
    say(f"sandbox at {endpoint.url}, process {endpoint.pid}, files in {endpoint.ca.parent}")


@app.command()
def env(
    *,
    tool: Annotated[
        Tool,
        typer.Option(
            "--for",
            help="shell: Azure's clients and this project's stack; mlclient: azure-ai-ml and other Python clients; "
            "az: with a login of its own; terraform: azurerm; pulumi: azure-native of the registry; notebook: Python; "
            "state: azblob:// and azurekeyvault://.",
        ),
    ] = Tool.SHELL,
) -> None:
    """Start the sandbox, and print the variables with which plain tools work on it and on its stack.

    They are for the shell that evaluates them, and for what it starts: Azure's clients then talk to the sandbox, and
    `pulumi preview`, `up`, `refresh`, `cancel` in the project's folder work on the stack `sandbox`.

    Examples:
        eval "$(amlstack sandbox env)"

        (eval "$(amlstack sandbox env)"; pulumi preview --diff)

        eval "$(amlstack sandbox env --for az)" && az ml job list -g GROUP -w WORKSPACE
    """
    _print_variables(_running(), tool)


@app.command()
def down(
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Also remove its state, logs and keys.")] = False,
    yes: Yes = False,
) -> None:
    """End the sandbox and the processes of its jobs."""
    from amlstack.sandbox.server import daemon

    if remove:
        _agree(yes=yes)
    with ended_by(daemon.SandboxError, code=1):
        ended = daemon.down(remove=remove)
    say(f"ended {ended} process{'' if ended == 1 else 'es'}" if ended else "nothing was running")


@app.command()
def status(*, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Show clusters with their nodes, and count jobs; `amlstack status` shows the jobs."""
    from amlstack.sandbox.server import daemon as report
    from amlstack.sandbox.store.database import StateError

    with ended_by(StateError, code=1):
        state = report.gather(paths.home())
    if as_json:
        print_json(state)
        return
    where = f"running at {state['url']}" if state["running"] else "not running (amlstack sandbox up)"
    console = tables()
    console.print(f"sandbox {where}: {state['resources']} resources", highlight=False)
    if state["held"]:
        console.print("jobs that have not started are held in the queue (amlstack sandbox release)", highlight=False)
    if state["slurm"] is not None:
        asked = ", ".join(f"{key} {value}" for key, value in state["slurm"].items()) or "the site's defaults"
        console.print(f"jobs get nodes of Slurm: {asked} (amlstack sandbox up --on machine ends it)", highlight=False)
    if state["jobs"]:
        counts = ", ".join(f"{count:,} {status}" for status, count in state["jobs"].items())
        console.print(f"jobs: {counts} (amlstack status)", highlight=False)
    if state["clusters"]:
        console.print(report.clusters(state))


@app.command()
def release() -> None:
    """Let the jobs start that `up --hold-jobs` keeps in the queue."""
    from amlstack.sandbox.server import daemon

    _require()
    with ended_by(daemon.SandboxError, code=1):
        daemon.hold(hold=False)
    say("jobs start as their clusters have room for them")


@app.command()
def quota(
    *,
    region: Annotated[str, typer.Option(help="Region, e.g. westeurope.")] = "",
    family: Annotated[str, typer.Option(help="Family of sizes, e.g. standardNDv5H100Family.")] = "",
    limit: Annotated[
        int | None, typer.Option(min=0, help="vCPUs of the family; without one, of all dedicated nodes.")
    ] = None,
    low_priority: Annotated[int | None, typer.Option(min=0, help="vCPUs of all low-priority nodes.")] = None,
    withhold: Annotated[list[str] | None, typer.Option(help="A size that is not offered.")] = None,
    workspace: Annotated[
        str, typer.Option(help="Name of a workspace: --limit is its part of the family's quota.")
    ] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Forget what was set.")] = False,
) -> None:
    """Show or set what a subscription may use of a region; without a setting there is no limit.

    Examples:
        amlstack sandbox quota --region westeurope --family standardNDv5H100Family --limit 96

        amlstack sandbox quota --region westeurope --withhold Standard_ND96asr_v4
    """
    from amlstack.sandbox.kinds.machine_learning import computes

    changes = computes.QuotaChange(family, limit, low_priority, tuple(withhold or ()), workspace)
    if (wrong := computes.wrong(region, changes)) is not None:
        end(wrong, 1)
    with _tables() as store:
        known = {} if clear else store.quota()
        if clear or changes.any:
            known = computes.changed(known, region, changes) if changes.any else known
            store.set_quota(known)
    if known:
        print_json(known)
    else:
        say("no limits are set")


@app.command()
def evict(
    job: Annotated[str, typer.Argument(help="Name of a run, or of its job as in the job's file.")],
    *,
    node: Annotated[int, typer.Option(help="Number of the node in the job, from 0.")] = 0,
) -> None:
    """Take a node of a running job away, as low-priority nodes are taken away."""
    from amlstack.sandbox.scheduling import EvictError
    from amlstack.sandbox.scheduling import evict as take

    with _tables() as store, ended_by(EvictError, code=1):
        taken = take(store, job, node)
    say(f"node {node} of {taken.name} is gone; the job fails as a pre-empted one does")


@app.command()
def serve() -> None:
    """Run the server in the foreground, for looking into it."""
    from amlstack.sandbox.server import serve as server

    raise typer.Exit(server.main())


@app.command()
def reset(*, yes: Yes = False) -> None:
    """Forget everything: end the sandbox, remove its state, logs and keys.

    It names first what goes. The stack stays recorded: the next `amlstack up` sees what is missing and makes it anew.
    """
    from amlstack.sandbox.server import daemon

    _agree(yes=yes)
    with ended_by(daemon.SandboxError, code=1):
        daemon.down(remove=True)
    say("the sandbox is empty")


def _require() -> None:
    """Ends the command where there is no sandbox."""
    from amlstack.sandbox.store.folders import folder

    if not (folder(paths.home()) / "state.db").exists():
        end("There is no sandbox here (amlstack sandbox up).", 1)


@contextlib.contextmanager
def _tables() -> Iterator[Store]:
    """The tables of this home's sandbox."""
    from amlstack.sandbox.store.database import StateError
    from amlstack.sandbox.store.store import Store

    _require()
    with ended_by(StateError, code=1), contextlib.closing(Store(paths.home())) as store:
        yield store


def _agree(*, yes: bool) -> None:
    """Ends the command unless what the sandbox holds may go."""
    from amlstack.base import home as homes
    from amlstack.cli.console import Progress, losses_confirmed
    from amlstack.sandbox.store.store import find_holdings

    home = paths.home()
    with ended_by(homes.ForeignHomeError, code=1):
        homes.check(home)
    if not losses_confirmed(Progress(), home, find_holdings(home).lines(), yes=yes):
        raise typer.Exit(1)


def _running(*, hold_jobs: bool = False, site: str | None = None) -> Endpoint:
    from amlstack.sandbox.server import daemon

    with ended_by(daemon.SandboxError, code=1):
        return daemon.up(hold_jobs=hold_jobs, site=site)


def _site(on: str, stack: str | None) -> str:
    """The text of the profile that a place names; empty for this machine. Ends the command where it cannot be had."""
    from amlstack.cli import targets
    from amlstack.cli.rehearsal.site import obstacles, profile_of

    where = targets.find(None, stack)
    profile = profile_of(on, where)
    if profile is None:
        return ""
    if isinstance(profile, Finding):
        print_findings((*where.findings, profile), err=True)
        raise typer.Exit(1)
    for each in obstacles(profile, [("", 1, None)]):
        end(f"{each.text}. {each.remedy}", 1)
    return profile.text()


def _print_variables(endpoint: Endpoint, tool: Tool = Tool.SHELL) -> None:
    """Without an engine those of a client of Azure alone: for them no engine is needed."""
    from amlstack.cli import sandbox_env
    from amlstack.engine import EngineError

    try:
        lines = list(sandbox_env.lines(endpoint, tool))
    except EngineError as error:
        say(f"nothing is set for Pulumi: {error}", err=True)
        lines = list(sandbox_env.lines(endpoint, Tool.MLCLIENT))
    for line in lines:
        say(line)
