"""Explanations: what the policies found, what stopped a command on a stack, and what helps."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from amlstack.base.home import ForeignHomeError
from amlstack.cli.console import Progress, name_of
from amlstack.cli.stack.plan import NoPlanError, counted_operations
from amlstack.cli.stack.pulumi_stack import BUSY, BusyError
from amlstack.cli.stack_files import NoStackError
from amlstack.engine import EngineError, EngineInterruptedError, Outcome
from amlstack.sandbox.server.daemon import SandboxError
from amlstack.sandbox.store.store import listed

USAGE: Final = 2
INTERRUPTED: Final = 130


class NotBegunError(Exception):
    """A command on a stack ends before it has changed anything; the message is for the user.

    Attributes:
        code: The exit status.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


UNREACHABLE: Final = (NoStackError, BusyError, EngineError, ForeignHomeError, SandboxError)
"""The reason why a stack cannot be worked on."""
FAILURES: Final = (*UNREACHABLE, NoPlanError, NotBegunError, KeyboardInterrupt)

_PROTECTED = "as it is currently marked for protection"
"""In the engine's refusal of each resource that a change would delete or replace."""
_EXISTS: Final = "cannot create already existing resource"
"""azure-native's words, as docs/how-to/killed-creates.md has them; the resource's id follows between quotes."""

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
            "another region or name: what is in it would be lost. Put the setting back (docs/reference/edits.md says "
            "what each edit does), or give it all up: set `amlstack:protect` to false, bring that up, and then "
            "change it."
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


def next_step(outcome: Outcome, again: str, *, updated: bool) -> str:
    """The remedy after a deployment that failed.

    Args:
        outcome: What the engine did.
        again: The command that was run.
        updated: Whether the update had begun.
    """
    if not updated:
        return f"nothing was changed; once the cause is gone, {again} again"
    failed = [(urn, text.replace("\n", " ")) for severity, urn, text in outcome.diagnostics if severity == "error"]
    # A run that failed and that others wait for: only another word for `rerun` opens that gate.
    gates = [urn for urn, text in failed if "amlstack:jobs:Job::" in urn and "not run again by itself" in text]
    if gates:
        names = ", ".join(urn.rsplit("::", 1)[-1] for urn in gates)
        return f"{again} fails so again until `rerun` of {names} is another word; what was made before stays"
    there = [text for _, text in failed if _EXISTS in text]
    if any("/providers/" not in text.partition(_EXISTS)[2].partition("'")[2].partition("'")[0] for text in there):
        return (
            f"the resource group exists, and {again} fails so again. Write `amlstack:resource_group: "
            "{existing: NAME}`, under which it is never deleted, or import it where it is this stack's "
            "(docs/how-to/existing.md)"
        )
    if there:
        return f"{again} fails so again until what exists is imported or has gone: docs/how-to/killed-creates.md"
    if outcome.refusals:
        return f"what was made before stays; once the cause is gone, {again} again goes on from here"
    return f"{again} again goes on from here"


def ending(error: BaseException, again: str) -> tuple[str, int]:
    """The message and the exit status of a command that one of the failures ended.

    Args:
        error: What was raised.
        again: The command that was run.
    """
    if isinstance(error, KeyboardInterrupt):
        applied = error.outcome.applied if isinstance(error, EngineInterruptedError) else {}
        done = f"{counted_operations(applied)} until then" if applied else "no resource was changed"
        return f"interrupted: {done}; runs that were submitted go on. `{again}` goes on from here", INTERRUPTED
    if isinstance(error, NotBegunError):
        return str(error), error.code
    if isinstance(error, BusyError):
        return str(error), BUSY
    return str(error), USAGE if isinstance(error, NoStackError | NoPlanError) else 1


def verdicts(outcome: Outcome, known: Collection[str] = ()) -> Iterator[str]:
    """Lines on what the policies found; of each policy that advises the advice for the first of its resources.

    Args:
        outcome: Of the engine.
        known: Rules whose findings were printed before, with the names and places of the settings.
    """
    packs = [f"{name.split('|')[0]} {version}".strip() for name, version in sorted(outcome.packs.items())]
    refused = len(outcome.refusals)
    verdict = f"{refused} violation{'' if refused == 1 else 's'}" if refused else "no violation"
    yield f"{', '.join(packs) or 'pack'}: {verdict} in {len(outcome.ops)} resources"
    by_policy: dict[str, list[Mapping[str, Any]]] = {}
    for advice in outcome.advice:
        by_policy.setdefault(advice["policyName"], []).append(advice)
    for policy, all_advice in sorted(by_policy.items()):
        if policy not in known:
            names = listed(list(dict.fromkeys(advice["resourceUrn"].rsplit("::", 1)[-1] for advice in all_advice)))
            description, *finding = all_advice[0]["message"].strip().splitlines()
            text = " ".join(finding) or description
            yield f"advice: {policy} ({names}): {text.removesuffix(f' [{policy}]')}"
