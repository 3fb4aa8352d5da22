"""The options that say which workspace a verb on jobs means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

_option = partial(typer.Option, rich_help_panel="Which workspace")


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
        str | None, _option("--stack", "-s", metavar="NAME", help="That of a stack: Pulumi.NAME.yaml.")
    ] = None
    workspace: Annotated[
        str | None, _option("--workspace", "-w", metavar="NAME|ID", help="Its name, or its ARM id.")
    ] = None
    group: Annotated[str | None, _option("--resource-group", "-g", metavar="NAME", help="Its group.")] = None
    subscription: Annotated[str | None, _option(metavar="ID", help="Its subscription.")] = None
    sandbox: Annotated[bool, _option("--sandbox", help="On this machine's sandbox, whatever the environment says.")] = (
        False
    )

    @property
    def any(self) -> bool:
        """True where any of them is given."""
        return self != AskedWorkspace()
