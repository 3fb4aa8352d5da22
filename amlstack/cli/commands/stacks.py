"""Verbs on a stack: ``up``, ``down``, ``drift`` and ``import-ids``."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from amlstack.cli import stack_files
from amlstack.cli.console import Json, Progress, Yes, end, ended_by, print_findings, print_json, say
from amlstack.cli.jobfiles.formats import Format, chosen
from amlstack.cli.policy_pack import GivenRules, NoPackError, PolicyConfig, PolicyPack
from amlstack.engine import STACK

Sandbox = Annotated[
    bool, typer.Option("--sandbox", help="That stack on this machine's sandbox, with a state of its own there.")
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="First look at what is really there; what is missing is made again.")
]
UpStack = Annotated[
    str | None,
    typer.Option("--stack", "-s", metavar="NAME", help="A stack of Pulumi.NAME.yaml, on Azure. Shows its plan first."),
]
Preview = Annotated[bool, typer.Option("--preview", "--plan-only", help="Show the plan and change nothing.")]
WithoutSecrets = Annotated[
    bool,
    typer.Option(
        "--without-secrets",
        help="With --preview: open nothing that is encrypted, in settings and state; needs no passphrase and no key.",
    ),
]

KeepTo = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Apply only the plan that this file has, as `--preview --json` printed it; another one ends with 1.",
    ),
]


def up(
    *,
    stack: UpStack = None,
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
    """Bring a stack up: without `--stack` the sandbox's own, and follow its jobs to their end.

    It shows the plan and its cost first. For the sandbox's own stack it asks only before it deletes
    or replaces what holds data or records of runs; for any other it always asks. Without a terminal it then refuses,
    unless you give `--yes`.

    Exit status: 0 the stack is up and no job failed, 1 otherwise, 2 wrong use, 3 another command works on it, 130
    Ctrl-C.
    """
    from amlstack.cli.stack import bring_up

    with ended_by(NoPackError):
        rules = GivenRules.taken(policy_pack, policy_config)
    name = STACK if stack is None or stack.rpartition("/")[2] == STACK else stack
    asked = bring_up.AskedUp(
        name, sandbox or name == STACK, yes, refresh, preview, as_json, keep_to, rules, without_secrets
    )
    return bring_up.run(asked)


DownStack = Annotated[
    str | None,
    typer.Option("--stack", "-s", metavar="NAME", help="Destroy that stack alone, on Azure. Names what goes first."),
]
Foreign = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="With --stack: lets go what the stack does not own in its group and workspace. KIND/NAME or KIND/* too.",
    ),
]


def down(*, stack: DownStack = None, sandbox: Sandbox = False, yes: Yes = False, delete_foreign: Foreign = None) -> int:
    """Destroy a stack: without `--stack` the sandbox's own, with the sandbox and what it wrote; the caches stay.

    It first counts and names records of runs, and files that jobs left in mounted outputs. On a terminal it asks
    whether they may go, unless there are none; from a script it goes on.

    Exit status: 0 nothing is left, 1 the stack could not be destroyed (what the sandbox wrote is removed all the same),
    the answer was no, or the folder is none of ours, 3 another command works on it.
    """
    from amlstack.cli.stack import take_down

    if stack is None or stack.rpartition("/")[2] == STACK:
        return take_down.remove_sandbox(yes=yes)
    return take_down.run(take_down.AskedDown(stack, sandbox, yes, tuple(delete_foreign or ())))


DriftStack = Annotated[
    str | None,
    typer.Option("--stack", "-s", metavar="NAME", help="A stack of Pulumi.NAME.yaml; unset: the sandbox's own."),
]
Form = Annotated[
    str | None, typer.Option("--format", metavar="FORM", help="text, json, or github: the body of an issue.")
]
All = Annotated[bool, typer.Option("--all", help="List what changed by itself too, and all runs.")]
Title = Annotated[
    bool, typer.Option("--title", help="Print the title of the stack's issue, which never changes; look at nothing.")
]


def drift(
    *,
    stack: DriftStack = None,
    sandbox: Sandbox = False,
    form: Form = None,
    as_json: Json = False,
    everything: All = False,
    title: Title = False,
) -> int:
    """Find differences between Azure and what the stack deployed, and how to mend each.

    The engine reads every resource and changes neither it nor the state. Each difference shows the declared value, the
    present value, the setting that adopts it, and the command that puts it back. A missing resource is drift too.
    It counts, and leaves out, properties that the service writes by itself (node counts, status).

    Runs are no drift. It lists runs that have ended or lost their record; `up` runs none again.

    Exit status: 0 no drift, 1 drift, 2 no answer (no login, no stack, another command at work).

    Examples:
        amlstack drift                                # the sandbox's own stack

        amlstack drift --stack prod --all

        amlstack drift --stack prod --format github > drift.md; amlstack drift --stack prod --title
    """
    from amlstack.cli.stack import explain
    from amlstack.cli.stack.drift import report
    from amlstack.cli.stack.drift.look import look_at

    asked = chosen(form, Format.TEXT, Format.JSON, Format.GITHUB, as_json=as_json)
    name = stack or STACK
    if title:
        say(report.issue_title(name))
        return 0
    try:
        # The output for a program is the findings and nothing else.
        with contextlib.nullcontext() if asked is Format.TEXT else contextlib.redirect_stdout(sys.stderr):
            look = look_at(name, Progress(), sandbox=sandbox or name.rpartition("/")[2] == STACK)
    except explain.UNREACHABLE as error:
        if asked is Format.JSON:
            print_json({"stack": name, "drift": None, "errors": [str(error)], "exit_status": 2})
        end(f"could not look: {error}")
    except KeyboardInterrupt:
        end("interrupted; nothing was changed", explain.INTERRUPTED)
    if asked is Format.JSON:
        print_json(look.as_dict())
    elif asked is Format.GITHUB:
        say(report.issue_body(look), nl=False)
    else:
        say("\n".join(report.lines(look, everything=everything)))
    return look.exit_status


ImportStack = Annotated[str, typer.Option("--stack", "-s", metavar="NAME", help="The stack of Pulumi.NAME.yaml.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the import file is written.")]


def import_ids(*, stack: ImportStack, output: Output = Path("import.json")) -> int:
    """Write the file for `pulumi import --file` of what exists: group, workspace, parts, clusters, schedules.

    It asks Azure for what the settings name, and names what is absent. Where settings differ from Azure, it prints the
    settings to write, alone on standard output. It changes nothing.

    Exit status: 0 the file is there, 1 write the settings first, or Azure does not answer, 2 wrong use.
    """
    answer = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        return _import_file(stack, output, answer)


def _import_file(stack: str, output: Path, answer: TextIO) -> int:
    from amlstack.cli.stack import adoption
    from amlstack.provider.arm import ArmError
    from infra.names import Names, resolve_account

    progress = Progress()
    try:
        given = stack_files.read_settings(stack)
    except stack_files.NoStackError as error:
        progress.fail(str(error))
        return 2
    reading, config, project = given.reading, given.config, stack_files.project_name()
    who, unknown = resolve_account(config, os.environ)
    settings = reading.settings
    if settings is None or unknown:
        print_findings((*reading.findings, *unknown))
        return 1
    names = Names.of(settings, project=project, stack=given.name, subscription=who.subscription)
    elsewhere = names.subscription.lower() != who.subscription.lower()
    provider = adoption.provider_urn(given.name, project) if elsewhere else None
    try:
        progress.step(f"what Azure has in {names.group_id}")
        found = adoption.read_estate(stack_files.client_of(config), names)
    except ArmError as error:
        progress.fail(str(error))
        return 1
    return adoption.Adoption(progress, reading, settings, names, found, stack, answer, provider).write(output)
