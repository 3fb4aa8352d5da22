"""The workspace that is meant: that of a stack, of options, of ``.azureml/config.json``, of variables, or a sandbox's.

The first of these that names one counts, and one line says which it was. Settings and variables for signing in are
those of the providers (`amlstack.provider.arm.sign_in`), and so is the client.

The parts of a workspace's id may be named apart; the first that names a part counts. The file is that of azure-ai-ml
and the Azure ML CLI v1. It is looked for as azure-ai-ml 1.35 does (``MLClient.from_config``): in each of three places
below a folder, for two names, from the working folder upwards, 20 folders in all; the first place and name that is
found anywhere counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from amlstack.base import paths
from amlstack.base.text import did_you_mean
from amlstack.cli import stack_files
from amlstack.cli.logs.follower import is_local
from amlstack.provider.arm import ENDPOINT_VARIABLE, PUBLIC_ENDPOINT, ArmClient

if TYPE_CHECKING:
    from amlstack.cli.workspace.options import AskedWorkspace
    from amlstack.sandbox.server.daemon import Endpoint

REHEARSAL: Final = "rehearsal"
"""The workspace, and its group, in which the sandbox rehearses jobs."""
FOLDERS: Final = (".azureml", "aml_config", "")
NAMES: Final = ("config.json", "project.json")
LEVELS: Final = 20
_KEYS: Final = {"subscription": "subscription_id", "group": "resource_group", "workspace": "workspace_name"}
_PARTS: Final = {"subscription": "subscriptions", "group": "resourcegroups", "workspace": "workspaces"}
_LARGEST: Final = 1 << 20


class NoWorkspaceError(Exception):
    """No workspace is named, or what names it is wrong; the message is for the user."""


def config_file(start: Path) -> Path | None:
    """The file that counts for a folder; None where there is none.

    A ``config.json`` or ``project.json`` outside of the two folders is anybody's: one that names no workspace is none.
    """
    folders = [start, *start.parents][:LEVELS]
    for below, name in product(FOLDERS, NAMES):
        for folder in folders:
            file = folder / below / name
            if file.is_file() and (below or _reads_like_one(file)):
                return file
    return None


def read_config_file(file: Path) -> dict[str, str]:
    """The names that a file gives: ``subscription``, ``group``, ``workspace``.

    Raises:
        NoWorkspaceError: It is no JSON object, or lacks one of the three.
    """
    found = _content(file)
    if found is None:
        raise NoWorkspaceError(f"{file} must be a JSON object with {', '.join(_KEYS.values())}.")
    if isinstance(scope := found.get("Scope"), str):
        words = [word for word in scope.split("/") if word]
        named = {words[index].lower(): words[index + 1] for index in range(0, len(words) - 1, 2)}
        values: dict[str, object] = {part: named.get(word, "") for part, word in _PARTS.items()}
    else:
        values = {part: found.get(key, "") for part, key in _KEYS.items()}
    for part, value in values.items():
        if not isinstance(value, str) or not value.strip():
            seen = f"got {json.dumps(value)}" if value else "it is missing"
            raise NoWorkspaceError(
                f"{file}: `{_KEYS[part]}` must be a text, {seen}. The file names a workspace by "
                f"{', '.join(_KEYS.values())}. Write all three (the studio's menu downloads the file), or name the "
                "workspace with --workspace."
            )
    return {part: str(value).strip() for part, value in values.items()}


def _reads_like_one(file: Path) -> bool:
    found = _content(file)
    return found is not None and ("Scope" in found or _KEYS["workspace"] in found)


def _content(file: Path) -> dict[str, object] | None:
    try:
        with file.open("rb") as stream:
            found = json.loads(stream.read(_LARGEST).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


TYPE: Final = "providers/Microsoft.MachineLearningServices/workspaces"
VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "subscription": ("AZUREML_ARM_SUBSCRIPTION", "ARM_SUBSCRIPTION_ID", "AZURE_SUBSCRIPTION_ID"),
    "group": ("AZUREML_ARM_RESOURCEGROUP", "AZURE_DEFAULTS_GROUP"),
    "workspace": ("AZUREML_ARM_WORKSPACE_NAME", "AZURE_DEFAULTS_WORKSPACE"),
}
"""Part → the variables that name it, the first that is set: what Azure ML sets on its own machines, azure-native's, and
the Azure CLI's defaults."""


OPTIONS: Final = {"workspace": "--workspace", "group": "--resource-group", "subscription": "--subscription"}
"""Part → the option that names it."""


def named_parts(asked: AskedWorkspace) -> tuple[dict[str, str], dict[str, str]]:
    """The parts that are named, each by the first that names it, and by what."""
    values: dict[str, str] = {}
    sources: dict[str, str] = {}

    def take(part: str, value: str | None, source: str) -> None:
        if value and part not in values:
            values[part], sources[part] = value.strip(), source

    workspace = asked.workspace or ""
    if workspace.startswith("/"):
        words = workspace.strip("/").split("/")
        if len(words) != 8 or words[6].casefold() != "workspaces":
            raise NoWorkspaceError(
                f"--workspace must be a name or an ARM id, got `{workspace}`. The id is "
                f"/subscriptions/ID/resourceGroups/GROUP/{TYPE}/NAME."
            )
        for part, index in (("subscription", 1), ("group", 3), ("workspace", 7)):
            take(part, words[index], "--workspace")
    for part, option in OPTIONS.items():
        take(part, getattr(asked, part), option)
    if len(values) < len(VARIABLES) and (file := config_file(Path.cwd())) is not None:
        shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
        for part, value in read_config_file(file).items():
            take(part, value, str(shown))
    for part, variables in VARIABLES.items():
        name = next((name for name in variables if os.environ.get(name)), None)
        if name is not None:
            take(part, os.environ[name], name)
    return values, sources


def nothing_names_one(values: Mapping[str, str], sources: Mapping[str, str]) -> bool:
    """True where only an account of the environment is known, which may be meant for something else."""
    return values.keys() <= {"subscription"} and not (
        sources.get("subscription", "").startswith("--") or os.environ.get(ENDPOINT_VARIABLE)
    )


def unnamed(values: Mapping[str, str]) -> str:
    """The message where no workspace, or none as a whole, is named."""
    named = f"`{values['workspace']}` is named, its subscription is not" if "workspace" in values else ""
    return (
        f"{named or 'No workspace is named'}. Give --stack NAME, or --workspace with --resource-group and "
        "--subscription, or work in a folder with .azureml/config.json, or set "
        f"{VARIABLES['workspace'][0]}, {VARIABLES['group'][0]} and {VARIABLES['subscription'][0]}. There is no sandbox "
        "here either (amlstack sandbox up)."
    )


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
    """

    arm: ArmClient
    workspaces: tuple[str, ...]
    source: str
    stack: str | None = None

    @property
    def workspace(self) -> str:
        """The ARM id of the one workspace.

        Raises:
            NoWorkspaceError: Several may be meant.
        """
        # A rehearsal's workspace is its own: nobody who has another one means it.
        meant = [each for each in self.workspaces if _name(each) != REHEARSAL] or list(self.workspaces)
        if len(meant) == 1:
            return meant[0]
        names = ", ".join(_name(each) for each in meant[:_SHOWN])
        raise NoWorkspaceError(f"{len(meant)} workspaces may be meant: {names}. Name one with --workspace.")

    @property
    def is_local(self) -> bool:
        """True where it is a service on this machine, as the sandbox is."""
        return is_local(self.arm.endpoint)

    @property
    def line(self) -> str:
        """The line that a person should see before anything else."""
        host = "" if self.arm.endpoint == PUBLIC_ENDPOINT else f" at {urlsplit(self.arm.endpoint).netloc}"
        at = f" on the sandbox at {self.arm.endpoint}" if self.is_local else host
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
        if given := [option for part, option in OPTIONS.items() if getattr(asked, part)]:
            raise NoWorkspaceError(f"--stack names the workspace: leave {' and '.join(given)} out, or --stack.")
        return _of_stack(asked.stack, announce, sandbox=asked.sandbox)
    values, sources = named_parts(asked)
    if asked.sandbox:
        # Of the user's own account nothing counts there.
        values = {part: value for part, value in values.items() if sources[part].startswith("--")}
    local = _sandbox_of_home() if asked.sandbox or nothing_names_one(values, sources) else None
    if local is not None:
        return _on_the_sandbox(local, values)
    if asked.sandbox:
        raise NoWorkspaceError("There is no sandbox here (amlstack sandbox up).")
    arm = stack_files.client_of({}, announce)
    source = f"named by {', '.join(dict.fromkeys(sources[part] for part in VARIABLES if part in sources))}"
    if "subscription" not in values:
        raise NoWorkspaceError(unnamed(values))
    if values.keys() >= {"group", "workspace"}:
        return WorkspacePlace(arm, (_id(**values),), source)
    found = tuple(_fitting(arm, values))
    if not found and (values.keys() - {"subscription"} or not is_local(arm.endpoint)):
        raise NoWorkspaceError(_none_fits(values, names_in(arm, values["subscription"])))
    place = WorkspacePlace(arm, found, source)
    if not place.is_local:
        _ = place.workspace  # on Azure a job is not looked for in somebody else's workspaces
    return place


def settings_file(stack: str) -> Path:
    """The settings of a stack: in the working folder, else in the project's root.

    Raises:
        NoStackError: There is no such stack; near misses are in the message.
    """
    here = Path.cwd() / f"Pulumi.{stack.rpartition('/')[2]}.yaml"
    return here if here.is_file() else stack_files.settings_file(stack)


def is_named(asked: AskedWorkspace) -> bool:
    """True where anything but this home's sandbox names a workspace.

    Raises:
        NoWorkspaceError: What names it is wrong.
    """
    return asked.stack is not None or asked.sandbox or not nothing_names_one(*named_parts(asked))


def names_in(arm: ArmClient, subscription: str) -> tuple[str, ...]:
    """Names of the workspaces of a subscription that the caller may see.

    Raises:
        ArmError: They cannot be listed.
    """
    return tuple(_name(each) for each in _fitting(arm, {"subscription": subscription}))


def _of_stack(stack: str, announce: Callable[[str], None], *, sandbox: bool) -> WorkspacePlace:
    from amlstack.base import yamltext
    from amlstack.cli.sandbox_arm import connect
    from amlstack.engine import STACK
    from infra.names import Names, resolve_account

    try:
        file = settings_file(stack)
        text = yamltext.parse(file.read_bytes(), file.name, room=_ROOM)
    except (stack_files.NoStackError, OSError) as error:
        raise NoWorkspaceError(str(error)) from None
    for wrong in text.findings:
        raise NoWorkspaceError(f"{file.name} cannot be read: {wrong.seen}")
    whole = text.data.get("config") if isinstance(text.data, dict) else None
    config = stack_files.engine_config(whole) if isinstance(whole, dict) else {}
    settings = {
        str(key).partition(":")[2].removeprefix("config:"): value
        for key, value in (whole or {}).items()
        if str(key).startswith("amlstack:")
    }
    name, workspace = stack.rpartition("/")[2], ""
    local = _started() if sandbox or name == STACK else None
    if local is not None:
        subscription = local.subscription
        outputs = stack_files.read_state(stack_files.backend_of(name, local.home), name).outputs() or {}
        workspace = str((outputs.get("workspace") or {}).get("id") or "")
    else:
        account, unknown = resolve_account(config, os.environ)
        for finding in unknown:
            if finding.where.endswith("subscriptionId"):
                raise NoWorkspaceError(f"{file.name}: {finding.message}")
        subscription = account.subscription
    names = Names.of_workspace(settings, project=stack_files.project_name(), stack=name, subscription=subscription)
    if not workspace and names is None:
        raise NoWorkspaceError(f"{file.name} names no workspace: write `amlstack:workspace: NAME`.")
    workspaces, source = (workspace or names.workspace_id,), f"that of the stack `{stack}`"  # type: ignore[union-attr]
    arm = stack_files.client_of(config, announce) if local is None else connect(local)
    return WorkspacePlace(arm, workspaces, source, stack)


def _sandbox_of_home() -> Endpoint | None:
    """This home's sandbox, started where it is down; None where nobody made one."""
    from amlstack.sandbox.store.folders import folder

    return _started() if (folder(paths.home()) / "state.db").exists() else None


def _started() -> Endpoint:
    from amlstack.sandbox.server import daemon

    try:
        return daemon.up()
    except daemon.SandboxError as error:
        raise NoWorkspaceError(str(error)) from None


def _on_the_sandbox(local: Endpoint, values: Mapping[str, str]) -> WorkspacePlace:
    from amlstack.cli.sandbox_arm import connect

    arm = connect(local)
    found = tuple(_fitting(arm, {**values, "subscription": local.subscription}))
    if not found and values:
        raise NoWorkspaceError(_none_fits(values, names_in(arm, local.subscription)))
    return WorkspacePlace(arm, found, "named by nothing else, and there is a sandbox here")


def _fitting(arm: ArmClient, values: Mapping[str, str]) -> Iterator[str]:
    """ARM ids of the workspaces of a subscription that fit what else is named."""
    for row in arm.rows(f"/subscriptions/{values['subscription']}/{TYPE}"):
        workspace = str(row.get("id") or "")
        words = workspace.split("/")
        group, name = (words[4], words[-1]) if len(words) > 8 else ("", "")
        if all(
            values.get(part, each).casefold() == each.casefold()
            for part, each in (("group", group), ("workspace", name))
        ):
            yield workspace


def _id(subscription: str, group: str, workspace: str) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/{group}/{TYPE}/{workspace}"


def _name(workspace: str) -> str:
    return workspace.rpartition("/")[2]


def _none_fits(values: Mapping[str, str], known: tuple[str, ...]) -> str:
    words = [f"{part} `{values[part]}`" for part in ("workspace", "group") if part in values]
    subscription = f"the subscription {values['subscription']}" if "subscription" in values else "the sandbox"
    named = f" fits {' and '.join(words)}" if words else " is there that you may see"
    near = did_you_mean(values["workspace"], known) if "workspace" in values else ""
    return f"No workspace{named} in {subscription}. {near}".rstrip()
