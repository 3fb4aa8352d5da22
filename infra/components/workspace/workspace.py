"""The Azure ML workspace, and in which order what it stands on comes before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra.components import azure_native, tokens
from infra.components.order import after, behind
from infra.components.workspace.group import resource_group
from infra.components.workspace.monitoring import insights, logs
from infra.components.workspace.place import Place
from infra.components.workspace.registry import registry
from infra.components.workspace.storage import storage
from infra.components.workspace.vault import key_vault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra import settings as declared
    from infra.account import Account
    from infra.names import Names


class StackWorkspace(pulumi.ComponentResource):
    """Resource group, storage, key vault, logs, application insights, registry and the workspace on top of them.

    Entra ID is the only way in: the storage account has no shared keys, the registry no admin, the vault no access
    policies.

    Attributes:
        group: The resource group.
        names: The stack's names, in the group that it has.
        group_name: Its name, which depends on it.
        name: The workspace's name as what is in the workspace needs it: known at preview, and behind the workspace.
        workspace_id: Its ARM id likewise.
        whole: The same id, behind everything that the workspace stands on.
        everything: The workspace, as an entry of ``depends_on``.
    """

    def __init__(
        self,
        spec: declared.Workspace,
        names: Names,
        *,
        location: str,
        tags: Mapping[str, str],
        keeps_group: bool,
        protect: bool,
    ) -> None:
        """Declare the resource group; `fill` declares what is in it.

        Args:
            spec: The workspace's settings.
            names: The names of a new stack.
            location: Azure region.
            tags: Tags of every resource.
            keeps_group: A group that the stack has keeps its name, whatever ``names`` has.
            protect: The engine refuses to delete what holds data.
        """
        super().__init__("amlstack:infra:Workspace", spec.name)
        self._spec, self._tags, self._location = spec, dict(tags), location
        self._guarded = pulumi.ResourceOptions(parent=self, protect=protect)
        self.group = resource_group(
            names, location=location, tags=tags, keeps_name=keeps_group, protect=protect, opts=self._guarded
        )

    def fill(self, names: Names, account: Account) -> None:
        """Declare everything in the group.

        Args:
            names: The stack's names, in the group that it has.
            account: Subscription and tenant.
        """
        self.names = names
        # Known at preview, and the engine knows where it comes from: it deletes the group last.
        self.group_name = behind(names.group, self.group)
        # The names are taken until the old resource is gone.
        fixed = pulumi.ResourceOptions(parent=self, depends_on=[self.group], delete_before_replace=True)
        place = Place(
            self._spec,
            names,
            self.group_name,
            self._location,
            self._tags,
            account.tenant,
            "Enabled" if self._spec.public_network else "Disabled",
            # What holds data: the engine refuses to delete it until somebody takes the protection off.
            pulumi.ResourceOptions.merge(fixed, self._guarded),
        )
        self.storage, self.registry = storage(place), registry(place)
        vault, self.logs = key_vault(place), logs(place)
        parts = [self.storage, vault, insights(place, self.logs), self.registry]
        self.workspace = _workspace(place, parts)
        # Name and id as what is in the workspace needs them, and the id as what lives on all of it does.
        self.name = behind(names.workspace, self.workspace)
        self.workspace_id = behind(names.workspace_id, self.workspace)
        self.whole = behind(names.workspace_id, self.group, self.logs, *parts, self.workspace)
        # The workspace comes after all of it.
        self.everything = after(self.workspace)
        self.register_outputs({"id": names.workspace_id})


def _workspace(place: Place, parts: list[pulumi.Resource]) -> pulumi.CustomResource:
    spec, names = place.spec, place.names
    properties = {
        "workspaceName": names.workspace,
        **place.common,
        "friendlyName": spec.display_name or spec.name,
        "description": spec.description,
        "identity": {"type": "SystemAssigned"},
        "storageAccount": names.id("storage"),
        "keyVault": names.id("key_vault"),
        "applicationInsights": names.id("insights"),
        "containerRegistry": names.id("registry"),
        "systemDatastoresAuthMode": "Identity",
        "publicNetworkAccess": place.public,
    }
    opts = pulumi.ResourceOptions.merge(place.opts, pulumi.ResourceOptions(depends_on=parts))
    return azure_native.register(tokens.WORKSPACE, "workspace", properties, opts)
