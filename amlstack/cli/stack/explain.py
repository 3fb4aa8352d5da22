"""What stopped the engine, and what helps: each error once, and a next step only where it is one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from amlstack.cli.progress import name_of
from amlstack.engine import EngineInterruptedError

if TYPE_CHECKING:
    from collections.abc import Mapping

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

_PROTECTED = "as it is currently marked for protection"
"""In the engine's refusal of each resource that a change would delete or replace."""
_EXISTS: Final = "cannot create already existing resource"
"""azure-native's words, as docs/killed-creates.md has them; the resource's id follows between quotes."""

_CLOSING = "an unhandled error occurred: program exited with non-zero exit code"


def failures(progress: Progress, outcome: Outcome) -> None:
    """Prints violations and errors; the engine's whole text only when there are none."""
    printed = False
    for violation in outcome.refusals:
        progress.fail(
            f"policy {violation['policyName']}: {name_of(violation['resourceUrn'])}: {violation['message'].strip()}"
        )
        printed = True
    protected = [urn for _, urn, message in outcome.diagnostics if _PROTECTED in message]
    if protected:
        names = ", ".join(dict.fromkeys(map(name_of, protected)))
        progress.fail(
            f"{names}: what was changed would replace or delete this, and the stack protects it. Nothing moves to "
            "another region or name: what is in it would be lost. Put the setting back (docs/edits.md says what each "
            "edit does), or give it all up: set `amlstack:protect` to false, bring that up, and then change it."
        )
        printed = True
    for severity, urn, message in outcome.diagnostics:
        if _PROTECTED in message:
            continue
        # The engine closes with a line on the program's exit status, after the program has printed its findings.
        closing = printed and message.startswith(_CLOSING)
        if severity == "error" and "\npolicy" not in message and not closing:
            progress.fail(f"{name_of(urn)}: {message}" if urn else message)
            printed = True
    if not printed:
        progress.fail(outcome.output.strip())


def next_step(deployed: Deployed, again: str = "`make up`") -> str:
    """What helps after a deployment that failed.

    Args:
        deployed: How it ended.
        again: The command that was run.
    """
    outcome = deployed.outcome
    if not deployed.updated:
        return f"nothing was changed; once the cause is gone, {again} again"
    gates = [urn for severity, urn, text in outcome.diagnostics if severity == "error" and _is_closed_gate(urn, text)]
    if gates:
        names = ", ".join(urn.rsplit("::", 1)[-1] for urn in gates)
        return f"{again} fails so again until `rerun` of {names} is another word; what was made before stays"
    there = [text for severity, _, text in outcome.diagnostics if severity == "error" and _EXISTS in text]
    if any("/providers/" not in text.partition(_EXISTS)[2].partition("'")[2].partition("'")[0] for text in there):
        return (
            f"the resource group exists, and {again} fails so again. Write `amlstack:resource_group: "
            "{existing: NAME}`, under which it is never deleted, or import it where it is this stack's "
            "(docs/existing.md)"
        )
    if there:
        return f"{again} fails so again until what exists is imported or has gone: docs/killed-creates.md"
    if outcome.refusals:
        return f"what was made before stays; once the cause is gone, {again} again goes on from here"
    return f"{again} again goes on from here"


def changes(outcome: Outcome) -> str:
    """What a deployment did, in one line: ``stack is up: 2 created, 1 replaced``."""
    if not outcome.changed:
        return "nothing to change: everything is as declared"
    return f"stack is up: {_counted(outcome.changed)}"


def _counted(ops: Mapping[str, str]) -> str:
    """``2 created, 1 replaced``."""
    counts = Counter(_DONE.get(op, op) for op in ops.values())
    return ", ".join(f"{number} {done}" for done, number in sorted(counts.items()))


def interrupted(interruption: KeyboardInterrupt, again: str) -> str:
    """What an interruption left behind.

    Args:
        interruption: What was raised.
        again: The command that was run.
    """
    applied = interruption.outcome.applied if isinstance(interruption, EngineInterruptedError) else {}
    done = f"{_counted(applied)} until then" if applied else "no resource was changed"
    return f"interrupted: {done}; runs that were submitted go on. `{again}` goes on from here"


def _is_closed_gate(urn: str, text: str) -> bool:
    """Whether an error is that of a failed run which others wait for: only another word for `rerun` opens that gate."""
    return "amlstack:jobs:Job::" in urn and "not run again by itself" in text.replace("\n", " ")
