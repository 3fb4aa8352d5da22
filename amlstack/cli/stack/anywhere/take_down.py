"""``amlstack down --stack NAME``: what is protected is shown first; then what goes is named, asked about, destroyed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from amlstack import engine as engines
from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.cli import consent, sandbox_arm
from amlstack.cli.progress import Progress
from amlstack.cli.stack import explain, turns
from amlstack.cli.stack.anywhere import judged as judging
from amlstack.cli.stack.anywhere import place as places
from amlstack.cli.stack.anywhere import protected
from amlstack.cli.stack.anywhere.bring_up import INTERRUPTED, USAGE
from amlstack.cli.stack.anywhere.plan import StackPlan
from amlstack.cli.stack.anywhere.sandboxed import SandboxedStack
from amlstack.provider.arm import ArmError
from amlstack.provider.stacks import foreign, keeper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.cli.stack.anywhere.judged import JudgedStack
    from amlstack.cli.stack.anywhere.place import StackPlace
    from amlstack.cli.stack.state import State
    from amlstack.engine import Outcome


@dataclass(frozen=True, slots=True)
class AskedDown:
    """What a person asked for.

    Attributes:
        stack: Name of the stack; organization and project may stand before it.
        sandbox: Whether it is the one on this machine's sandbox.
        yes: Whether to destroy without a question.
        foreign: Names of what may go although the stack does not own it.
    """

    stack: str
    sandbox: bool
    yes: bool = False
    foreign: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The same again."""
        return f"amlstack down --stack {self.stack}{' --sandbox' if self.sandbox else ''}"


def run(asked: AskedDown) -> int:
    """Destroys a stack.

    Returns:
        0 when nothing of it is left, 1 when something is protected or could not be destroyed, or the answer was no, 2
        for wrong use, 3 when another command works on the stack, 130 after Ctrl-C.
    """
    from amlstack.sandbox.server import daemon

    progress = Progress()
    if not asked.yes and not consent.on_a_terminal():
        progress.fail("nothing was destroyed: there is no terminal to ask on. `--yes` destroys without a question")
        return USAGE
    try:
        if asked.sandbox and not SandboxedStack.of(asked.stack.rpartition("/")[2]).folder.is_dir():
            progress.done(f"the sandbox has no stack `{asked.stack}`")
            return 0
        judged = judging.judge(asked.stack, {})
        with turns.alone(places.turn_of(asked.stack, sandbox=asked.sandbox), asked.stack, "amlstack down"):
            engine = engines.find()
            place = (
                places.on_the_sandbox(judged, engine, daemon.up())
                if asked.sandbox
                else places.on_azure(asked.stack, engine)
            )
            place = replace(place, env={**place.env, **_agreed(asked)})
            code = _destroyed(asked, judged, place, progress)
            if code == 0 and asked.sandbox:
                shutil.rmtree(SandboxedStack.of(judged.stack).folder, ignore_errors=True)
    except judging.NoStackError as error:
        progress.fail(str(error))
        return USAGE
    except turns.BusyError as error:
        progress.fail(str(error))
        return turns.BUSY
    except (engines.EngineError, daemon.SandboxError, homes.ForeignHomeError) as error:
        progress.fail(str(error))
        return 1
    except KeyboardInterrupt as interrupted:
        progress.fail(explain.interrupted(interrupted, asked.command))
        return INTERRUPTED
    return code


def _agreed(asked: AskedDown) -> dict[str, str]:
    """The names for the provider, beside those that the environment has."""
    names = ",".join(filter(None, (os.environ.get(foreign.VARIABLE), *asked.foreign)))
    return {foreign.VARIABLE: names} if names else {}


def _others(place: StackPlace, judged: JudgedStack, state: State, progress: Progress) -> str:
    """A sentence on resources of others that would go with the stack; empty for none.

    Where it cannot be asked here, the stack's keeper asks as the engine's provider before anything is deleted.
    """
    kept = next((one for one in state.resources if one.get("type") == "amlstack:stack:Keeper"), None)
    asked = _unkept(state) if kept is None else kept.get("inputs") or {}
    owner = str(asked.get("owner") or "") if kept is None else str((kept.get("outputs") or {}).get("owner") or "")
    places = {name: str(asked[name]) for name in keeper.PLACES if asked.get(name)}
    if not places:
        return ""
    try:
        client = sandbox_arm.SandboxArm(place.endpoint) if place.endpoint else judging.client(judged)
        found = keeper.held(client, places, asked, (owner,))
    except ArmError as error:
        if kept is None:
            return f"whether others have something in the stack's group cannot be asked: {error}"
        progress.note(f"whether others have something in the stack's group is asked at the destruction: {error}")
        return ""
    left = foreign.unnamed(found, place.env.get(foreign.VARIABLE, ""))
    return keeper.refusal(places, left) if left else ""


def _unkept(state: State) -> dict[str, Any]:
    """The inputs of a keeper for a stack that has none, as its state was edited."""
    own = [one for one in state.resources if one.get("id") and not one.get("external")]
    ids = [str((one.get("outputs") or {}).get("jobId") or one["id"]) for one in own]
    asked: dict[str, Any] = {"owned": [each for each in ids if each.startswith("/")]}
    for one in own:
        match str(one.get("type")).split(":")[-1], str(one.get("type")).partition(":")[0]:
            case "ResourceGroup", "azure-native":
                asked["group"] = one["id"]
            case "Workspace", "azure-native" if "/microsoft.machinelearningservices/" in str(one["id"]).lower():
                asked["workspace"] = one["id"]
            case "Record", "amlstack":
                asked["stackId"] = one["id"]
        asked["owner"] = (one.get("outputs") or {}).get("owner") or asked.get("owner")
    return asked


def _destroyed(asked: AskedDown, judged: JudgedStack, place: StackPlace, progress: Progress) -> int:
    state = place.state()
    kept = protected.of(state)
    if kept and not asked.sandbox:
        progress.fail("nothing was destroyed")
        for line in protected.refusal(kept, asked.stack):
            progress.note(line)
        return 1
    if kept:  # a rehearsal of the settings holds nothing that is worth it
        _unprotect(place)
    plan = StackPlan()
    if not any(not str(one["type"]).startswith("pulumi:") for one in state.resources):
        progress.done(f"`{asked.stack}` holds nothing")
        return 0
    looked = _engine(place, progress, "destroy", "--preview-only", phases=("previewing",), plan=plan)
    if looked.code:
        explain.failures(progress, looked)
        return 1
    progress.step(f"`{asked.stack}` on {place.where}: {plan.counts()}")
    for line in plan.lines():
        progress.note(line)
    if others := _others(place, judged, state, progress):
        progress.fail(others)
        return 1
    if left := protected.retained(state):
        progress.note(f"{len(left)} stay in Azure and are forgotten (versions that other stacks may use)")
    if not asked.yes and not consent.given(f"Destroy `{asked.stack}` on {place.where}?"):
        progress.note("nothing was destroyed")
        return 1
    done = _engine(place, progress, "destroy", "--yes", "--skip-preview", phases=("destroying",))
    if done.code:
        explain.failures(progress, done)
        progress.note(f"what is gone is gone; `{asked.command}` goes on from here")
        return 1
    progress.done(f"`{asked.stack}` is destroyed")
    if not asked.sandbox:
        progress.note(f"its settings and its history stay: `pulumi stack rm {asked.stack}` removes them")
        progress.note("a key vault with purge protection keeps its name for its retention: docs/azure.md")
    return 0


def _unprotect(place: StackPlace) -> None:
    words = ["pulumi", "state", "unprotect", "--all", "--yes", "--non-interactive", "--stack", place.stack]
    done = subprocess.run(words, cwd=paths.PROJECT, env=dict(place.env), capture_output=True, text=True, check=False)
    if done.returncode:
        raise engines.EngineError(f"the protection could not be lifted on the sandbox: {done.stderr.strip()}")


def _engine(
    place: StackPlace, progress: Progress, *words: str, phases: tuple[str, ...], plan: StackPlan | None = None
) -> Outcome:
    follow = progress.follow(*phases)

    def taken(event: Mapping[str, Any]) -> None:
        if plan is not None:
            plan.take(event)
        follow(event)

    verb, *others = words
    command = [verb, "--non-interactive", "--stack", place.stack, *place.options, *others]

    def once() -> Outcome:
        return engines.run(command, place.env, on_event=taken, owner=place.owner)

    return turns.under_the_engines_lock(once, place.stack, progress.note)
