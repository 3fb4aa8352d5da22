"""Security settings of a workspace, with the defaults that depend on the stack.

Every stack but `sandbox`, which holds no data of its own, is closed and kept unless its settings say otherwise. A
workspace that was imported is as it was found, and has of these things what its settings say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from infra.names import Part
    from infra.settings import Settings

SANDBOX: Final = "sandbox"
"""The stack whose resources may be lost: it holds no data of its own."""

SOFT_DELETE_DAYS: Final = 7

CATEGORIES: Final = (
    "AmlComputeClusterEvent",
    "AmlComputeCpuGpuUtilization",
    "AmlComputeJobEvent",
    "AmlRunStatusChangedEvent",
    "ComputeInstanceEvent",
    "DataSetChangeEvent",
    "DataStoreChangeEvent",
    "EnvironmentChangeEvent",
    "ModelsChangeEvent",
    "PipelineChangeEvent",
    "RunEvent",
)
"""Logs about changes, clusters and runs. Those about reading are many, and are paid for by size."""

_LOCKABLE: Final[tuple[Part, ...]] = ("storage", "key_vault", "registry")

_SKUS: Final = {
    "lrs": "Standard_LRS",
    "zrs": "Standard_ZRS",
    "grs": "Standard_GRS",
    "gzrs": "Standard_GZRS",
    "ragrs": "Standard_RAGRS",
    "ragzrs": "Standard_RAGZRS",
}


@dataclass(frozen=True, slots=True)
class Security:
    """A workspace's security, without anything left open.

    Attributes:
        public: Whether the internet reaches it at all.
        allowed: The addresses that do; empty for all.
        identity: Whose user-assigned identity is the primary one: the stack's, a user's, or there is none.
        soft_delete_days: Of blobs and containers; 0 for none.
        infrastructure_encryption: Of a storage account that is made now.
        categories: Logs that go to log analytics.
        locks: Parts with a lock against deletion.
        default: Who asked for nothing gets all of the above: the stack is not `sandbox`, and made its workspace.
    """

    public: bool
    allowed: tuple[str, ...]
    identity: Literal["stack", "user", "system"]
    soft_delete_days: int
    infrastructure_encryption: bool
    categories: tuple[str, ...]
    locks: tuple[Part, ...]
    default: bool = True

    @property
    def access(self) -> str:
        """``Enabled`` or ``Disabled``, as ``publicNetworkAccess`` has it."""
        return "Enabled" if self.public else "Disabled"

    @property
    def limited(self) -> bool:
        """Whether anybody is kept out."""
        return not self.public or bool(self.allowed)


def is_protected(settings: Settings, stack: str) -> bool:
    """Whether the engine refuses to delete what holds data."""
    return stack != SANDBOX if settings.protect == "auto" else settings.protect == "true"


def of_stack(settings: Settings, stack: str) -> Security:
    """The security of a stack's workspace.

    Args:
        settings: The stack's settings.
        stack: Its name; an empty one counts as a stack that holds data.
    """
    spec = settings.workspace
    closed = stack != SANDBOX and not spec.adopted
    network, logs = spec.public_network, spec.diagnostics
    own = "user" if spec.identity.primary else "stack" if closed else "system"
    days, twice = spec.storage.soft_delete_days, spec.storage.infrastructure_encryption
    categories: tuple[str, ...] = CATEGORIES if closed else ()
    if spec.insights.existing or spec.insights.absent:  # the stack then has no log analytics
        categories = ()
    elif logs is not None:
        categories = (logs.categories or CATEGORIES) if logs.enabled else ()
    return Security(
        public=not closed if network is None else network.enabled,
        allowed=network.allow if network is not None and network.enabled else (),
        identity=spec.identity.type or own,  # type: ignore[arg-type]
        soft_delete_days=(SOFT_DELETE_DAYS if closed else 0) if days is None else days,
        infrastructure_encryption=closed if twice is None else twice,
        categories=categories,
        locks=tuple(part for part in _LOCKABLE if part in spec.locks),
        default=closed,
    )


def sku(redundancy: str) -> str:
    """The storage account's SKU."""
    return _SKUS[redundancy]
