"""``amlstack up``: what ``make up`` calls once the environment is there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from amlstack.cli.console import (
    Yes,
    say,
)
from amlstack.cli.policy_pack import GivenRules, NoPackError, PolicyConfig, PolicyPack
from amlstack.engine import STACK

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

    It shows the plan and its cost first. Of the sandbox's own stack it asks only where something would be deleted or
    replaced that holds data or records of runs; of any other it asks always. Without a terminal it then refuses,
    unless `--yes` is given.

    Returns:
        0 when the stack is up and no job failed, 1 otherwise; 2 for wrong use, 3 when another command works on it, 130
        after Ctrl-C.
    """
    from amlstack.cli.stack import bring_up

    try:
        rules = GivenRules.taken(policy_pack, policy_config)
    except NoPackError as error:
        say(str(error), err=True)
        return 2
    name = STACK if stack is None or stack.rpartition("/")[2] == STACK else stack
    asked = bring_up.AskedUp(
        name, sandbox or name == STACK, yes, refresh, preview, as_json, keep_to, rules, without_secrets
    )
    return bring_up.run(asked)
