"""The Azure ML workspace, and in which order what it stands on comes before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pulumi

from infra import resource_types, roles, security
from infra.components import registration
from infra.components.registration import after, behind
from infra.components.workspace.network import FOUND_LATER, WorkspaceNetwork
from infra.components.workspace.parts import (
    ALL,
    PartContext,
    register_group,
    register_insights,
    register_key_vault,
    register_logs,
    register_registry,
    register_soft_delete,
    register_storage,
)
from infra.components.workspace.security import (
    NAME,
    NOTES,
    let_approve,
    register_diagnostics,
    register_encryption,
    register_identity,
)
from infra.properties import WORKSPACE_REPLACED_BY, workspace_left_alone, workspace_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from infra.components.workspace.security import Primary
    from infra.names import Account, Names, Part
    from infra.network.plan import NetworkPlan
    from infra.settings import Settings


class StackWorkspace(pulumi.ComponentResource):
    """Resource group, storage, key vault, logs, application insights, registry and the workspace on top of them.

    A part that is given by its id is none of the stack's resources.

    Entra ID is the only way in: the storage account has no shared keys, the registry no admin, the vault no access
    policies.

    Attributes:
        group: The resource group; None for one that exists, which is none of the stack's resources.
        names: The stack's names, in the group that it has.
        group_name: Its name, which depends on it.
        name: The workspace's name as what is in the workspace needs it: known at preview, and behind the workspace.
        workspace_id: Its ARM id likewise.
        group_id: ARM id of the resource group, behind it.
        settled_id: The workspace's id, behind everything that the workspace stands on.
        reached_by: The identity and the network that runs reach their data by, as far as the stack makes them.
        everything: The workspace and its network, as an entry of ``depends_on``.
        compute_subnet: ARM id of the subnet of clusters without one of their own.
        security: What its settings about security come to.
        cluster_roles: What the identity of a cluster gets.
        provider: None: all of it lies in the stack's own subscription.
    """

    provider: pulumi.ProviderResource | None = None
    compute_subnet: pulumi.Output[str] | None = None

    def __init__(self, settings: Settings, names: Names, stack: str) -> None:
        """Declare the resource group; `fill` declares what is in it.

        Args:
            settings: The stack's settings.
            names: The names of a new stack.
            stack: Its name.
        """
        super().__init__("amlstack:infra:Workspace", settings.workspace.name)
        self._settings = settings
        self.security = security.of_stack(settings, stack)
        self.cluster_roles = (*roles.CLUSTER, *(roles.CLUSTER_TELEMETRY if self.security.default else ()))
        self._protected = security.is_protected(settings, stack)
        self.group: pulumi.CustomResource | None = None
        if not (settings.resource_group and settings.resource_group.existing):
            self.group = register_group(settings, names, protect=self._protected, parent=self)

    def fill(self, names: Names, account: Account, network: NetworkPlan) -> None:
        """Declare everything in the group.

        Args:
            names: The stack's names, in the group that it has.
            account: Subscription and tenant.
            network: The workspace's network.
        """
        self.names = names
        # Known at preview, and the engine knows where it comes from: it deletes the group last.
        of_group: tuple[pulumi.Resource, ...] = (self.group,) if self.group is not None else ()
        self.group_name = behind(names.group, *of_group)
        # The names are taken until the old resource is gone.
        fixed = pulumi.ResourceOptions(parent=self, depends_on=[*of_group], delete_before_replace=True)
        # The workspace holds data: the engine refuses to delete it until somebody takes the protection off.
        kept = pulumi.ResourceOptions(
            protect=self._protected, ignore_changes=ALL if self._settings.workspace.adopted else None
        )
        context = PartContext(
            self._settings,
            self.security,
            names,
            self.group_name,
            account.tenant,
            self,
            pulumi.ResourceOptions.merge(fixed, kept),
            fixed,
            premium=network.needs_premium,
        )
        around = WorkspaceNetwork(network, context, parent=self)
        made: dict[Part, pulumi.Resource] = {} if self.group is None else {"group": self.group}
        others = {*names.elsewhere, *names.without}
        made |= {part: register(context) for part, register in _FIRST.items() if part not in others}
        if "insights" not in others:
            if "logs" not in others:
                made["logs"] = register_logs(context)
            made["insights"] = register_insights(context, made.get("logs"))
        below = [made[part] for part in _BELOW if part in made]
        who = register_identity(context, made)
        encryption, before = register_encryption(context, made.get("key_vault"), who)
        below += [*who.before, *before]
        if "storage" in made:
            below += register_soft_delete(context, made["storage"])
        self.workspace = made["workspace"] = _workspace(context, who, encryption, around.properties, below)
        on_itself = (role for role in roles.WORKSPACE if role.part == "workspace")
        who.give(context, on_itself, {"workspace": self.workspace})
        register_diagnostics(context, self.workspace, made.get("logs"))
        self._made = made
        # Name and id as what is in the workspace needs them, and the id as what lives on all of it does.
        self.name = behind(names.workspace, self.workspace)
        self.workspace_id = behind(names.workspace_id, self.workspace)
        self.group_id = behind(names.group_id, *of_group)
        self.settled_id = behind(names.workspace_id, *made.values())
        around.complete(made, let_approve(context, who, network.accounts))
        self.compute_subnet = around.compute
        self.reached_by = (*([who.own] if who.own else ()), *around.reached_by)
        # The workspace comes after all of it, and its network before what is in it.
        self.everything = after(self.workspace, *around.resources)
        self.register_outputs({"id": names.workspace_id})

    def lock(self, after: Sequence[pulumi.Resource]) -> None:
        """Lock against deletion what the settings name.

        Args:
            after: What Azure would not delete while there is a lock: role assignments, containers and shares.
        """
        for part in self.security.locks:
            if on := self.part(part):
                properties = {
                    "lockName": NAME,
                    "scope": behind(self.names.id(part).lstrip("/"), *on),
                    "level": "CanNotDelete",
                    "notes": NOTES,
                }
                opts = pulumi.ResourceOptions(parent=self, depends_on=[*after], delete_before_replace=True)
                registration.register(resource_types.LOCK, f"{part.replace('_', '-')}-lock", properties, opts)

    def part(self, part: Part) -> tuple[pulumi.Resource, ...]:
        """The resource of a part that the stack owns; none of what somebody else owns."""
        return (self._made[part],) if part in self._made else ()

    def has(self, part: Part) -> bool:
        """True where the workspace has a part, whoever owns it."""
        return part not in self.names.without


_FIRST: Final[Mapping[Part, Callable[[PartContext], pulumi.Resource]]] = {
    "storage": register_storage,
    "registry": register_registry,
    "key_vault": register_key_vault,
}
"""Parts that stand on the group alone, in the order in which they are registered."""
_BELOW: Final[tuple[Part, ...]] = ("storage", "key_vault", "insights", "registry")
"""Parts that the workspace names, in that order."""


def _workspace(
    context: PartContext,
    who: Primary,
    encryption: Mapping[str, Any],
    network: Mapping[str, Any],
    before: list[pulumi.Resource],
) -> pulumi.CustomResource:
    names = context.names
    properties = {
        "workspaceName": names.workspace,
        **context.common,
        **workspace_properties(context.spec),
        **who.properties(),
        "storageAccount": names.id("storage"),
        "keyVault": names.id("key_vault"),
        "applicationInsights": None if "insights" in names.without else names.id("insights"),
        "containerRegistry": None if "registry" in names.without else names.id("registry"),
        "publicNetworkAccess": context.public,
        **network,
        **encryption,
    }
    own = pulumi.ResourceOptions(
        depends_on=before,
        # A key that goes is another workspace; another version of one is an update.
        replace_on_changes=[*WORKSPACE_REPLACED_BY, *(() if encryption else ("encryption",))],
        ignore_changes=list(FOUND_LATER) if network else None,
    )
    opts = pulumi.ResourceOptions.merge(context.opts, own)
    if (found := workspace_left_alone(context.spec, context.settings.tags)) is not None:
        opts.ignore_changes = found
    return registration.register(resource_types.WORKSPACE, "workspace", properties, opts)
