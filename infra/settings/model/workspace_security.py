"""As whom the workspace acts, how its data are encrypted and kept, and what is recorded of it."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from amlstack.base.models import matching
from infra.settings.model.base import ObjectId, SettingsModel, given_by_id
from infra.settings.model.cluster import IdentityId, SubnetId

VaultId = Annotated[str, given_by_id("Microsoft.KeyVault/vaults")]

_NAME = r"[0-9A-Za-z-]{1,127}"
_URL = rf"https://[0-9A-Za-z-]{{3,24}}\.vault\.[a-z.-]+/keys/{_NAME}(/[0-9a-f]{{32}})?"

KeyReference = Annotated[
    str,
    matching(
        rf"^({_NAME}|{_URL})\Z",
        "A key is a name (letters, digits, '-'), which the stack makes, or the address of one that exists, "
        "https://VAULT.vault.azure.net/keys/NAME/VERSION",
    ),
]

Category = Literal[
    "AmlComputeClusterEvent",
    "AmlComputeClusterNodeEvent",
    "AmlComputeCpuGpuUtilization",
    "AmlComputeJobEvent",
    "AmlRunStatusChangedEvent",
    "ComputeInstanceEvent",
    "DataLabelChangeEvent",
    "DataLabelReadEvent",
    "DataSetChangeEvent",
    "DataSetReadEvent",
    "DataStoreChangeEvent",
    "DataStoreReadEvent",
    "DeploymentEventACI",
    "DeploymentEventAKS",
    "DeploymentReadEvent",
    "EnvironmentChangeEvent",
    "EnvironmentReadEvent",
    "InferencingOperationACI",
    "InferencingOperationAKS",
    "ModelsActionEvent",
    "ModelsChangeEvent",
    "ModelsReadEvent",
    "PipelineChangeEvent",
    "PipelineReadEvent",
    "RunEvent",
    "RunReadEvent",
]
"""Categories of a workspace's resource logs: learn.microsoft.com/azure/azure-monitor/reference/supported-logs/
microsoft-machinelearningservices-workspaces-logs (2026-11-22)."""

LOCKABLE = ("storage", "key_vault", "registry")
"""What a lock against deletion may be on."""


class WorkspaceIdentity(SettingsModel):
    """As whom the workspace acts on what it stands on; a bare string is its `type`."""

    type: Literal["stack", "system", "user"] | None = Field(
        None,
        description="stack: a user-assigned identity that the stack makes, as the primary one; user: the one in "
        "`primary`; system: the workspace's own, and no other. When absent: user beside `primary`, else stack; on the "
        "stack `sandbox` system.",
    )
    primary: IdentityId | None = Field(
        None, description="ARM id of a user-assigned identity that exists, as the primary one."
    )
    principal_id: ObjectId | None = Field(
        None,
        description="Object id of `primary`, to which the stack then assigns the roles of docs/identities.md; without "
        "it they are its owner's concern.",
    )
    keep_system: bool = Field(
        True,
        description="Whether a system-assigned identity stays beside the primary one. A workspace that has one can be "
        "given another beside it; whether Azure takes it away is not documented.",
    )

    @model_validator(mode="after")
    def _agree(self) -> WorkspaceIdentity:
        if self.type == "user" and self.primary is None:
            raise ValueError("`type` is user and `primary` is missing|`primary` says which identity")
        if self.type in {"stack", "system"} and self.primary is not None:
            raise ValueError(f"`type` is {self.type} and `primary` is given|`primary` goes with `type: user`")
        if self.principal_id is not None and self.primary is None:
            raise ValueError("`principal_id` is given without `primary`|It is the object id of `primary`")
        return self


class Encryption(SettingsModel):
    """A key of your own for the workspace's metadata; a bare string is its `key`."""

    key: KeyReference = Field(
        description="Name of a key that the stack makes in its own key vault, or the address of one that exists "
        "(https://VAULT.vault.azure.net/keys/NAME/VERSION)."
    )
    key_vault: VaultId | None = Field(
        None, description="ARM id of the key vault of a key that exists; it is in the workspace's subscription."
    )
    service_side: bool = Field(
        False,
        description="Whether the encrypted metadata stay with Microsoft (preview) instead of in a Cosmos DB, a search "
        "service and a storage account in your subscription.",
    )

    @property
    def own(self) -> bool:
        """True where the stack makes the key."""
        return "/" not in self.key

    @model_validator(mode="after")
    def _agree(self) -> Encryption:
        if self.own and self.key_vault is not None:
            raise ValueError(
                "`key_vault` is given and `key` is a name|A key that the stack makes is in its own vault; of one that "
                "exists write the address"
            )
        if self.own:
            return self
        if self.key_vault is None:
            raise ValueError("`key` is an address and `key_vault` is missing|Azure asks for the ARM id of its vault")
        vault, given = self.key.removeprefix("https://").partition(".")[0], self.key_vault.rsplit("/", 1)[-1]
        if given.lower() != vault.lower():
            raise ValueError(f"`key` is in the vault `{vault}` and `key_vault` is `{given}`|Both name the same vault")
        return self


class ServerlessCompute(SettingsModel):
    """The network that serverless jobs get their nodes in."""

    subnet: SubnetId = Field(description="ARM id of the subnet that serverless nodes join.")
    node_public_ip: bool = Field(True, description="Whether serverless nodes get public addresses.")


class Diagnostics(SettingsModel):
    """Resource logs of the workspace that go to log analytics; true or false stands for `enabled` alone."""

    enabled: bool = Field(True, description="Whether any go there.")
    categories: tuple[Category, ...] = Field(
        (),
        description="Categories of logs, as Azure Monitor names them; when absent those about changes, clusters and "
        "runs, without those about reading.",
    )


def _as_diagnostics(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return {"categories": value}
    return {"enabled": value} if isinstance(value, bool) or value in ("true", "false") else value


DiagnosticsField = Annotated[Diagnostics, BeforeValidator(_as_diagnostics, json_schema_input_type=bool | Diagnostics)]


def _as_locks(value: Any) -> Any:
    if isinstance(value, bool) or value in ("true", "false"):
        return LOCKABLE if str(value).lower() == "true" else ()
    return value


def _lockable(value: str) -> str:
    if value in LOCKABLE:
        return value
    if value in {"group", "resource_group", "workspace"}:
        raise ValueError(
            f"`locks` names `{value}`|Clusters in a locked group or workspace stop scaling, as Azure deletes nodes "
            "there; locks go on storage, key_vault and registry"
        )
    raise ValueError(f"`locks` names `{value}`|Locks go on storage, key_vault and registry")


_Lockable = Annotated[str, AfterValidator(_lockable), WithJsonSchema({"enum": list(LOCKABLE)})]
LocksField = Annotated[
    tuple[_Lockable, ...], BeforeValidator(_as_locks, json_schema_input_type=bool | tuple[_Lockable, ...])
]


_MOST = 200
"""Rules of a workspace: learn.microsoft.com/azure/machine-learning/how-to-configure-private-link (2026-11-22)."""

_NOT_PUBLIC = tuple(
    map(
        ipaddress.IPv4Network,
        ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
         "192.168.0.0/16", "224.0.0.0/3"),
    )
)  # fmt: skip


def _public(text: str) -> str:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(
            f"`{text}` is no address|An address is written as 203.0.113.7, a range of them as 203.0.113.0/24"
        ) from None
    if network.version != 4:
        raise ValueError(f"`{text}` is an IPv6 address|Azure's rules for addresses take IPv4 only")
    if "/" in text and str(network) != text:
        raise ValueError(f"`{text}` is no range of addresses: it begins at {network.network_address}|Write {network}")
    if any(ipaddress.IPv4Network(network).overlaps(one) for one in _NOT_PUBLIC):
        raise ValueError(
            f"`{text}` is not an address of the internet|Rules for addresses are about the internet; who has a "
            "private address comes in through a private endpoint"
        )
    return text


Address = Annotated[str, AfterValidator(_public)]


class PublicNetwork(SettingsModel):
    """Access from the internet to the workspace and what it stands on; true or false stands for `enabled` alone."""

    enabled: bool = Field(True, description="Whether they answer from the internet at all, to Entra ID only.")
    allow: tuple[Address, ...] = Field(
        (),
        max_length=_MOST,
        description="Public IPv4 addresses and ranges (203.0.113.0/24), up to 200, from which they answer; all when "
        "absent.",
    )


def _as_object(value: Any) -> Any:
    if value is None or isinstance(value, dict | PublicNetwork):
        return value
    if isinstance(value, list | tuple):
        return {"allow": value}
    if isinstance(value, bool) or value in {"true", "false"}:
        return {"enabled": value}
    raise ValueError(
        f"`public_network` must be true, false or an object with `allow`, got `{str(value)[:60]}`|Write false, true, "
        "or {allow: [203.0.113.0/24]}"
    )


PublicNetworkField = Annotated[
    PublicNetwork, BeforeValidator(_as_object, json_schema_input_type=bool | tuple[str, ...] | PublicNetwork)
]
