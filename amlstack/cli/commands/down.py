"""``amlstack down``: destroys the sandbox stack and removes what the sandbox wrote, after naming what is lost."""

from __future__ import annotations

from typing import Annotated

import typer

from amlstack.cli.console import Yes  # noqa: TC001 - typer reads the annotation
from amlstack.engine import STACK

Stack = Annotated[
    str | None,
    typer.Option("--stack", "-s", metavar="NAME", help="Destroy that stack alone, on Azure. Names what goes first."),
]
Sandbox = Annotated[bool, typer.Option("--sandbox", help="That stack as it is on this machine's sandbox.")]
Foreign = Annotated[
    list[str] | None,
    typer.Option(
        "--delete-foreign",
        metavar="NAME",
        help="With --stack: lets go what the stack does not own in its group and workspace. KIND/NAME or KIND/* too.",
        show_default=False,
    ),
]


def down(*, stack: Stack = None, sandbox: Sandbox = False, yes: Yes = False, delete_foreign: Foreign = None) -> int:
    """Destroy a stack: without `--stack` the sandbox's own, with the sandbox and what it wrote; the caches stay.

    Records of runs and files that jobs left in mounted outputs are counted and named first. On a terminal it asks
    whether they may go, unless there are none; from a script it goes on.

    Returns:
        0 when nothing is left; 1 when the stack could not be destroyed (what the sandbox wrote is removed all the
        same), when the answer was no, or when the folder is none of ours; 3 when another command works on it.
    """
    from amlstack.cli.stack import take_down

    if stack is None or stack.rpartition("/")[2] == STACK:
        return take_down.remove_sandbox(yes=yes)
    return take_down.run(take_down.AskedDown(stack, sandbox, yes, tuple(delete_foreign or ())))
