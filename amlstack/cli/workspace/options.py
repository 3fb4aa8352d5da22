"""The options that say which workspace a verb on jobs means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from amlstack.cli.console import say

_PANEL = "Which workspace"

Stack = Annotated[
    str | None,
    typer.Option("--stack", "-s", metavar="NAME", help="That of a stack: Pulumi.NAME.yaml.", rich_help_panel=_PANEL),
]
Workspace = Annotated[
    str | None,
    typer.Option("--workspace", "-w", metavar="NAME|ID", help="Its name, or its ARM id.", rich_help_panel=_PANEL),
]
Group = Annotated[
    str | None, typer.Option("--resource-group", "-g", metavar="NAME", help="Its group.", rich_help_panel=_PANEL)
]
Subscription = Annotated[
    str | None, typer.Option("--subscription", metavar="ID", help="Its subscription.", rich_help_panel=_PANEL)
]
Sandbox = Annotated[
    bool,
    typer.Option("--sandbox", help="On this machine's sandbox, whatever the environment says.", rich_help_panel=_PANEL),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to the standard output.")]


@dataclass(frozen=True, slots=True)
class AskedWorkspace:
    """The options that name a workspace; all of them may be left out.

    Attributes:
        stack: A stack's name.
        workspace: Its name, or its ARM id.
        group: Its resource group.
        subscription: Its subscription's id.
        sandbox: Whether it is on this machine's sandbox.
    """

    stack: str | None = None
    workspace: str | None = None
    group: str | None = None
    subscription: str | None = None
    sandbox: bool = False

    @property
    def any(self) -> bool:
        """True where any of them is given."""
        return self != AskedWorkspace()


def announce(message: str) -> None:
    """Shows what a request waits for."""
    say(message, err=True)
