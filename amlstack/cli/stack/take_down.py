"""``amlstack down``: what goes with a stack, or with the whole sandbox, is named, asked about and destroyed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack import engine
from amlstack.base import home as home_folder
from amlstack.base import paths
from amlstack.cli import console, sandbox_arm, stack_files
from amlstack.cli.console import Progress, name_of
from amlstack.cli.stack import explain, pulumi_stack
from amlstack.cli.stack.plan import StackPlan
from amlstack.cli.stack.pulumi_stack import PulumiStack, StackFolder
from amlstack.provider.arm import ArmError
from amlstack.provider.stacks import foreign, guard
from amlstack.sandbox.server import daemon
from amlstack.sandbox.store import store

if TYPE_CHECKING:
    from amlstack.cli.stack_files import StackSettings, State

VERB = "amlstack down"


@dataclass(frozen=True, slots=True)
class AskedDown:
    """A person's request for a `down`.

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
        return f"{VERB} --stack {self.stack}{' --sandbox' if self.sandbox else ''}"


def run(asked: AskedDown) -> int:
    """Destroys a stack.

    Returns:
        0 when nothing of it is left, 1 when something is protected or could not be destroyed, or the answer was no, 2
        for wrong use, 3 when another command works on the stack, 130 after Ctrl-C.
    """
    progress = Progress()
    if not asked.yes and not console.on_a_terminal():
        progress.fail("nothing was destroyed: there is no terminal to ask on. `--yes` destroys without a question")
        return explain.USAGE
    try:
        folder = StackFolder.on_sandbox(asked.stack.rpartition("/")[2]).folder
        if asked.sandbox and not folder.is_dir():
            progress.done(f"the sandbox has no stack `{asked.stack}`")
            return 0
        settings = stack_files.read_settings(asked.stack)
        with pulumi_stack.hold(pulumi_stack.lock_file(asked.stack, sandbox=asked.sandbox), asked.stack, VERB):
            stack = pulumi_stack.reach(asked.stack, settings, engine.find(), sandbox=asked.sandbox)
            code = _destroyed(asked, settings, replace(stack, env={**stack.env, **_agreed(asked)}), progress)
            if code == 0 and asked.sandbox:
                shutil.rmtree(folder, ignore_errors=True)
    except explain.FAILURES as error:
        message, code = explain.ending(error, asked.command)
        progress.fail(message)
    return code


def remove_sandbox(*, yes: bool) -> int:
    """Destroys the sandbox's own stack, and removes the sandbox with all that it wrote.

    Returns:
        0 when nothing is left; 1 when the stack could not be destroyed (what the sandbox wrote is removed all the
        same), when the answer was no, or when the folder is none of ours; 3 when another command works on it.
    """
    progress, home = Progress(), paths.home()
    try:
        if not home_folder.is_used(home):
            if home_folder.is_ours(home):
                home_folder.remove(home)
            progress.done("nothing is up")
            return 0
        if not console.losses_confirmed(progress, home, _losses(home), yes=yes):
            return 1
        with contextlib.ExitStack() as held:
            for name in (engine.STACK, *_others(home)):  # the sandbox goes, and with it all stacks that it has
                held.enter_context(pulumi_stack.hold(pulumi_stack.lock_file(name, sandbox=True), name, VERB))
            destroyed = _own_destroyed(progress)
            return 0 if _removed(progress, home) and destroyed else 1
    except explain.UNREACHABLE as error:
        message, code = explain.ending(error, VERB)
        progress.fail(message)
        return code


def _others(home: Path) -> tuple[str, ...]:
    """The stacks that have a folder on the sandbox."""
    folder = home / "stacks"
    return tuple(sorted(path.name for path in folder.iterdir() if path.is_dir())) if folder.is_dir() else ()


def _losses(home: Path) -> Iterator[str]:
    yield from store.find_holdings(home).lines()
    if others := _others(home):
        yield f"the state of {len(others)} stack{'' if len(others) == 1 else 's'} on the sandbox: {', '.join(others)}"
    backend = stack_files.backend_of(engine.STACK, home)
    if more := [name for name in stack_files.state_files(backend) if name != engine.STACK]:
        yield f"the state of {len(more)} more stack{'' if len(more) == 1 else 's'}: {', '.join(more)}"


def _own_destroyed(progress: Progress) -> bool:
    if engine.STACK not in stack_files.state_files(stack_files.backend_of(engine.STACK)):
        return True
    try:
        stack = pulumi_stack.sandbox_stack(engine.find(), daemon.up())
        # With the sandbox everything goes that it holds, and that has been named.
        stack = replace(stack, env={**stack.env, foreign.VARIABLE: "*"})
        follow = progress.follow("previewing", "destroying")
        done = stack.run("destroy", "--yes", on_event=follow, note=progress.note)
    except (engine.EngineError, daemon.SandboxError) as error:
        progress.fail(str(error))
        return False
    if done.code:
        explain.failures(progress, done)
        progress.note("the stack could not be destroyed; what the sandbox wrote is removed all the same")
    return not done.code


def _removed(progress: Progress, home: Path) -> bool:
    engine.end_leftovers()
    try:
        daemon.down()
        left = home_folder.remove(home)
    except (daemon.SandboxError, home_folder.ForeignHomeError, OSError) as error:
        progress.fail(f"not everything could be removed: {error}")
        return False
    progress.done(f"the stack, the sandbox and their files are gone; the caches stay in {paths.cache()}")
    if left:
        progress.note(f"{home} stays with what no sandbox wrote: {', '.join(left)}")
    return True


def _agreed(asked: AskedDown) -> dict[str, str]:
    """The names for the provider, beside those that the environment has."""
    names = ",".join(filter(None, (os.environ.get(foreign.VARIABLE), *asked.foreign)))
    return {foreign.VARIABLE: names} if names else {}


def _foreign(stack: PulumiStack, settings: StackSettings, state: State, progress: Progress) -> str:
    """A sentence on resources of others that would go with the stack; empty for none.

    Where it cannot be asked here, the stack's keeper asks as the engine's provider before anything is deleted.
    """
    kept = next((one for one in state.resources if one.get("type") == "amlstack:stack:Keeper"), None)
    asked = _keeper_inputs(state) if kept is None else kept.get("inputs") or {}
    owner = str(asked.get("owner") or "") if kept is None else str((kept.get("outputs") or {}).get("owner") or "")
    places = {name: str(asked[name]) for name in guard.PLACES if asked.get(name)}
    if not places:
        return ""
    try:
        client = sandbox_arm.SandboxArm(stack.endpoint) if stack.endpoint else stack_files.client_of(settings.config)
        found = guard.held(client, places, asked, (owner,))
    except ArmError as error:
        if kept is None:
            return f"whether others have something in the stack's group cannot be asked: {error}"
        progress.note(f"whether others have something in the stack's group is asked at the destruction: {error}")
        return ""
    left = foreign.unnamed(found, stack.env.get(foreign.VARIABLE, ""))
    return guard.refusal(places, left) if left else ""


def _keeper_inputs(state: State) -> dict[str, Any]:
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


def _planned(asked: AskedDown, stack: PulumiStack, progress: Progress) -> bool:
    """Prints what goes; False where the engine refuses it."""
    plan, follow = StackPlan(), progress.follow("previewing")

    def taken(event: Mapping[str, Any]) -> None:
        plan.take(event)
        follow(event)

    looked = stack.run("destroy", "--preview-only", on_event=taken, note=progress.note)
    if looked.code:
        explain.failures(progress, looked)
        return False
    progress.step(f"`{asked.stack}` on {stack.where}: {plan.counts()}")
    for line in plan.lines():
        progress.note(line)
    return True


def _destroyed(asked: AskedDown, settings: StackSettings, stack: PulumiStack, progress: Progress) -> int:
    state = stack.state()
    protected = state.protected
    if protected and not asked.sandbox:
        progress.fail("nothing was destroyed")
        for line in protection_lines(protected, asked.stack):
            progress.note(line)
        return 1
    if protected:  # a rehearsal of the settings holds nothing that is worth it
        stack.unprotect()
    if not any(not str(one["type"]).startswith("pulumi:") for one in state.resources):
        progress.done(f"`{asked.stack}` holds nothing")
        return 0
    if not _planned(asked, stack, progress):
        return 1
    if others := _foreign(stack, settings, state, progress):
        progress.fail(others)
        return 1
    if left := state.retained:
        progress.note(f"{len(left)} stay in Azure and are forgotten (versions that other stacks may use)")
    if not asked.yes and not console.confirmed(f"Destroy `{asked.stack}` on {stack.where}?"):
        progress.note("nothing was destroyed")
        return 1
    follow = progress.follow("destroying")
    done = stack.run("destroy", "--yes", "--skip-preview", on_event=follow, note=progress.note)
    if done.code:
        explain.failures(progress, done)
        progress.note(f"what is gone is gone; `{asked.command}` goes on from here")
        return 1
    progress.done(f"`{asked.stack}` is destroyed")
    if not asked.sandbox:
        progress.note(f"its settings and its history stay: `pulumi stack rm {asked.stack}` removes them")
        progress.note("a key vault with purge protection keeps its name for its retention: docs/how-to/azure.md")
    return 0


def protection_lines(urns: tuple[str, ...], stack: str) -> Iterator[str]:
    """The resources that are protected from deletion, and the ways to lift that.

    Args:
        urns: The resources.
        stack: The stack, as it was asked for.
    """
    yield f"{len(urns)} resource{' is' if len(urns) == 1 else 's are'} protected from deletion:"
    yield from (f"  {name_of(urn)}" for urn in urns)
    yield (
        f"all of them: `pulumi config set amlstack:protect false --stack {stack}`, `amlstack up --stack {stack}`, and "
        "this again"
    )
    yield (
        f"one of them: `pulumi state unprotect --stack {stack} 'URN'`; "
        f"`pulumi stack --stack {stack} --show-urns` lists URNs"
    )
