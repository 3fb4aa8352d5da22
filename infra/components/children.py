"""The resources inside a workspace: its clusters, datastores and data assets, and who may use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pulumi

from amlstack.base.findings import Finding, Level, errors
from infra import data, quota, resource_types, roles, security
from infra.components import registration
from infra.components.registration import after, behind, end, show
from infra.components.workspace.parts import assign
from infra.properties import cluster_left_alone, cluster_properties, replaced_by
from infra.settings.checks import hidden

if TYPE_CHECKING:
    from infra.components.workspace import AnyWorkspace
    from infra.names import Names
    from infra.settings import Cluster, Datastore, Reading, Settings, WorkspaceAccess


async def check(
    settings: Settings, reading: Reading | None, names: Names, provider: pulumi.ProviderResource | None
) -> None:
    """Show what the subscription has no room for.

    Args:
        settings: The stack's.
        reading: Where they were written; None for a stack that is only looked at, which asks nothing.
        names: With subscription and workspace, in the group that a new stack has.
        provider: Who asks.

    Raises:
        pulumi.RunError: There is no room.
    """
    if reading is None:
        return
    found = [hidden(finding, reading.secret) for finding in await findings(settings, reading, names, provider)]
    show(found)
    if wrong := errors(found):
        end(wrong)


async def check_providers(
    settings: Settings,
    reading: Reading | None,
    subscription: str,
    needed: Sequence[str],
    provider: pulumi.ProviderResource | None,
) -> None:
    """Show the resource providers that the subscription must have registered and has not.

    Args:
        settings: The stack's.
        reading: Where they were written; None for a stack that is only looked at, which asks nothing.
        subscription: Its id.
        needed: Names of the providers of all that is registered here.
        provider: Who asks.

    Raises:
        pulumi.RunError: One is not registered.
    """
    if reading is None or settings.quota == "off":
        return
    asked = {"subscription": subscription, "namespaces": needed}
    try:
        answer = await _answer("amlstack:capacity:ofProviders", asked, provider)
    except Exception as error:  # noqa: BLE001 - a provider that does not answer is no reason to fail
        answer = {"states": {}, "problem": str(error) or type(error).__name__}
    level = Level.WARNING if settings.quota == "warn" else Level.ERROR
    found = [*quota.unregistered(answer["states"], subscription, level), *quota.not_asked(answer["problem"])]
    show([hidden(finding, reading.secret) for finding in found])
    if wrong := errors(found):
        end(wrong)


async def findings(
    settings: Settings, reading: Reading, names: Names, provider: pulumi.ProviderResource | None
) -> list[Finding]:
    """The shortages of the subscription; one question for all regions, and one more only where it seems short."""
    wanted = quota.demands(settings)
    if settings.quota == "off" or not wanted:
        return []
    regions = {name: sorted(sizes) for name, sizes in quota.regions(wanted).items()}
    asked = {"subscription": names.subscription, "regions": regions, "workspace": names.workspace_id}
    try:
        answers = (await _answer("amlstack:capacity:ofRegions", asked, provider))["regions"]
        short = quota.shortages(wanted, answers, names.subscription)
        if short:
            there = await _answer("amlstack:capacity:ofWorkspace", {"workspace": names.workspace_id}, provider)
            short = quota.shortages(wanted, answers, names.subscription, quota.Existing.of(there["clusters"]))
    except Exception as error:  # noqa: BLE001 - a provider that does not answer is no reason to fail
        problem = str(error) or type(error).__name__
        answers = {region: {"problem": problem} for region in regions}
        short = ()
    found = list(quota.unchecked(answers))
    for each in short:
        finding = each.finding.changed(level=Level.WARNING) if settings.quota == "warn" else each.finding
        found.append(reading.about(("clusters", each.index, *each.path), finding))
    return found


async def _answer(token: str, asked: dict[str, Any], provider: pulumi.ProviderResource | None) -> dict[str, Any]:
    """The answer of a function, as the provider's schema describes it; nothing is created or recorded."""
    answer: dict[str, Any] = await pulumi.runtime.invoke_async(token, asked, pulumi.InvokeOptions(provider=provider))
    return answer


class StackIdentity(pulumi.ComponentResource):
    """One user-assigned identity for all clusters of the stack, with its roles.

    It outlives the clusters, so that a cluster that is replaced has its access at once.
    """

    def __init__(self, workspace: AnyWorkspace, settings: Settings) -> None:
        """Declare the identity; `grant` gives it its roles.

        Args:
            workspace: In whose resource group it lies.
            settings: The stack's. On a workspace that exists, an identity that the stack has keeps its name.
        """
        names, keeps_name = workspace.names, settings.workspace.existing is not None
        super().__init__("amlstack:infra:StackIdentity", names.identity if not keeps_name else "identity")
        self.identity = registration.register(
            resource_types.IDENTITY,
            "identity",
            {
                "resourceName": names.identity,
                "resourceGroupName": workspace.group_name,
                "location": settings.location,
                "tags": dict(settings.tags),
                "principalId": None,
                **({"name": None} if keeps_name else {}),
            },
            pulumi.ResourceOptions(
                parent=self,
                provider=workspace.provider,
                ignore_changes=["resourceName"] if keeps_name else None,
                delete_before_replace=True,
            ),
        )
        self.everything = after(self.identity)

    def grant(self, workspace: AnyWorkspace, *, assign_roles: bool) -> None:
        """Give it the roles that clusters need.

        Args:
            workspace: With the identity's name as the stack has it.
            assign_roles: Whether the stack does so.
        """
        granted: list[pulumi.Resource] = []
        if assign_roles:
            principal = registration.output(self.identity, "principalId")
            granted = grant(workspace, principal, holder=workspace.names.identity_id, parent=self)
        self.everything = after(self.identity, *granted)
        self.register_outputs({"id": workspace.names.identity_id})


def grant(
    workspace: AnyWorkspace, principal: pulumi.Input[str], *, holder: str, parent: pulumi.Resource
) -> list[pulumi.Resource]:
    """Assign the roles that a cluster's identity needs.

    Args:
        workspace: The workspace on whose parts the roles are.
        principal: Object id of the identity, known once it exists.
        holder: ARM id of the identity, or of the cluster with an identity of its own.
        parent: The component that the assignments belong to.

    Returns:
        The assignments.
    """
    names, label = workspace.names, holder.rsplit("/", 1)[-1]
    return [
        assign(
            f"{label}-{role.name.lower().replace(' ', '-')}",
            role,
            names.id(role.part),
            principal,
            name=roles.assignment_name(names.id(role.part), role, holder),
            parent=parent,
            on=workspace.part(role.part),
        )
        for role in workspace.cluster_roles
        if workspace.has(role.part)  # a workspace that exists need not have a registry
    ]


class RdmaCluster:
    """One cluster of the stack.

    Attributes:
        compute: The cluster.
        resources: It and its roles, which a job on it comes after.
    """

    def __init__(
        self,
        spec: Cluster,
        settings: Settings,
        workspace: AnyWorkspace,
        shared: StackIdentity | None,
        parent: pulumi.Resource,
    ) -> None:
        names, location = workspace.names, spec.location or settings.location
        wire = cluster_properties(spec, location=location, tags=settings.tags, stack_identity=names.identity_id)
        if spec.subnet is None and workspace.compute_subnet is not None:
            wire["properties"]["properties"]["subnet"] = {"id": workspace.compute_subnet}
        self.compute = registration.register(
            resource_types.COMPUTE,
            spec.name,
            {
                "computeName": spec.name,
                # Known at preview, and the engine knows where they come from: it deletes clusters before the workspace.
                "resourceGroupName": workspace.group_name,
                "workspaceName": workspace.name,
                **wire,
            },
            pulumi.ResourceOptions(
                parent=parent,
                provider=workspace.provider,
                depends_on=[
                    workspace.everything,
                    *([shared.everything] if shared and spec.identity.kind == "stack" else ()),
                ],
                replace_on_changes=list(replaced_by(spec.identity_change)),
                ignore_changes=cluster_left_alone(spec, settings.tags),
                # The name stays, so the old cluster has to go before the new one can come.
                delete_before_replace=True,
            ),
        )
        self.resources: list[pulumi.Resource] = [self.compute]
        if spec.identity.kind == "system" and settings.assign_roles:
            self.resources += grant(workspace, self.principal, holder=names.cluster_id(spec.name), parent=parent)

    @property
    def principal(self) -> pulumi.Output[Any]:
        """Object id of the cluster's own identity."""
        return registration.output(self.compute, "identity").apply(lambda value: (value or {}).get("principalId"))


def register_access(entries: Iterable[WorkspaceAccess], workspace: AnyWorkspace, parent: pulumi.Resource) -> None:
    """Assign people, groups and applications the roles that the settings name; there is a finding on any other."""
    names = workspace.names
    for entry in entries:
        if (role := roles.BY_NAME.get(entry.role.strip().lower())) is None:
            continue
        for principal in entry.principals:
            assign(
                f"{role.name} {principal.id}",
                role,
                names.workspace_id,
                principal.id,
                name=roles.access_name(role, principal, names),
                parent=parent,
                on=workspace.part("workspace"),
                principal_type=roles.PRINCIPAL_TYPES[principal.type],
            )


def register_containers(
    settings: Settings, workspace: AnyWorkspace, parent: pulumi.Resource
) -> dict[str, pulumi.Resource]:
    """Register them, each once however many datastores name it.

    Args:
        settings: The stack's.
        workspace: The workspace, complete.
        parent: Of all of them.

    Returns:
        By the datastore's name; none for a datastore whose container exists.
    """
    opts = pulumi.ResourceOptions(
        parent=parent,
        # They hold data, as the account does: the engine refuses to delete them until somebody takes that off.
        protect=security.is_protected(settings, pulumi.get_stack()),
        delete_before_replace=True,
    )
    made: dict[tuple[str, str], pulumi.Resource] = {}
    found: dict[str, pulumi.Resource] = {}
    for spec in settings.datastores:
        if not data.is_created(spec, settings):
            continue
        is_share = spec.kind == "file"
        key = (resource_types.FILE_SHARE if is_share else resource_types.BLOB_CONTAINER, spec.container)
        if key not in made:
            properties: dict[str, Any] = {
                "resourceGroupName": workspace.group_name,
                "accountName": behind(workspace.names.storage, *workspace.part("storage")),
                **({"shareName": spec.container} if is_share else {"containerName": spec.container}),
                **({} if is_share else {"publicAccess": "None"}),
            }
            made[key] = registration.register(key[0], spec.container, properties, opts)
        found[spec.name] = made[key]
    return found


def holders_of(
    workspace: AnyWorkspace, shared: StackIdentity | None, clusters: Mapping[str, RdmaCluster], specs: Iterable[Cluster]
) -> dict[str, pulumi.Input[str]]:
    """Whom nodes act as, the principals by ARM id of their holder: the stack's identity, clusters with their own."""
    names = workspace.names
    found: dict[str, pulumi.Input[str]] = {}
    if shared is not None:
        found[names.identity_id] = registration.output(shared.identity, "principalId")
    for spec in specs:
        if spec.identity.kind == "system":
            found[names.cluster_id(spec.name)] = clusters[spec.name].principal
    return found


def register_datastores(
    specs: Iterable[Datastore],
    workspace: AnyWorkspace,
    holders: Mapping[str, pulumi.Input[str]],
    *,
    created: Mapping[str, pulumi.Resource],
    cloud: str,
    parent: pulumi.Resource,
) -> dict[str, list[pulumi.Resource]]:
    """Register the datastores.

    Args:
        specs: Their settings.
        workspace: The workspace that they belong to.
        holders: Principals that need a role on their accounts, by ARM id of their holder.
        created: The containers and shares that the stack creates, by the datastore's name.
        cloud: As ``azure-native:environment`` names it; empty for Azure's public cloud.
        parent: Of all of it.

    Returns:
        By the datastore's name: what comes before its use, itself, the roles on its account and its container.
    """
    granted: dict[tuple[str, str], list[pulumi.Resource]] = {}
    made: dict[str, list[pulumi.Resource]] = {}
    for spec in specs:
        account, role = data.account_id(spec, workspace.names), data.role_of(spec)
        store = registration.register(
            resource_types.DATASTORE,
            spec.name,
            {
                "name": spec.name,
                "resourceGroupName": workspace.group_name,
                "workspaceName": workspace.name,
                "properties": data.datastore_properties(spec, account, cloud),
            },
            pulumi.ResourceOptions(
                parent=parent,
                provider=workspace.provider,
                depends_on=[workspace.everything, *([created[spec.name]] if spec.name in created else ())],
                # The name is taken until the old one is gone.
                delete_before_replace=True,
            ),
        )
        # On the workspace's own account they have roles already.
        if (key := (account.lower(), role.definition)) not in granted:
            is_own = workspace.has("storage") and workspace.names.id("storage").lower() == account.lower()
            granted[key] = [] if is_own else _grant(role, account, holders, parent)
        made[spec.name] = [store, *granted[key], *([created[spec.name]] if spec.name in created else ())]
    return made


def _grant(
    role: roles.Role, account: str, holders: Mapping[str, pulumi.Input[str]], parent: pulumi.Resource
) -> list[pulumi.Resource]:
    """Assign a role on an account to everybody who reads or writes there."""
    made: list[pulumi.Resource] = []
    for holder, principal in holders.items():
        label = f"{holder.rpartition('/')[2]}-{account.rpartition('/')[2]}-{role.name.lower().replace(' ', '-')}"
        name = roles.assignment_name(account, role, holder)
        made.append(assign(label, role, account, principal, name=name, parent=parent))
    return made
