"""The security of a stack's workspace: its defaults, what it is on the wire, and what is wrong with it.

Every stack but `sandbox`, which holds no data of its own, is closed and kept unless its settings say otherwise. A
workspace that was imported is as it was found, and has of these things what its settings say.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from amlstack.base.findings import Level
from amlstack.base.text import did_you_mean
from amlstack.catalog.files import rows
from infra.settings import CustomEnvironment, Settings
from infra.settings.repair import Found, stated_at

if TYPE_CHECKING:
    from infra.names import Part
    from infra.settings.stackfile import Loc

SANDBOX: Final = "sandbox"
"""The stack whose resources may be lost: it holds no data of its own."""

SOFT_DELETE_DAYS: Final = 7

CATEGORIES: Final[tuple[str, ...]] = rows("log_categories")[0]["unless_chosen"]
"""Logs about changes, clusters and runs. Those about reading are many, and are paid for by size."""

_LOCKABLE: Final[tuple[Part, ...]] = ("storage", "key_vault", "registry")

SKUS: Final = {
    "lrs": "Standard_LRS",
    "zrs": "Standard_ZRS",
    "grs": "Standard_GRS",
    "gzrs": "Standard_GZRS",
    "ragrs": "Standard_RAGRS",
    "ragzrs": "Standard_RAGZRS",
}
"""Of a storage account, by its redundancy."""


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
        """True where anybody is kept out."""
        return not self.public or bool(self.allowed)


def is_protected(settings: Settings, stack: str) -> bool:
    """True where the engine refuses to delete the resources that hold data."""
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


def storage_rules(security: Security) -> dict[str, Any] | None:
    """Network rules of a storage account; None for one that everybody reaches.

    It knows no ranges of one or two addresses.
    Source: learn.microsoft.com/azure/storage/common/storage-network-security-limitations (2026-11-22).
    """
    if not security.limited:
        return None
    allowed: list[str] = []
    for text in security.allowed:
        network = ipaddress.IPv4Network(text)
        allowed += map(str, network) if network.prefixlen > 30 else [text]
    rules = [{"iPAddressOrRange": one, "action": "Allow"} for one in allowed]
    # Trusted services and the workspace itself, as azure-ai-ml 1.35 makes a workspace with a private network.
    return {"defaultAction": "Deny", "bypass": "AzureServices", "ipRules": rules}


def vault_rules(security: Security) -> dict[str, Any] | None:
    """Network rules of a key vault; None for one that everybody reaches. It gives a single address back as a range."""
    if not security.limited:
        return None
    rules = [{"value": str(ipaddress.IPv4Network(text))} for text in security.allowed]
    return {"defaultAction": "Deny", "bypass": "AzureServices", "ipRules": rules}


def registry_rules(security: Security) -> dict[str, Any] | None:
    """Network rules of a registry with an allow-list; one that is closed altogether has none."""
    if not security.allowed:
        return None
    return {
        "defaultAction": "Deny",
        "ipRules": [{"iPAddressOrRange": one, "action": "Allow"} for one in security.allowed],
    }


def check(settings: Settings, stack: str) -> Iterator[Found]:
    """Findings on a stack's workspace, each with the setting that it is about.

    Args:
        settings: The stack's settings.
        stack: Its name.
    """
    if settings.workspace.existing:
        return
    secured = of_stack(settings, stack)
    if stack or settings.workspace.public_network is not None:  # of an unknown stack the default is not known
        yield from _reach(settings, secured)
    yield from _images(settings, secured)
    yield from _encryption(settings, secured)
    yield from _logs(settings)


def _logs(settings: Settings) -> Iterator[Found]:
    asked, insights = settings.workspace.diagnostics, settings.workspace.insights
    if asked is not None and asked.enabled and (insights.existing or insights.absent):
        yield stated_at(("workspace", "diagnostics"), "diagnostics-without-logs")


def _reach(settings: Settings, secured: Security) -> Iterator[Found]:
    loc: Loc = ("workspace", "public_network")
    if not secured.public and not _has_private_endpoints(settings):
        uploads = f" What {_listed(settings)} read from this machine is not uploaded then." if settings.jobs else ""
        yield stated_at(loc, "workspace-unreachable", Level.WARNING, uploads=uploads)
    if secured.allowed and not settings.workspace.adopted:
        yield stated_at((*loc, "allow"), "workspace-allow-list", Level.WARNING)


def _has_private_endpoints(settings: Settings) -> bool:
    network = settings.workspace.network
    vnet = network.vnet if network is not None else None
    return vnet is not None and vnet.endpoints is not None and "workspace" in vnet.private_endpoints


def _listed(settings: Settings) -> str:
    files = [f"`{job.file}`" for job in settings.jobs]
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


def _images(settings: Settings, secured: Security) -> Iterator[Found]:
    builder, loc = settings.workspace.image_build_compute, ("workspace", "image_build_compute")
    names = [cluster.name for cluster in settings.clusters]
    if builder is not None and builder.lower() not in {name.lower() for name in names}:
        yield stated_at(loc, "image-build-compute-unknown", builder=builder, remedy=did_you_mean(builder, names))
    built = [each.name for each in settings.environments if isinstance(each, CustomEnvironment) and each.conda]
    if builder is None and built and secured.limited:
        yield stated_at(
            loc, "image-build-compute-missing", Level.WARNING, built=", ".join(f"`{name}`" for name in built)
        )


def _encryption(settings: Settings, secured: Security) -> Iterator[Found]:
    spec, loc = settings.workspace.encryption, ("workspace", "encryption")
    if spec is None:
        return
    if secured.identity == "system":
        yield stated_at(loc, "encryption-without-identity")
    if spec.own and not settings.workspace.key_vault.purge_protection:
        yield stated_at(("workspace", "key_vault", "purge_protection"), "encryption-without-purge-protection")
    if spec.own and spec.service_side and not secured.public:
        yield stated_at((*loc, "service_side"), "encryption-service-side")
    if not spec.own:
        vault = str(spec.key_vault).rsplit("/", 1)[-1]
        yield stated_at((*loc, "key_vault"), "encryption-vault-unknown", Level.INFO, vault=vault)
