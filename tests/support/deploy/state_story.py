"""The stack of deploy/state and a stack whose state goes there and back, by the commands that the page prints."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from tests.support.stack import printed_commands

if TYPE_CHECKING:
    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.running import Sandbox

PAGE = PROJECT / "docs/how-to/gitops-state.md"
LEFT_OUT = ("cd ", "az ", "export PULUMI_CONFIG_PASSPHRASE=", "pulumi stack init state")
"""The stack is in its folder, signed in and made already, with a passphrase of the tests."""


@dataclass
class Story:
    """The story's surroundings, and the result of each step.

    Attributes:
        place: The stack of deploy/state.
        stack: The project's own.
        sandbox: Azure.
        results: Step → what the engine did.
        printed: Heading → exit status and text of the page's commands.
        seen: What was looked at on the way.
    """

    place: Stack
    stack: Stack
    sandbox: Sandbox
    results: dict[str, Result] = field(default_factory=dict)
    printed: dict[str, tuple[int, str]] = field(default_factory=dict)
    seen: dict[str, bool] = field(default_factory=dict)

    def type(self, heading: str, stack: Stack, *, then: str = "", **more: str) -> tuple[int, str]:
        """Runs the first block of commands below a heading of the page, in the stack's folder, and one line more."""
        lines = [
            line.replace("deploy/state", str(self.place.folder))
            for line in printed_commands.of_section(PAGE.read_text("utf-8"), heading)
            if not line.startswith(LEFT_OUT)
        ]
        done = subprocess.run(
            ["bash", "-c", "set -eo pipefail\n" + "\n".join([*lines, then])],
            cwd=stack.folder,
            env={**stack.env, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.printed[heading] = done.returncode, done.stdout
        return done.returncode, done.stdout
