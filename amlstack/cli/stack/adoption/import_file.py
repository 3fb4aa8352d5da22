"""The engine's import file: each resource under the name and parent that the stack's program gives it."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from infra.components import tokens
from infra.components.workspace.existing import PROVIDER
from infra.names import OWN_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.cli.stack.adoption.estate import Estate
    from infra.names import Names, Part

_PARTS: Final[Mapping[Part, tuple[str, str]]] = {
    "storage": (tokens.STORAGE_ACCOUNT, "storage"),
    "key_vault": (tokens.KEY_VAULT, "key-vault"),
    "registry": (tokens.REGISTRY, "registry"),
    "logs": (tokens.LOGS, "logs"),
    "insights": (tokens.INSIGHTS, "insights"),
}
"""Part → type and name in the stack."""
_WORKSPACE, _CLUSTERS, _SCHEDULES = "in the workspace", "in the clusters", "in the schedules"

_PROVIDER = "of the workspace"


def provider_urn(stack: str, project: str) -> str:
    """URN of the provider that a stack has for a workspace in another subscription."""
    return f"urn:pulumi:{stack}::{project}::pulumi:providers:azure-native::{PROVIDER}"


class ImportFile:
    """Resources to import, in an order in which parents come first.

    Args:
        provider: URN of the azure-native provider that they are registered with, which the state has already; the
            default one without it.
    """

    def __init__(self, provider: str | None = None) -> None:
        self._provider = provider
        self._resources: list[dict[str, Any]] = []

    @property
    def content(self) -> dict[str, Any]:
        """As ``pulumi import --file`` reads it."""
        named = {"nameTable": {_PROVIDER: self._provider}} if self._provider else {}
        return {**named, "resources": self._resources}

    @property
    def ids(self) -> list[str]:
        """Ids of what is imported."""
        return [str(one["id"]) for one in self._resources if "id" in one]

    def workspace(self, estate: Estate, names: Names, name: str, *, owns_group: bool = True) -> None:
        """Group, parts and workspace, as far as they are there and the stack's own.

        Args:
            estate: What there is.
            names: As the settings give them.
            name: The workspace's, which is that of its parent in the stack.
            owns_group: The settings do not say of the group that it exists for others too.
        """
        if estate.group is None:
            return
        self._parent(tokens.WORKSPACE_PARENT, name, _WORKSPACE)
        if owns_group:
            self._add(tokens.RESOURCE_GROUP, "group", str(estate.group["id"]), _WORKSPACE)
        if estate.workspace is None:
            return
        for part in OWN_SETTINGS:
            given = part in names.elsewhere or (part == "logs" and "insights" in names.elsewhere)
            if (part_id := estate.parts.get(part)) and not given:
                self._add(*_PARTS[part], part_id, _WORKSPACE)
        self._add(tokens.WORKSPACE, "workspace", str(estate.workspace["id"]), _WORKSPACE)

    def clusters(self, ids: Mapping[str, str]) -> None:
        """Clusters, ids by name."""
        self._children(tokens.CLUSTERS, _CLUSTERS, tokens.COMPUTE, ids)

    def schedules(self, ids: Mapping[str, str]) -> None:
        """Schedules, ids by name."""
        self._children(tokens.SCHEDULES, _SCHEDULES, tokens.SCHEDULE, ids)

    def _children(self, parent: str, key: str, token: str, ids: Mapping[str, str]) -> None:
        if ids:
            self._parent(parent, parent.rsplit(":", 1)[-1].lower(), key)
        for name, resource_id in ids.items():
            self._add(token, name, resource_id, key)

    def _parent(self, token: str, name: str, key: str) -> None:
        self._resources.append({"type": token, "name": key, "logicalName": name, "component": True})

    def _add(self, token: str, name: str, resource_id: str, parent: str) -> None:
        # Names in the file are the file's own: a cluster may be called like a part.
        entry = {"type": token, "name": f"{token} {name}", "logicalName": name, "id": resource_id, "parent": parent}
        if token.startswith("azure-native:") and self._provider:
            entry["provider"] = _PROVIDER
        elif token.startswith("azure-native:"):
            entry["version"] = metadata.version("pulumi-azure-native")
        self._resources.append(entry)
