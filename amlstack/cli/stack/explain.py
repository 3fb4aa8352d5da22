"""What stopped the engine, and what helps: each error once, and a next step only where it is one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from amlstack.cli.progress import name_of

if TYPE_CHECKING:
    from amlstack.cli.progress import Progress
    from amlstack.cli.stack.deploy import Deployed
    from amlstack.engine import Outcome

_DONE: Final = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "discard": "forgotten",
    "import": "imported",
    "refresh": "refreshed",
    # Each step of a replacement is an operation; the last one that is seen depends on their order.
    **dict.fromkeys(("replace", "create-replacement", "delete-replaced", "discard-replaced"), "replaced"),
}

_CLOSING = "an unhandled error occurred: program exited with non-zero exit code"


def failures(progress: Progress, outcome: Outcome) -> None:
    """Prints violations and errors; the engine's whole text only when there are none."""
    printed = False
    for violation in outcome.refusals:
        progress.fail(
            f"policy {violation['policyName']}: {name_of(violation['resourceUrn'])}: {violation['message'].strip()}"
        )
        printed = True
    for severity, urn, message in outcome.diagnostics:
        # The engine closes with a line on the program's exit status, after the program has printed its findings.
        closing = printed and message.startswith(_CLOSING)
        if severity == "error" and "\npolicy" not in message and not closing:
            progress.fail(f"{name_of(urn)}: {message}" if urn else message)
            printed = True
    if not printed:
        progress.fail(outcome.output.strip())


def next_step(deployed: Deployed) -> str:
    """What helps after a deployment that failed."""
    outcome = deployed.outcome
    if not deployed.updated:
        return "nothing was changed; once the cause is gone, `make up` again"
    gates = [urn for severity, urn, text in outcome.diagnostics if severity == "error" and _is_closed_gate(urn, text)]
    if gates:
        names = ", ".join(urn.rsplit("::", 1)[-1] for urn in gates)
        return f"`make up` fails so again until `rerun` of {names} is another word; what was made before stays"
    if outcome.refusals:
        return "what was made before stays; once the cause is gone, `make up` again goes on from here"
    return "`make up` again goes on from here"


def changes(outcome: Outcome) -> str:
    """What a deployment did, in one line: ``stack is up: 2 created, 1 replaced``."""
    if not outcome.changed:
        return "nothing to change: everything is as declared"
    counts = Counter(_DONE.get(op, op) for op in outcome.changed.values())
    return "stack is up: " + ", ".join(f"{number} {done}" for done, number in sorted(counts.items()))


def _is_closed_gate(urn: str, text: str) -> bool:
    """Whether an error is that of a failed run which others wait for: only another word for `rerun` opens that gate."""
    return "amlstack:jobs:Job::" in urn and "not run again by itself" in text.replace("\n", " ")
