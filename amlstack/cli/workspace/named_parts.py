"""What names a workspace: options, ``.azureml/config.json``, variables; each part by the first that names it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.cli.workspace import config_file
from amlstack.provider.arm import ENDPOINT_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.cli.workspace.options import AskedWorkspace

TYPE: Final = "providers/Microsoft.MachineLearningServices/workspaces"
VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "subscription": ("AZUREML_ARM_SUBSCRIPTION", "ARM_SUBSCRIPTION_ID", "AZURE_SUBSCRIPTION_ID"),
    "group": ("AZUREML_ARM_RESOURCEGROUP", "AZURE_DEFAULTS_GROUP"),
    "workspace": ("AZUREML_ARM_WORKSPACE_NAME", "AZURE_DEFAULTS_WORKSPACE"),
}
"""Part → the variables that name it, the first that is set: what Azure ML sets on its own machines, azure-native's, and
the Azure CLI's defaults."""


class NoWorkspaceError(Exception):
    """No workspace is named, or what names it is wrong; the message is for the user."""


def options(asked: AskedWorkspace) -> tuple[tuple[str, str | None], ...]:
    """The options that name a part, each with its value."""
    return (
        ("--workspace", asked.workspace),
        ("--resource-group", asked.group),
        ("--subscription", asked.subscription),
    )


def named(asked: AskedWorkspace) -> tuple[dict[str, str], dict[str, str]]:
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
    for part, (option, value) in zip(("workspace", "group", "subscription"), options(asked), strict=True):
        take(part, value, option)
    if len(values) < len(VARIABLES) and (file := config_file.find(Path.cwd())) is not None:
        try:
            in_file = config_file.read(file)
        except config_file.ConfigFileError as error:
            raise NoWorkspaceError(str(error)) from None
        for part, value in in_file.items():
            take(part, value, _shown(file))
    for part, variables in VARIABLES.items():
        name = next((name for name in variables if os.environ.get(name)), None)
        if name is not None:
            take(part, os.environ[name], name)
    return values, sources


def nothing_names_one(values: Mapping[str, str], sources: Mapping[str, str]) -> bool:
    """Whether no more is known than an account of the environment, which may be meant for something else."""
    return values.keys() <= {"subscription"} and not (
        sources.get("subscription", "").startswith("--") or os.environ.get(ENDPOINT_VARIABLE)
    )


def together(sources: Mapping[str, str]) -> str:
    """What named the parts, each once, for a line."""
    alike: dict[str, list[str]] = {}
    for part in VARIABLES:
        if part in sources:
            alike.setdefault(sources[part], []).append(part)
    return ", ".join(alike)


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def unnamed(values: Mapping[str, str]) -> str:
    """The message where no workspace, or none as a whole, is named."""
    seen = (
        f"`{values['workspace']}` is named, its subscription is not"
        if "workspace" in values
        else "no workspace is named"
    )
    return (
        f"{seen[:1].upper()}{seen[1:]}. Give --stack NAME, or --workspace with --resource-group and --subscription, or "
        f"work in a folder with .azureml/config.json, or set {VARIABLES['workspace'][0]}, {VARIABLES['group'][0]} and "
        f"{VARIABLES['subscription'][0]}. There is no sandbox here either (amlstack sandbox up)."
    )
