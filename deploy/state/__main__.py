"""The stack that holds Pulumi's state, the key that encrypts secrets, and the identities that may use both.

A storage account without keys, with versions and soft delete; a vault whose access is by roles alone and which nobody
can purge; three identities for pipelines that sign in with tokens of their own runs, never with a secret; roles for
them and for people. docs/how-to/gitops-state.md explains each setting and takes a stack from a local backend
here and back.
"""

from __future__ import annotations

import functools
import os
import re
import uuid
from collections.abc import Mapping
from typing import Any

import pulumi
import trust
from pulumi_azure_native import authorization, keyvault, managedidentity, resources, storage

# Azure's built-in roles, the same ids in every tenant:
# learn.microsoft.com/azure/role-based-access-control/built-in-roles (2026-11-22)
BLOB_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"  # Storage Blob Data Contributor
BLOB_READER = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"  # Storage Blob Data Reader
CRYPTO_USER = "12338af0-0e69-4776-bea7-57ae8d297424"  # Key Vault Crypto User
ASSIGNMENTS = uuid.UUID("0f0c7a0e-6f4d-5c55-9c1b-3f6a0b1d9e27")  # the names of assignments are made from it
PRINCIPALS = {"user": "User", "group": "Group", "service_principal": "ServicePrincipal"}

settings = pulumi.Config()
name = settings.require("name")
if not re.fullmatch(r"[a-z][a-z0-9]{2,17}", name):
    raise pulumi.RunError(
        f"`name` must be 3 to 18 lower-case letters and digits, a letter first, got `{name}`: the account is called "
        "<name>state and the vault <name>-state, and both names are unique in all of Azure."
    )
location = settings.require("location")
tenant = (
    pulumi.Config("azure-native").get("tenantId")
    or os.environ.get("ARM_TENANT_ID")
    or os.environ.get("AZURE_TENANT_ID")
)
if not tenant:
    raise pulumi.RunError("The tenant is not named: pulumi config set azure-native:tenantId, or set ARM_TENANT_ID.")
keep_days = settings.get_int("keep_days") or 30
kept = pulumi.ResourceOptions(protect=settings.get_bool("protect") is not False)


PURPOSES = ("deploy", "plan", "preview")
try:
    trusted = {"": {key: trust.entries(settings.get_object(key), key) for key in PURPOSES}}
    trusted |= trust.of_stacks(settings.get_object("stacks"))
except trust.TrustError as error:
    raise pulumi.RunError(str(error)) from None

group = resources.ResourceGroup("group", resource_group_name=f"rg-{name}-state", location=location, opts=kept)

account = storage.StorageAccount(
    "account",
    account_name=f"{name}state",
    resource_group_name=group.name,
    location=location,
    kind="StorageV2",
    sku={"name": settings.get("sku") or "Standard_ZRS"},
    allow_shared_key_access=False,  # no key and no SAS of a key: Entra ID alone
    default_to_o_auth_authentication=True,
    allow_blob_public_access=False,
    allow_cross_tenant_replication=False,
    enable_https_traffic_only=True,
    minimum_tls_version="TLS1_2",
    opts=kept,
)
blobs = storage.BlobServiceProperties(
    "blobs",
    blob_services_name="default",
    account_name=account.name,
    resource_group_name=group.name,
    is_versioning_enabled=True,
    delete_retention_policy={"enabled": True, "days": keep_days},
    container_delete_retention_policy={"enabled": True, "days": keep_days},
)
# Each step of an update writes the state anew, and so makes a version: without an end they are what the account costs.
storage.ManagementPolicy(
    "versions",
    management_policy_name="default",
    account_name=account.name,
    resource_group_name=group.name,
    policy={
        "rules": [
            {
                "name": "versions-end",
                "type": "Lifecycle",
                "enabled": True,
                "definition": {
                    "filters": {
                        "blob_types": ["blockBlob"],
                        "prefix_match": [f"{trust.joined('state', one)}/" for one in trusted],
                    },
                    "actions": {"version": {"delete": {"days_after_creation_greater_than": keep_days}}},
                },
            }
        ]
    },
    opts=pulumi.ResourceOptions(depends_on=[blobs]),
)
vault = keyvault.Vault(
    "vault",
    vault_name=f"{name}-state",
    resource_group_name=group.name,
    location=location,
    properties={
        "tenant_id": tenant,
        "sku": {"family": "A", "name": "standard"},
        "enable_rbac_authorization": True,
        "enable_soft_delete": True,
        "soft_delete_retention_in_days": 90,
        "enable_purge_protection": True,
    },
    opts=kept,
)


def allow(who: str, principal: pulumi.Input[str], kind: str, rights: Mapping[str, tuple[str, pulumi.Resource]]) -> None:
    """Gives a principal roles: name of the assignment → id of the role and what it is on."""
    for what, (role, on) in rights.items():
        scope = on.id if isinstance(on, pulumi.CustomResource) else ""
        authorization.RoleAssignment(
            f"{who}-{what}",
            role_assignment_name=pulumi.Output.all(scope, principal).apply(
                lambda both, role=role: str(uuid.uuid5(ASSIGNMENTS, "\n".join([*both, role]).lower()))
            ),
            scope=scope,
            principal_id=principal,
            principal_type=kind,
            role_definition_id=pulumi.Output.concat(
                "/subscriptions/", group.id.apply(lambda one: one.split("/")[2]),
                f"/providers/Microsoft.Authorization/roleDefinitions/{role}",
            ),
        )  # fmt: skip


people: list[Any] = settings.get_object("people") or []
for at, person in enumerate(people):
    if not isinstance(person, dict) or set(person) != {"id", "type"} or str(person["type"]) not in PRINCIPALS:
        raise pulumi.RunError(f"people[{at}] must have `id`, an object id, and `type`, one of {', '.join(PRINCIPALS)}.")


def place(stack: str, trusts: Mapping[str, list[trust.Trust]]) -> dict[str, pulumi.Input[str]]:
    """The container, key and identities of one stack, which reach no other; without a name, those of the first place.

    A preview takes no lock and writes nothing. What a pull request declares nobody has approved yet: its preview has
    made-up values for all secrets, and an identity that cannot open one. The plan of main needs them, and changes none.
    """
    called = functools.partial(trust.joined, stack=stack)
    container = storage.BlobContainer(
        called("container"),
        container_name=called("state"),
        account_name=account.name,
        resource_group_name=group.name,
        public_access="None",
        opts=pulumi.ResourceOptions.merge(kept, pulumi.ResourceOptions(depends_on=[blobs])),
    )
    # No rotation policy: what a version has encrypted, that version decrypts, and `secrets_provider` names it.
    key = keyvault.Key(
        called("key"),
        key_name=called("pulumi"),
        vault_name=vault.name,
        resource_group_name=group.name,
        properties={"kty": "RSA", "key_size": 3072, "key_ops": ["encrypt", "decrypt"]},
        opts=kept,
    )
    sees: dict[str, tuple[str, pulumi.Resource]] = {"state": (BLOB_READER, container)}
    secrets: dict[str, tuple[str, pulumi.Resource]] = {"secrets": (CRYPTO_USER, key)}
    writes = {"state": (BLOB_CONTRIBUTOR, container), **secrets}
    made: dict[str, pulumi.Input[str]] = {
        "backend": pulumi.Output.concat("azblob://", container.name, "?storage_account=", account.name),
        "secrets_provider": key.key_uri_with_version.apply(
            lambda uri: "azurekeyvault://" + uri.removeprefix("https://")
        ),
    }
    for purpose, rights in (("deploy", writes), ("plan", {**sees, **secrets}), ("preview", sees)):
        identity = managedidentity.UserAssignedIdentity(
            called(purpose),
            resource_name_=f"id-{trust.joined(name, stack)}-{purpose}",
            resource_group_name=group.name,
            location=location,
        )
        before: list[pulumi.Resource] = []
        for one in trusts[purpose]:
            # One after the other: Azure refuses writes beside each other to the credentials of one identity.
            credential = managedidentity.FederatedIdentityCredential(
                f"{called(purpose)}-{one.name}",
                federated_identity_credential_resource_name=one.name,
                resource_name_=identity.name,
                resource_group_name=group.name,
                issuer=one.issuer,
                subject=one.subject,
                audiences=[trust.AUDIENCE],
                opts=pulumi.ResourceOptions(depends_on=before),
            )
            before = [credential]
        allow(called(purpose), identity.principal_id, "ServicePrincipal", rights)
        made |= {f"{purpose}_client_id": identity.client_id, f"{purpose}_principal_id": identity.principal_id}
    for person in people:
        allow(called(f"people-{person['id']}"), person["id"], PRINCIPALS[person["type"]], writes)
    return made


for output, value in place("", trusted.pop("")).items():
    pulumi.export(output, value)
if trusted:
    own = {stack: {"subscription_id": given} for stack, given in (settings.get_object("subscriptions") or {}).items()}
    pulumi.export("stacks", {stack: place(stack, trusts) | own.get(stack, {}) for stack, trusts in trusted.items()})
