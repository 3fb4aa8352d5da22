"""The options that say which workspace a verb on jobs means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

_PANEL = "Which workspace"


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

    stack: Annotated[
        str | None,
        typer.Option(
            "--stack", "-s", metavar="NAME", help="That of a stack: Pulumi.NAME.yaml.", rich_help_panel=_PANEL
        ),
    ] = None
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", metavar="NAME|ID", help="Its name, or its ARM id.", rich_help_panel=_PANEL),
    ] = None
    group: Annotated[
        str | None, typer.Option("--resource-group", "-g", metavar="NAME", help="Its group.", rich_help_panel=_PANEL)
    ] = None
    subscription: Annotated[
        str | None, typer.Option("--subscription", metavar="ID", help="Its subscription.", rich_help_panel=_PANEL)
    ] = None
    sandbox: Annotated[
        bool,
        typer.Option(
            "--sandbox", help="On this machine's sandbox, whatever the environment says.", rich_help_panel=_PANEL
        ),
    ] = False

    @property
    def any(self) -> bool:
        """True where any of them is given."""
        return self != AskedWorkspace()
