"""Access to the workspace, and datastores with the containers that hold their data and the roles on their accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from infra import data, resource_types, roles, security
from infra.components import registration
from infra.components.registration import behind
from infra.components.workspace.parts import assign

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.components.cluster import RdmaCluster, StackIdentity
    from infra.components.workspace import AnyWorkspace
    from infra.settings import Cluster, Datastore, Settings, WorkspaceAccess


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
