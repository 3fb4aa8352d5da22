"""The Azure ML workspace: what it stands on, in order, and its network, managed or its own one with endpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pulumi

from amlstack import resources
from infra import resource_types, roles, security
from infra.components import registration
from infra.components.registration import after, behind
from infra.components.workspace import parts
from infra.network.plan import COMPUTE, ENDPOINTS, OFF, Link, NetworkPlan, OwnNetwork, WantedIsolation, is_range
from infra.properties import WORKSPACE_REPLACED_BY, workspace_left_alone, workspace_properties

if TYPE_CHECKING:
    from infra.names import Account, Names, Part
    from infra.settings import Settings

FOUND_LATER = ("managedNetwork.outboundRules", "managedNetwork.status")
"""Settings that Azure writes into the workspace, and a refresh finds there; the rules have a resource of their own."""


def managed_settings(
    decided: resources.NetworkIsolation, wanted: WantedIsolation, firewall: str | None
) -> pulumi.Output[dict[str, Any] | None]:
    """The workspace's ``managedNetwork``; nothing without isolation.

    Args:
        decided: The isolation.
        wanted: What counts where no provider has decided, as in a look at the declaration alone.
        firewall: Size of the firewall.
    """
    sku = {"firewallSku": firewall.capitalize()} if firewall else {}

    def settings(mode: str | None) -> dict[str, Any] | None:
        found = wanted.mode if mode is None else mode
        return None if found == OFF else {"isolationMode": found, **sku}

    return decided.mode.apply(settings)


class StackNetwork:
    """The resources that the stack makes of the team's own network.

    Attributes:
        spec: The network, composed.
        resources: Everything that was registered.
        compute: ARM id of the subnet of nodes, behind the network where the stack makes it; None where there is none.
    """

    def __init__(self, spec: OwnNetwork, context: parts.PartContext, *, parent: pulumi.Resource) -> None:
        self.spec, self._context = spec, context
        # The names are taken until the old resource is gone.
        self._opts = pulumi.ResourceOptions(parent=parent, delete_before_replace=True)
        self.resources: list[pulumi.CustomResource] = []
        if spec.made:
            self.resources.append(self._network())
        self.compute = self.inside(spec.compute) if spec.compute else None

    def inside(self, text: str) -> pulumi.Output[str]:
        """An ARM id in the network, which depends on it."""
        return behind(text, *self.resources[:1])

    def _network(self) -> pulumi.CustomResource:
        spec = self.spec.spec
        subnets = []
        if is_range(spec.compute):
            group = self._security_group("nodes", list(self.spec.security))
            subnets.append(self._subnet(COMPUTE, str(spec.compute), group, self._outbound()))
        if is_range(spec.endpoints):
            group = self._security_group("endpoints", [])
            subnets.append(self._subnet(ENDPOINTS, str(spec.endpoints), group, {}))
        properties = {
            "virtualNetworkName": self.spec.name,
            **self._context.common,
            "addressSpace": {"addressPrefixes": list(spec.address_space)},
            "subnets": subnets,
            # As azure-native's classes register what is not given.
            "enableDdosProtection": False,
            "enableVmProtection": False,
        }
        return registration.register(resource_types.VIRTUAL_NETWORK, "vnet", properties, self._opts)

    def _outbound(self) -> dict[str, Any]:
        spec = self.spec.spec
        gateway = {"natGateway": {"id": spec.nat_gateway}} if spec.nat_gateway else {}
        return {**gateway, **({"routeTable": {"id": spec.route_table}} if spec.route_table else {})}

    def _subnet(self, name: str, range_: str, group: pulumi.Output[str], more: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "addressPrefix": range_,
            "networkSecurityGroup": {"id": group},
            **more,
            # As azure-native's classes register what is not given.
            "privateEndpointNetworkPolicies": "Disabled",
            "privateLinkServiceNetworkPolicies": "Enabled",
        }

    def _security_group(self, name: str, rules: list[dict[str, Any]]) -> pulumi.Output[str]:
        """The id of a security group: also without rules, as landing zones refuse subnets that have none."""
        full = f"nsg-{name}-{self.spec.name.removeprefix('vnet-')}"
        properties = {"networkSecurityGroupName": full, **self._context.common, "securityRules": rules}
        made = registration.register(resource_types.SECURITY_GROUP, f"nsg-{name}", properties, self._opts)
        return behind(self._context.names.id_of("Microsoft.Network/networkSecurityGroups", full), made)


class StackEndpoints:
    """One endpoint for each part, in the subnet of endpoints.

    Attributes:
        resources: Everything that was registered.
        endpoints: The private endpoints of it.
    """

    def __init__(
        self,
        network: StackNetwork,
        context: parts.PartContext,
        made: Mapping[Part, pulumi.Resource],
        *,
        parent: pulumi.Resource,
    ) -> None:
        """Register them.

        Args:
            network: The network that they are in.
            context: The workspace's.
            made: The parts that the stack owns, the workspace among them.
            parent: The component that they belong to.
        """
        self._network, self._context = network, context
        self._parts = made
        self._opts = pulumi.ResourceOptions(parent=parent, delete_before_replace=True)
        self.resources: list[pulumi.Resource] = []
        self.endpoints: list[pulumi.CustomResource] = []
        zones = {name: self._zone(name) for names in network.spec.zones.values() for name in names}
        for target, link in network.spec.links.items():
            self._endpoint(target, link, {name: zones[name] for name in network.spec.zones.get(target, ())})

    def _zone(self, name: str) -> pulumi.Output[str]:
        """The id of a private DNS zone, behind its link with the network where the stack makes it."""
        if given := self._network.spec.given_zones.get(name):
            return pulumi.Output.from_input(given)
        common = {**self._context.common, "location": "global"}
        zone = registration.register(
            resource_types.PRIVATE_ZONE, name, {"privateZoneName": name, **common}, self._options()
        )
        properties = {
            "virtualNetworkLinkName": f"link-{self._stem}",
            "privateZoneName": behind(name, zone),
            **common,
            "registrationEnabled": False,
            "virtualNetwork": {"id": self._network.inside(self._network.spec.linked)},
        }
        opts = self._options(replace_on_changes=["virtualNetwork"])
        link = registration.register(resource_types.NETWORK_LINK, f"{name}-link", properties, opts)
        self.resources += [zone, link]
        return behind(self._context.names.id_of("Microsoft.Network/privateDnsZones", name), zone, link)

    def _endpoint(self, target: str, link: Link, zones: Mapping[str, pulumi.Output[str]]) -> None:
        names, full = self._context.names, f"pe-{target}-{self._stem}"
        part = self._parts.get(link.part)
        properties = {
            "privateEndpointName": full,
            **self._context.common,
            "subnet": {"id": self._network.inside(str(self._network.spec.endpoints))},
            "privateLinkServiceConnections": [
                {
                    "name": target,
                    "privateLinkServiceId": behind(names.id(link.part), *([part] if part else ())),
                    "groupIds": [link.group],
                }
            ],
        }
        # Azure works on one endpoint of a storage account at a time, and of a subnet: one after the other.
        before = self.resources[-1:]
        opts = self._options(
            depends_on=before,
            # Azure changes neither on an endpoint that exists.
            replace_on_changes=["subnet.id", "privateLinkServiceConnections"],
        )
        endpoint = registration.register(resource_types.PRIVATE_ENDPOINT, f"endpoint-{target}", properties, opts)
        self.resources.append(endpoint)
        self.endpoints.append(endpoint)
        if zones:
            group = {
                "privateDnsZoneGroupName": "default",
                "privateEndpointName": behind(full, endpoint),
                "resourceGroupName": self._context.group_name,
                "privateDnsZoneConfigs": [
                    {"name": zone.replace(".", "-"), "privateDnsZoneId": zone_id} for zone, zone_id in zones.items()
                ],
            }
            made = registration.register(resource_types.ZONE_GROUP, f"endpoint-{target}-zones", group, self._options())
            self.resources.append(made)

    @property
    def _stem(self) -> str:
        return self._network.spec.name.removeprefix("vnet-")

    def _options(self, **more: object) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._opts, pulumi.ResourceOptions(**more))  # type: ignore[arg-type]


class WorkspaceNetwork:
    """The network resources before and after the workspace.

    Attributes:
        plan: The network, composed.
        resources: Everything that clusters come after.
        reached_by: The network and the private endpoints that runs reach their data by, as far as the stack makes them.
        properties: What the workspace says of its network.
        compute: ARM id of the subnet of clusters without one of their own; None where there is none.
    """

    def __init__(self, plan: NetworkPlan, context: parts.PartContext, *, parent: pulumi.Resource) -> None:
        """Register what the workspace needs to know or nodes to be in: its isolation, and the own network.

        Args:
            plan: The network.
            context: The workspace's.
            parent: The component that all of it belongs to.
        """
        self.plan, self._context, self._parent = plan, context, parent
        self.resources: list[pulumi.Resource] = []
        self.reached_by: list[pulumi.CustomResource] = []
        self.properties: dict[str, Any] = {}
        self.compute: pulumi.Output[str] | None = None
        self._isolation = None
        if plan.wanted is not None:
            self._isolation = resources.NetworkIsolation(
                "isolation",
                workspace=context.names.workspace_id,
                wanted=plan.wanted.mode,
                given=plan.wanted.given,
                excluded=list(plan.wanted.excluded) or None,
                opts=pulumi.ResourceOptions(parent=parent),
            )
            self.properties["managedNetwork"] = managed_settings(self._isolation, plan.wanted, plan.firewall)
        self._own = None
        if plan.own is not None:
            self._own = StackNetwork(plan.own, context, parent=parent)
            self.compute = self._own.compute
            self.resources += self._own.resources
            self.reached_by += self._own.resources

    def complete(self, made: Mapping[Part, pulumi.Resource], approvals: Sequence[pulumi.Resource] = ()) -> None:
        """Register what leads to the workspace and its parts: private endpoints, rules and provisioning.

        Args:
            made: The parts that the stack owns, the workspace among them.
            approvals: The roles that outbound rules need.
        """
        names = self._context.names
        if self._own is not None and self._own.spec.links:
            linked = StackEndpoints(self._own, self._context, made, parent=self._parent)
            self.resources += linked.resources
            self.reached_by += linked.endpoints
        if self._isolation is not None:
            workspace_id = behind(names.workspace_id, *made.values(), *approvals)
            opts = pulumi.ResourceOptions(parent=self._parent)
            managed = resources.ManagedNetwork(
                "network", workspace=workspace_id, mode=self._isolation.mode, rules=self.plan.rules or {}, opts=opts
            )
            self.resources.append(managed)


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
            self.group = parts.register_group(settings, names, protect=self._protected, parent=self)

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
            protect=self._protected, ignore_changes=parts.ALL if self._settings.workspace.adopted else None
        )
        context = parts.PartContext(
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
                made["logs"] = parts.register_logs(context)
            made["insights"] = parts.register_insights(context, made.get("logs"))
        below = [made[part] for part in _BELOW if part in made]
        who = parts.register_identity(context, made)
        encryption, before = parts.register_encryption(context, made.get("key_vault"), who)
        below += [*who.before, *before]
        if "storage" in made:
            below += parts.register_soft_delete(context, made["storage"])
        self.workspace = made["workspace"] = _workspace(context, who, encryption, around.properties, below)
        on_itself = (role for role in roles.WORKSPACE if role.part == "workspace")
        who.give(context, on_itself, {"workspace": self.workspace})
        parts.register_diagnostics(context, self.workspace, made.get("logs"))
        self._made = made
        # Name and id as what is in the workspace needs them, and the id as what lives on all of it does.
        self.name = behind(names.workspace, self.workspace)
        self.workspace_id = behind(names.workspace_id, self.workspace)
        self.group_id = behind(names.group_id, *of_group)
        self.settled_id = behind(names.workspace_id, *made.values())
        around.complete(made, parts.let_approve(context, who, network.accounts))
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
                    "lockName": parts.NAME,
                    "scope": behind(self.names.id(part).lstrip("/"), *on),
                    "level": "CanNotDelete",
                    "notes": parts.NOTES,
                }
                opts = pulumi.ResourceOptions(parent=self, depends_on=[*after], delete_before_replace=True)
                registration.register(resource_types.LOCK, f"{part.replace('_', '-')}-lock", properties, opts)

    def part(self, part: Part) -> tuple[pulumi.Resource, ...]:
        """The resource of a part that the stack owns; none of what somebody else owns."""
        return (self._made[part],) if part in self._made else ()

    def has(self, part: Part) -> bool:
        """True where the workspace has a part, whoever owns it."""
        return part not in self.names.without


_FIRST: Final[Mapping[Part, Callable[[parts.PartContext], pulumi.Resource]]] = {
    "storage": parts.register_storage,
    "registry": parts.register_registry,
    "key_vault": parts.register_key_vault,
}
"""Parts that stand on the group alone, in the order in which they are registered."""
_BELOW: Final[tuple[Part, ...]] = ("storage", "key_vault", "insights", "registry")
"""Parts that the workspace names, in that order."""


def _workspace(
    context: parts.PartContext,
    who: parts.Primary,
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
