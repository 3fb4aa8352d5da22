"""The workspace that is meant: that of a stack, of options, of ``.azureml/config.json``, of variables, or a sandbox's.

The first of these that names one counts, and one line says which it was. Settings and variables for signing in are
those of the providers (`amlstack.provider.arm.credentials`), and so is the client.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from amlstack.base import paths
from amlstack.base.text import did_you_mean
from amlstack.cli.logs.follower import is_local
from amlstack.cli.workspace import named_parts
from amlstack.cli.workspace.named_parts import NoWorkspaceError
from amlstack.provider.arm import ArmClient, SignIn, endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from amlstack.cli.workspace.options import AskedWorkspace
    from amlstack.sandbox.server.endpoint import Endpoint

_MOST_PAGES: Final = 200
_SHOWN: Final = 12
_ROOM: Final = 10
"""As `infra.settings.stackfile` has it, whose package takes long to load: how many times a job file settings may be."""


@dataclass(frozen=True, slots=True)
class WorkspacePlace:
    """The place of jobs: a workspace.

    Attributes:
        arm: Signed in to its resource manager.
        workspaces: ARM ids: one, or on a sandbox, where none is named, all.
        source: What named it, for a line.
        stack: The stack that was named; None for none.
        tenant: The directory in which to sign in, where one is named.
    """

    arm: ArmClient
    workspaces: tuple[str, ...]
    source: str
    stack: str | None = None
    tenant: str = ""

    @property
    def workspace(self) -> str:
        """The ARM id of the one workspace.

        Raises:
            NoWorkspaceError: Several may be meant.
        """
        if len(self.workspaces) == 1:
            return self.workspaces[0]
        names = ", ".join(_name(each) for each in self.workspaces[:_SHOWN])
        raise NoWorkspaceError(f"{len(self.workspaces)} workspaces may be meant: {names}. Name one with --workspace.")

    @property
    def is_local(self) -> bool:
        """True where it is a service on this machine, as the sandbox is."""
        return is_local(self.arm.endpoint)

    @property
    def line(self) -> str:
        """The line that a person should see before anything else."""
        at = f" on the sandbox at {self.arm.endpoint}" if self.is_local else _elsewhere(self.arm.endpoint)
        if len(self.workspaces) != 1:
            names = ", ".join(_name(each) for each in self.workspaces[:_SHOWN])
            return f"workspaces {names}{at}: {self.source}" if names else f"no workspace yet{at}: {self.source}"
        _, _, subscription, _, group, *_, name = self.workspaces[0].split("/")
        return f"workspace {name} (resource group {group}, subscription {subscription}){at}: {self.source}"


def find(asked: AskedWorkspace, announce: Callable[[str], None]) -> WorkspacePlace:
    """The workspace that is meant. Asks the service only where a part of its id is not named.

    Args:
        asked: The options that name it.
        announce: Takes the messages of requests that wait.

    Raises:
        NoWorkspaceError: None is named, or what names it is wrong.
        ArmError: The service was asked, and did not answer.
    """
    if asked.stack is not None:
        if given := [option for option, value in named_parts.options(asked) if value]:
            raise NoWorkspaceError(f"--stack names the workspace: leave {' and '.join(given)} out, or --stack.")
        return _of_stack(asked.stack, announce, sandbox=asked.sandbox)
    values, sources = named_parts.named(asked)
    if asked.sandbox:
        # Of the user's own account nothing counts there.
        values = {part: value for part, value in values.items() if sources[part].startswith("--")}
    local = _sandbox_of_home() if asked.sandbox or named_parts.nothing_names_one(values, sources) else None
    if local is not None:
        return _on_the_sandbox(local, values)
    if asked.sandbox:
        raise NoWorkspaceError("There is no sandbox here (amlstack sandbox up).")
    sign_in = SignIn.read({})
    arm = ArmClient(endpoint(None, sign_in.cloud), sign_in=sign_in, announce=announce)
    source = f"named by {named_parts.together(sources)}"
    if "subscription" not in values:
        raise NoWorkspaceError(named_parts.unnamed(values))
    if values.keys() >= {"group", "workspace"}:
        return WorkspacePlace(arm, (_id(**values),), source, tenant=sign_in.values.get("tenantId", ""))
    found = tuple(_fitting(arm, values))
    if not found and (values.keys() - {"subscription"} or not is_local(arm.endpoint)):
        raise NoWorkspaceError(_none_fits(values, names_in(arm, values["subscription"])))
    place = WorkspacePlace(arm, found, source, tenant=sign_in.values.get("tenantId", ""))
    if not is_local(arm.endpoint):
        _ = place.workspace  # on Azure a job is not looked for in somebody else's workspaces
    return place


def settings_file(stack: str) -> Path:
    """The settings of a stack: in the working folder, else in the project's root.

    Raises:
        NoStackError: There is no such stack; near misses are in the message.
    """
    from amlstack.cli import stack_settings

    here = Path.cwd() / f"Pulumi.{stack.rpartition('/')[2]}.yaml"
    return here if here.is_file() else stack_settings.settings_file(stack)


def is_named(asked: AskedWorkspace) -> bool:
    """True where anything but this home's sandbox names a workspace.

    Raises:
        NoWorkspaceError: What names it is wrong.
    """
    return asked.stack is not None or asked.sandbox or not named_parts.nothing_names_one(*named_parts.named(asked))


def names_in(arm: ArmClient, subscription: str) -> tuple[str, ...]:
    """Names of the workspaces of a subscription that the caller may see.

    Raises:
        ArmError: They cannot be listed.
    """
    return tuple(_name(each) for each in _fitting(arm, {"subscription": subscription}))


def _of_stack(stack: str, announce: Callable[[str], None], *, sandbox: bool) -> WorkspacePlace:
    from amlstack.base import yamltext
    from amlstack.cli import stack_settings
    from infra.account import resolve
    from infra.names import Names

    try:
        file = settings_file(stack)
        text = yamltext.parse(file.read_bytes(), file.name, room=_ROOM)
    except (stack_settings.NoStackError, OSError) as error:
        raise NoWorkspaceError(str(error)) from None
    for wrong in text.findings:
        raise NoWorkspaceError(f"{file.name} cannot be read: {wrong.seen}")
    whole = text.data.get("config") if isinstance(text.data, dict) else None
    config = stack_settings.engine_config(whole) if isinstance(whole, dict) else {}
    settings = {
        str(key).partition(":")[2].removeprefix("config:"): value
        for key, value in (whole or {}).items()
        if str(key).startswith("amlstack:")
    }
    name, source = stack.rpartition("/")[2], f"that of the stack `{stack}`"
    where = {"project": stack_settings.project_name(), "stack": name}
    if sandbox or name == _sandbox_stack():
        local = _started()
        names = Names.of_workspace(settings, subscription=local.subscription, **where)
        recorded = _recorded(name, local)
        if names is None and not recorded:
            raise NoWorkspaceError(f"{file.name} names no workspace: write `amlstack:workspace: NAME`.")
        return _signed_in(local, (recorded or names.workspace_id,), source, stack)  # type: ignore[union-attr]
    account, unknown = resolve(config, os.environ)
    for finding in unknown:
        if finding.where.endswith("subscriptionId"):
            raise NoWorkspaceError(f"{file.name}: {finding.message}")
    names = Names.of_workspace(settings, subscription=account.subscription, **where)
    if names is None:
        raise NoWorkspaceError(f"{file.name} names no workspace: write `amlstack:workspace: NAME`.")
    own = {key.partition(":")[2]: value for key, value in config.items() if key.startswith("azure-native:")}
    sign_in = SignIn.read(own)
    chosen = endpoint(config.get("amlstack:armEndpoint") or None, sign_in.cloud)
    arm = ArmClient(chosen, sign_in=sign_in, announce=announce)
    return WorkspacePlace(arm, (names.workspace_id,), source, stack, sign_in.values.get("tenantId", ""))


def _sandbox_stack() -> str:
    from amlstack.engine import STACK

    return STACK


def _recorded(stack: str, local: Endpoint) -> str:
    """The workspace that a stack's state on the sandbox names; empty where it names none."""
    from amlstack.cli import stack_state

    outputs = stack_state.read(stack_state.backend_of(stack, local.home), stack).outputs()
    return str(((outputs or {}).get("workspace") or {}).get("id") or "")


def _sandbox_of_home() -> Endpoint | None:
    """This home's sandbox, started where it is down; None where nobody made one."""
    from amlstack.sandbox.store.places import folder

    return _started() if (folder(paths.home()) / "state.db").exists() else None


def _started() -> Endpoint:
    from amlstack.sandbox.server import daemon

    try:
        return daemon.up()
    except daemon.SandboxError as error:
        raise NoWorkspaceError(str(error)) from None


def _signed_in(local: Endpoint, workspaces: tuple[str, ...], source: str, stack: str | None = None) -> WorkspacePlace:
    from amlstack.cli.sandbox_arm import connect

    return WorkspacePlace(connect(local), workspaces, source, stack, local.tenant)


def _on_the_sandbox(local: Endpoint, values: Mapping[str, str]) -> WorkspacePlace:
    place = _signed_in(local, (), "named by nothing else, and there is a sandbox here")
    found = tuple(_fitting(place.arm, {**values, "subscription": local.subscription}))
    if not found and values:
        raise NoWorkspaceError(_none_fits(values, names_in(place.arm, local.subscription)))
    return _signed_in(local, found, place.source)


def _fitting(arm: ArmClient, values: Mapping[str, str]) -> Iterator[str]:
    """ARM ids of the workspaces of a subscription that fit what else is named."""
    answer = arm.get(f"/subscriptions/{values['subscription']}/{named_parts.TYPE}")
    for _ in range(_MOST_PAGES):
        for row in answer.body.get("value") or ():
            workspace = str(row.get("id") or "")
            words = workspace.split("/")
            group, name = (words[4], words[-1]) if len(words) > 8 else ("", "")
            if all(
                values.get(part, each).casefold() == each.casefold()
                for part, each in (("group", group), ("workspace", name))
            ):
                yield workspace
        if not answer.body.get("nextLink"):
            return
        answer = arm.request("GET", str(answer.body["nextLink"]), None)


def _id(subscription: str, group: str, workspace: str) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/{group}/{named_parts.TYPE}/{workspace}"


def _name(workspace: str) -> str:
    return workspace.rpartition("/")[2]


def _elsewhere(arm_endpoint: str) -> str:
    from amlstack.provider.arm import PUBLIC_ENDPOINT

    return "" if arm_endpoint == PUBLIC_ENDPOINT else f" at {urlsplit(arm_endpoint).netloc}"


def _none_fits(values: Mapping[str, str], known: tuple[str, ...]) -> str:
    words = [f"{part} `{values[part]}`" for part in ("workspace", "group") if part in values]
    subscription = f"the subscription {values['subscription']}" if "subscription" in values else "the sandbox"
    named = f" fits {' and '.join(words)}" if words else " is there that you may see"
    near = did_you_mean(values.get("workspace", ""), known) if "workspace" in values else ""
    return f"No workspace{named} in {subscription}. {near}".rstrip()
