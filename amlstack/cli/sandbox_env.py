"""What makes plain tools work on the sandbox and on its stack, as variables for a shell.

Each kind of tool that needs another form (a notebook, Terraform) gets a function here; a shell's is the only one yet.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.server.daemon import Endpoint


def variables(endpoint: Endpoint) -> dict[str, str]:
    """The variables of a client of the sandbox, and those of an engine on its stack, which is created if need be.

    Raises:
        EngineError: No engine could be had, or it refused to create the stack.
    """
    from amlstack import engine as engines
    from amlstack.cli.stack import state

    engine = engines.find()
    env = engines.environ(engine, endpoint.environ())
    if engines.STACK not in state.files():
        engines.select(env)
    return {**endpoint.environ(), **engines.variables(engine)}


def for_shell(values: Mapping[str, str]) -> Iterator[str]:
    """Lines for ``eval "$(amlstack sandbox env)"``."""
    for name, value in values.items():
        yield f"export {name}={shlex.quote(value)}"
