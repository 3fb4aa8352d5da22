"""``amlstack up``: what ``make up`` calls once the environment is there."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.base.findings import errors
from amlstack.cli.consent import Yes  # noqa: TC001 - typer reads the annotation
from amlstack.cli.console import say
from amlstack.cli.policy_pack import GivenRules, NoPackError, PolicyConfig, PolicyPack
from amlstack.cli.progress import Progress
from amlstack.cli.stack import explain, runs, state, summary, turns
from amlstack.cli.stack.anywhere.place import turn_of
from amlstack.engine import STACK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.base.findings import Finding

Refresh = Annotated[
    bool, typer.Option("--refresh", help="First look at what is really there; what is missing is made again.")
]
Stack = Annotated[
    str | None,
    typer.Option("--stack", "-s", metavar="NAME", help="A stack of Pulumi.NAME.yaml, on Azure. Shows its plan first."),
]
Sandbox = Annotated[
    bool,
    typer.Option("--sandbox", help="Bring that stack up on this machine's sandbox, with a state of its own there."),
]
Preview = Annotated[bool, typer.Option("--preview", "--plan-only", help="Show the plan and change nothing.")]
WithoutSecrets = Annotated[
    bool,
    typer.Option(
        "--without-secrets",
        help="With --preview: open nothing that is encrypted, in settings and state; needs no passphrase and no key.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to the standard output, all else to the other.")]

KeepTo = Annotated[
    Path | None,
    typer.Option(
        "--keep-to",
        metavar="FILE",
        help="Apply only the plan that this file has, as `--preview --json` printed it; another one ends with 1.",
        show_default=False,
    ),
]


def up(
    *,
    stack: Stack = None,
    sandbox: Sandbox = False,
    yes: Yes = False,
    refresh: Refresh = False,
    preview: Preview = False,
    as_json: Json = False,
    keep_to: KeepTo = None,
    policy_pack: PolicyPack = None,
    policy_config: PolicyConfig = None,
    without_secrets: WithoutSecrets = False,
) -> int:
    """Bring a stack up: without `--stack` the sandbox's own, whose jobs are followed to their end.

    What would be deleted or replaced and holds data or records of runs is named first. On a terminal it asks; without
    one it refuses, unless `--yes` is given. With `--stack` it shows the whole plan and its cost, and asks always.

    Returns:
        0 when the stack is up and no job failed, 1 otherwise; 2 for wrong use, 3 when another command works on it, 130
        after Ctrl-C.
    """
    try:
        rules = GivenRules.taken(policy_pack, policy_config)
    except NoPackError as error:
        say(str(error), err=True)
        return 2
    if preview or as_json or keep_to or without_secrets or (stack is not None and stack.rpartition("/")[2] != STACK):
        from amlstack.cli.stack.anywhere import bring_up

        name = stack or STACK
        on_sandbox = sandbox or name == STACK
        asked = bring_up.AskedUp(
            name, on_sandbox, yes, refresh, preview, as_json, keep_to, rules, without_secrets=without_secrets
        )
        return bring_up.run(asked)
    return _newcomers(rules, yes=yes, refresh=refresh)


def _newcomers(rules: GivenRules, *, yes: bool, refresh: bool) -> int:
    from amlstack import engine as engines
    from amlstack.cli.stack.deploy import Deployment
    from amlstack.cli.stack.waited_runs import WaitedRuns
    from amlstack.provider.arm import ArmError
    from amlstack.sandbox.server import daemon

    progress, began = Progress(), time.time()
    try:
        homes.check(paths.home())
        if wrong := _too_large():
            progress.fail("; ".join(map(str, wrong)))
            return 1
        with turns.alone(turn_of(STACK, sandbox=True), STACK, "amlstack up"):
            progress.step("Pulumi engine")
            engine = engines.find()
            progress.done(f"Pulumi {engine.version}")
            progress.step("sandbox: Azure on this machine")
            endpoint = daemon.up()
            progress.done(f"sandbox at {endpoint.url}")
            env = engines.environ(engine, endpoint.environ())
            if removed := engines.clear_stale_lock():
                progress.note(f"removed {removed} lock{'s' if removed > 1 else ''} of an engine that was killed")
            engines.select(env)
            waited = WaitedRuns(progress, endpoint.home)
            deployment = Deployment(engine, env, progress, rules.words(engine, _rules()), waited)
            deployed = deployment.run(yes=yes, refresh=refresh)
            if deployed.ok:
                progress.done(explain.changes(deployed.outcome))
                deployment.tidy()
    except turns.BusyError as error:
        progress.fail(str(error))
        return turns.BUSY
    except (engines.EngineError, daemon.SandboxError, homes.ForeignHomeError) as error:
        progress.fail(str(error))
        return 1
    except KeyboardInterrupt as interruption:
        progress.fail(explain.interrupted(interruption, "make up"))
        return 130
    if deployed.refused:
        return 1
    if not deployed.ok:
        explain.failures(progress, deployed.outcome)
        progress.note(explain.next_step(deployed))
        return 1
    outputs = _outputs(env)
    try:
        records = runs.followed(progress, outputs, endpoint, since=began, shown=waited.shown)
    except KeyboardInterrupt:
        progress.note("jobs go on: `make up` follows them again, `amlstack cancel JOB` ends one")
        return 130
    except ArmError as error:
        progress.fail(f"the sandbox does not answer any more: {error}")
        progress.note("jobs go on without it; `make up` again starts it and follows them")
        return 1
    summary.show(progress.console, deployed.outcome, outputs, records, edit=_editable())
    return 0 if all(record["status"] in runs.GOOD for record in records.values()) else 1


def _too_large() -> tuple[Finding, ...]:
    """What keeps the engine from starting the program at all, so that the program cannot report it."""
    from infra.settings import engine_limit, stackfile

    file, _ = stackfile.read(paths.PROJECT / f"Pulumi.{STACK}.yaml")
    return errors(engine_limit.check(file)) if file else ()


def _rules() -> Path | None:
    """The stack's configuration of the rules, for the pack; what is wrong with it, the program tells."""
    settings = _settings()
    file = paths.PROJECT / settings.policies if settings and settings.policies else None
    return file if file and file.is_file() else None


def _editable() -> str:
    """The file or folder whose edit is another run: of the stack's first job."""
    settings = _settings()
    first = settings.jobs[0].file if settings and settings.jobs else ""
    return f"{first.rpartition('/')[0]}/train.py" if first == "examples/ddp_torchrun/job.py" else first


def _settings() -> Any:
    from infra.settings import read_file

    return read_file(paths.PROJECT / f"Pulumi.{STACK}.yaml").partial


def _outputs(env: Mapping[str, str]) -> Mapping[str, Any]:
    """The stack's outputs: as the state records them, else from the engine, which takes a part of a second to start."""
    if (recorded := state.read().outputs()) is not None:
        return recorded
    done = subprocess.run(
        ["pulumi", "stack", "output", "--json", "--stack", STACK],
        cwd=paths.PROJECT, env=dict(env), capture_output=True, text=True, check=True,
    )  # fmt: skip
    outputs: dict[str, Any] = json.loads(done.stdout)
    return outputs
