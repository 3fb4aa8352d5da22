"""A datastore's wire properties, its container, and the roles that the clusters' identities need on its account."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level
from infra.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.names import Names
    from infra.settings import Datastore, Reading, Settings

OWN: Final = ("workspaceblobstore", "workspaceartifactstore", "workspacefilestore", "workspaceworkingdirectory")
"""What every workspace is born with (learn.microsoft.com/azure/machine-learning/how-to-datastore, 2026-11-22)."""

_TYPES: Final = {
    "blob": ("AzureBlob", "containerName"),
    "adls_gen2": ("AzureDataLakeGen2", "filesystem"),
    "file": ("AzureFile", "fileShareName"),
}
"""By kind: the wire's type, and the property that names the container."""
_ENDPOINTS: Final = (("gov", "core.usgovcloudapi.net"), ("china", "core.chinacloudapi.cn"))
"""By a part of a cloud's name in ``azure-native:environment``; in Azure's public cloud the service's own default."""
_SOURCE: Final = "learn.microsoft.com/azure/role-based-access-control/built-in-roles/storage (2026-11-22)"

_BLOB: Final = {
    False: Role(
        "Storage Blob Data Contributor",
        "storage",
        "Jobs read inputs from and write outputs to the datastore, which keeps no key: the nodes come as the cluster's "
        "identity.",
        _SOURCE,
    ),
    True: Role(
        "Storage Blob Data Reader",
        "storage",
        "The same for a datastore with `read_only: true`: jobs read inputs from it, and cannot change them.",
        _SOURCE,
    ),
}
_FILE: Final = {
    False: Role(
        "Storage File Data Privileged Contributor",
        "storage",
        "The same for a file share.",
        _SOURCE,
    ),
    True: Role(
        "Storage File Data Privileged Reader",
        "storage",
        "The same for a file share with `read_only: true`.",
        _SOURCE,
    ),
}
ROLES: Final = (*_BLOB.values(), *_FILE.values())
"""All that the identity of a cluster may get on a datastore's account; a datastore takes one of them."""


def role_of(spec: Datastore) -> Role:
    """The role that a cluster's identity needs on a datastore's account."""
    return (_FILE if spec.kind == "file" else _BLOB)[spec.read_only]


def account_id(spec: Datastore, names: Names) -> str:
    """ARM id of a datastore's account: a bare name is one in the stack's resource group, none the workspace's own."""
    if spec.account is None:
        return names.id("storage")
    return spec.account if spec.account.startswith("/") else names.id_of(_ACCOUNTS, spec.account)


def is_created(spec: Datastore, settings: Settings) -> bool:
    """True where the stack creates the container of a datastore: where it creates the account."""
    workspace = settings.workspace
    own = not (workspace.existing or workspace.adopted or workspace.storage.existing)
    return own and spec.account is None


def properties(spec: Datastore, account: str, cloud: str = "") -> dict[str, Any]:
    """The wire properties of a datastore without credentials.

    Args:
        spec: The settings.
        account: ARM id of its account.
        cloud: As ``azure-native:environment`` names it; empty for Azure's public cloud.
    """
    kind, container = _TYPES[spec.kind]
    _, _, subscription, _, group, *_ = account.split("/")
    endpoint = next((each for part, each in _ENDPOINTS if part in cloud.lower()), None)
    return {
        "datastoreType": kind,
        "accountName": account.rpartition("/")[2],
        container: spec.container,
        "credentials": {"credentialsType": "None"},
        # The place of the account, as an account of another group or subscription cannot be found by its name.
        "subscriptionId": subscription,
        "resourceGroup": group,
        **({"endpoint": endpoint} if endpoint else {}),
        **({"description": spec.description} if spec.description else {}),
        "tags": dict(spec.tags),
    }


_ACCOUNTS: Final = "Microsoft.Storage/storageAccounts"
_NAMED: Final = re.compile(
    r"(?:azureml://(?:subscriptions/\S*?/workspaces/[^/\s]+/)?|/workspaces/[^/\s]+/)datastores/([^/\s]+)"
)


def named_in(value: Any) -> set[str]:
    """Names of the datastores that a body or an address refers to, by whatever form."""
    match value:
        case str():
            return set(_NAMED.findall(value)) if "datastores/" in value else set()
        case dict():
            return set().union(*map(named_in, value.values()))
        case list() | tuple():
            return set().union(*map(named_in, value))
        case _:
            return set()


_NAME: Final = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(-[a-z0-9]+)*\Z")
"""Of containers and shares alike (learn.microsoft.com/rest/api/storageservices, 'Naming and Referencing Containers,
Blobs, and Metadata' and '… Shares, Directories, Files, and Metadata', 2026-11-22)."""
_WORDS: Final = {"blob": "container", "adls_gen2": "file system", "file": "share"}


def check_containers(reading: Reading, settings: Settings) -> Iterator[Finding]:
    """Containers that cannot be created as they are declared, and those that a person may wait for in vain.

    Args:
        reading: Where things were written, and what of it is made up.
        settings: The settings, mended.
    """
    for index, spec in enumerate(settings.datastores):
        if reading.doubts("datastores", index) or reading.doubts("workspace"):
            continue
        key, finding = _judged(spec, created=is_created(spec, settings))
        if finding is not None:
            yield reading.about(("datastores", index, key), finding)


def _judged(spec: Datastore, *, created: bool) -> tuple[str, Finding | None]:
    """The key that a finding is about, and the finding."""
    word = _WORDS[spec.kind]
    if created and spec.kind == "adls_gen2":
        return "kind", Finding(
            "datastore-without-namespace",
            "",
            f"`{spec.name}` is of the kind adls_gen2, in the storage account of the workspace",
            "A file system needs an account with hierarchical namespace, and Azure ML takes none such as the account "
            "of a workspace",
            "Write kind: blob, or name another account by `account`",
        )
    if created and not _NAME.match(spec.container):
        return "container", Finding(
            "datastore-container-name",
            "",
            f"`{spec.container}` is no name for a {word}",
            "The stack creates it, and a name has 3 to 63 lower-case letters, digits and single hyphens, none at "
            "either end",
        )
    if spec.account is None and not created:
        return "container", Finding(
            "datastore-container-exists",
            "",
            f"The {word} `{spec.container}` is expected in the storage account of the workspace",
            f"The stack creates no {word} in an account that it does not create: it names the one that is there",
            f"Create it before a job reads or writes there, if it is not there yet: {_command(spec)}",
            Level.INFO,
        )
    return "", None


def _command(spec: Datastore) -> str:
    """The command that creates a container in an account that exists, without a key."""
    if spec.kind == "file":
        return f"az storage share-rm create --storage-account ACCOUNT --name {spec.container}"
    return f"az storage container create --account-name ACCOUNT --auth-mode login --name {spec.container}"
