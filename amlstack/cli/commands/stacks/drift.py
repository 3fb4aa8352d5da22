"""``amlstack drift``: differences between Azure and a stack's declaration, found without changing anything."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated, Final

import typer

from amlstack.cli.console import print_json, say
from amlstack.cli.jobfiles.formats import Format, chosen
from amlstack.engine import STACK

app = typer.Typer(add_completion=False)
_UNKNOWN: Final = 2
"""Exit status where drift could not be checked."""

Stack = Annotated[
    str | None,
    typer.Option("--stack", "-s", metavar="NAME", help="A stack of Pulumi.NAME.yaml; unset: the sandbox's own."),
]
Sandbox = Annotated[bool, typer.Option("--sandbox", help="That stack as it is on this machine's sandbox.")]
Form = Annotated[
    str | None,
    typer.Option("--format", metavar="FORM", help="text, json, or github: the body of an issue.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program: another spelling of --format json.")]
All = Annotated[bool, typer.Option("--all", help="List what changed by itself too, and all runs.")]
Title = Annotated[
    bool,
    typer.Option("--title", help="Print the title of the stack's issue, which never changes; look at nothing."),
]


@app.command()
def drift(
    *,
    stack: Stack = None,
    sandbox: Sandbox = False,
    form: Form = None,
    as_json: Json = False,
    everything: All = False,
    title: Title = False,
) -> None:
    """Find differences between Azure and what the stack deployed, and how to mend each.

    The engine reads every resource and changes neither it nor the state. Each difference shows the declared value, the
    present value, the setting that adopts it, and the command that puts it back. A resource that is gone is drift too.
    Properties that the service writes by itself (node counts, status) are left out and counted.

    Runs are no drift. A run that ended, was cancelled, or whose record is gone is listed; `up` does not run it again.

    Exit status: 0 no drift, 1 drift, 2 it could not be checked (no login, no stack, another command at work).

    Examples:
        amlstack drift                                # the sandbox's own stack

        amlstack drift --stack prod --all

        amlstack drift --stack prod --format github > drift.md; amlstack drift --stack prod --title
    """
    asked = chosen(form, Format.TEXT, Format.JSON, Format.GITHUB, as_json=as_json)
    name = stack or STACK
    if title:
        from amlstack.cli.stack.drift.report import issue_title

        say(issue_title(name))
        return
    raise typer.Exit(_run(name, asked, sandbox=sandbox or name.rpartition("/")[2] == STACK, everything=everything))


def _run(name: str, form: Format, *, sandbox: bool, everything: bool) -> int:
    from amlstack.cli.console import Progress
    from amlstack.cli.stack import explain
    from amlstack.cli.stack.drift import report
    from amlstack.cli.stack.drift.look import look_at

    try:
        # The output for a program is the findings and nothing else.
        with contextlib.nullcontext() if form is Format.TEXT else contextlib.redirect_stdout(sys.stderr):
            look = look_at(name, Progress(), sandbox=sandbox)
    except explain.UNREACHABLE as error:
        if form is Format.JSON:
            print_json({"stack": name, "drift": None, "errors": [str(error)], "exit_status": _UNKNOWN})
        say(f"could not look: {error}", err=True)
        return _UNKNOWN
    except KeyboardInterrupt:
        say("interrupted; nothing was changed", err=True)
        return explain.INTERRUPTED
    if form is Format.JSON:
        print_json(look.as_dict())
    elif form is Format.GITHUB:
        say(report.issue_body(look), nl=False)
    else:
        say("\n".join(report.lines(look, everything=everything)))
    return look.exit_status
