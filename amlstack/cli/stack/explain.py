"""What stopped the engine, and what helps: each error once, and a next step only where it is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.cli.progress import name_of

if TYPE_CHECKING:
    from amlstack.cli.progress import Progress
    from amlstack.engine import Outcome

_CLOSING = "an unhandled error occurred: program exited with non-zero exit code"


def failures(progress: Progress, outcome: Outcome) -> None:
    """Prints violations and errors; the engine's whole text only when there are none."""
    told = False
    for violation in outcome.refusals:
        progress.fail(
            f"policy {violation['policyName']}: {name_of(violation['resourceUrn'])}: {violation['message'].strip()}"
        )
        told = True
    for severity, urn, message in outcome.diagnostics:
        # The engine closes with a line on the program's exit status, after the program has told what is wrong itself.
        closing = told and message.startswith(_CLOSING)
        if severity == "error" and "\npolicy" not in message and not closing:
            progress.fail(f"{name_of(urn)}: {message}" if urn else message)
            told = True
    if not told:
        progress.fail(outcome.output.strip())
