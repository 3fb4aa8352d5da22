"""docs/identities.md: as whom workspace and clusters act, with the roles of `infra/roles.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infra import roles

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTS: Final = {
    "workspace": "the workspace",
    "storage": "the storage account",
    "key_vault": "the key vault",
    "registry": "the registry",
    "insights": "application insights",
}

HEAD: Final = """\
# As whom a workspace and its clusters act

The storage account of a stack's workspace has no shared keys, its registry no admin user, and its key vault goes by
roles: whoever reads a datastore, pulls an image or keeps a secret comes as an identity with a role. The tables of
roles on this page are made from `infra/roles.py` by `make docs`.

## The workspace

| `workspace.identity` | what the stack makes |
| --- | --- |
| `stack` (the default) | a user-assigned identity `id-<workspace>-workspace`, which becomes the workspace's primary \
one, with the roles below. |
| `{primary: ID, principal_id: UUID}` | nothing but the roles, for an identity that exists; without `principal_id` \
not even these. |
| `system` (the default on the stack `sandbox`) | nothing: the workspace has a system-assigned identity, to which \
Azure itself gives roles. |

A system-assigned identity stays beside the primary one, unless `keep_system: false` says otherwise. A workspace of an
earlier version of this project has one; Azure adds a user-assigned identity to it in place, and does not document
taking the other away.

"""

ACCOUNTS: Final = """
On the account of each datastore in another account than the workspace's, where the stack makes outbound rules to it
([networks.md](networks.md)):

"""

CLUSTERS: Final = """
Not among them is a role on the resource group: Azure asks for none.

## The clusters

For the nodes of a cluster it is the cluster's managed identity (`clusters[].identity` in [settings.md](settings.md)).

| `identity` | what the stack makes |
| --- | --- |
| `stack` (the default) | one user-assigned identity `id-<workspace>` for all such clusters, with the roles below. \
It outlives the clusters, so a cluster that is replaced has its access at once. |
| `system` | the cluster's own identity, with the roles below. A cluster that is replaced has another identity, and \
its roles are assigned anew. |
| `{user_assigned: [ids]}` | nothing: the identities exist, and their roles are their owner's concern. `type: stack` \
or `type: system` may stand beside it. |
| `none` | nothing. Jobs on such a cluster have no access to datastores of their own. What Azure then does with a \
job that mounts one has not been measured. |

"""

TELEMETRY: Final = """
On every stack but `sandbox` also:

"""

REST: Final = """
Not among them is a role on the key vault: the stack's datastores go by identities and keep no secrets there, and code
of a job that may read the vault may read every secret of the workspace.

## A customer-managed key

`workspace.encryption` gives the workspace's identity one role more, on the vault of the key:

"""

TAIL: Final = """
Without `service_side: true` Azure also makes a Cosmos DB account in your subscription that is encrypted with the key,
and its service principal needs the same role there. Its object id differs from tenant to tenant:

```sh
az role assignment create --role "Key Vault Crypto Service Encryption User" --scope <ARM id of the key vault> \\
  --assignee-principal-type ServicePrincipal --assignee-object-id \\
  $(az ad sp show --id a232010e-820c-4083-83bb-3ace5fc29d0b --query id --output tsv)
```

Whether the workspace's own identity does for that has not been measured.

## Who may assign them

Assigning a role takes `Microsoft.Authorization/roleAssignments/write`: Owner, User Access Administrator or Role Based
Access Control Administrator on the resource group. A deployer who is only Contributor sets `amlstack:assign_roles:
false`, and somebody who may runs, once for each role:

```sh
az role assignment create --role "Storage Blob Data Contributor" --assignee-object-id <principal id> \\
  --assignee-principal-type ServicePrincipal --scope <ARM id of the storage account>
```

The principal id of an identity is what
`az identity show --name id-<workspace> --resource-group <group> --query principalId` prints. A workspace is made
after the roles of its identity; without them Azure may refuse it, so that they come first, with an identity that
exists and is given by `primary`.

## Changing it

Another `identity` of a cluster replaces the cluster, since sources disagree on whether Azure changes it in place;
`identity_change: in_place` plans an update ([edits.md](edits.md)). A cluster with a run on it is not replaced.
Another identity of the workspace is an update. Role assignments reach the nodes some minutes after they are made.
"""


def page() -> str:
    """The whole page."""
    return "".join(
        (
            HEAD,
            _table(roles.WORKSPACE),
            ACCOUNTS,
            _table([roles.APPROVER]),
            CLUSTERS,
            _table(roles.CLUSTER),
            TELEMETRY,
            _table(roles.CLUSTER_TELEMETRY),
            REST,
            _table([roles.ENCRYPTION]),
            TAIL,
        )
    )


def _table(which: Iterable[roles.Role]) -> str:
    rows = (
        f"| {role.name} | `{role.definition}` | {PARTS[role.part]} | {role.why} | {role.source} |\n" for role in which
    )
    return "| role | id | on | why | source |\n| --- | --- | --- | --- | --- |\n" + "".join(rows)
