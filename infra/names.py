"""A stack's subscription and tenant, and the names and ARM ids that are known before anything exists.

Everything has a name of its own instead of a random one, so that ids can be composed at preview and a body can say what
it refers to. Names that are taken once in the whole of Azure end in a hash of where they belong.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from amlstack.base.findings import Finding

if TYPE_CHECKING:
    from infra.settings import Settings

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NOBODY = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Account:
    """A subscription in its tenant."""

    subscription: str
    tenant: str


def resolve_account(config: Mapping[str, str], environ: Mapping[str, str]) -> tuple[Account, tuple[Finding, ...]]:
    """Look up the account as azure-native does: its configuration first, then the environment.

    Args:
        config: The engine's configuration, ``namespace:key`` → value.
        environ: Environment variables.

    Returns:
        The account, with an id of zeros for what was not found, and a finding on each of those.
    """
    found: list[Finding] = []
    ids = []
    for word, what in (("subscription", "subscription"), ("tenant", "tenant")):
        key, upper = f"azure-native:{word}Id", word.upper()
        value = (config.get(key) or environ.get(f"ARM_{upper}_ID") or environ.get(f"AZURE_{upper}_ID") or "").strip()
        ids.append(value if _UUID.fullmatch(value) else _NOBODY)
        if not _UUID.fullmatch(value):
            seen = f"the {what} id is `{value}`" if value else f"no {what} is named"
            rule = "Names and ids are made from it before anything exists; it is a UUID"
            remedy = f"`pulumi config set {key} …`, or set ARM_{upper}_ID; `az account show` prints it"
            found.append(Finding("account", key, seen, rule, remedy))
    return Account(*ids), tuple(found)


Part = Literal[
    "group", "workspace", "storage", "key_vault", "registry", "logs", "insights", "identity", "workspace_identity"
]
"""Parts of a stack that have a composed name, or an id that somebody gives."""

KINDS: Final[Mapping[Part, str]] = {
    "group": "Microsoft.Resources/resourceGroups",
    "workspace": "Microsoft.MachineLearningServices/workspaces",
    "storage": "Microsoft.Storage/storageAccounts",
    "key_vault": "Microsoft.KeyVault/vaults",
    "registry": "Microsoft.ContainerRegistry/registries",
    "logs": "Microsoft.OperationalInsights/workspaces",
    "insights": "Microsoft.Insights/components",
    "identity": "Microsoft.ManagedIdentity/userAssignedIdentities",
    "workspace_identity": "Microsoft.ManagedIdentity/userAssignedIdentities",
}
"""ARM type of each part."""

OWN_SETTINGS: Final[tuple[Part, ...]] = ("storage", "key_vault", "registry", "logs", "insights")
"""Parts whose settings may give a name, or the id of one that exists."""

_DIGITS = 10
_IDENTITY = 128
"""Characters of an identity's name, at most."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one stack.

    Attributes:
        subscription: Subscription id.
        group: Resource group.
        workspace: Workspace.
        salt: What changes the names that are taken once in the whole of Azure.
        elsewhere: ARM ids of parts that somebody else owns, in any resource group or subscription.
        called: Names of parts that have others than they would get: those that were imported.
        without: Parts that an imported workspace does not have.
    """

    subscription: str
    group: str
    workspace: str
    salt: str = ""
    elsewhere: Mapping[Part, str] = field(default_factory=dict, hash=False)
    called: Mapping[Part, str] = field(default_factory=dict, hash=False)
    without: frozenset[Part] = frozenset()

    @classmethod
    def of(cls, settings: Settings, *, project: str, stack: str, subscription: str) -> Names:
        """The names of a new stack's resources, from its settings."""
        spec = settings.workspace
        given = settings.resource_group.called if settings.resource_group else ""
        if spec.existing:
            return cls._on(spec.existing, given, subscription, f"{project}-{stack}")
        group = given or _group_of(project, stack)
        parts = {part: getattr(spec, part) for part in OWN_SETTINGS}
        return cls(
            subscription,
            group,
            spec.name,
            spec.name_salt,
            {part: own.existing for part, own in parts.items() if own.existing},
            {part: own.name for part, own in parts.items() if own.name},
            frozenset(part for part, own in parts.items() if getattr(own, "absent", False)),
        )

    @classmethod
    def of_workspace(cls, settings: Mapping[str, Any], *, project: str, stack: str, subscription: str) -> Names | None:
        """The same from settings as they are written, for who needs no more than group and workspace.

        Args:
            settings: Of our namespace, without its prefix; nothing else of them is judged.
            project: Name of the project.
            stack: Name of the stack.
            subscription: Subscription id.

        Returns:
            None where the settings name no workspace.
        """
        written = settings.get("workspace")
        spec = written if isinstance(written, dict) else {"name": written}
        group = settings.get("resource_group")
        if isinstance(group, dict):
            group = group.get("existing") or group.get("name")
        group = group if isinstance(group, str) else ""
        if isinstance(existing := spec.get("existing"), str) and existing:
            return cls._on(existing, group, subscription, f"{project}-{stack}")
        name = spec.get("name")
        return cls(subscription, group or _group_of(project, stack), name) if isinstance(name, str) and name else None

    @classmethod
    def _on(cls, existing: str, group: str, subscription: str, stack: str) -> Names:
        """The names on a workspace that exists; what the stack makes beside it is named after the stack."""
        if existing.startswith("/"):
            _, _, subscription, _, group, *_, existing = existing.split("/")
        # Other stacks are on the same workspace, in the same group.
        words = _dashed(f"{existing}-{stack}")
        identity = f"id-{words}"
        if len(identity) > _IDENTITY:
            digest = hashlib.sha256(words.encode()).hexdigest()[:_DIGITS]
            identity = f"{identity[: _IDENTITY - _DIGITS - 1]}-{digest}"
        return cls(subscription, group, existing, called={"identity": identity})

    def within(self, group: str | None) -> Names:
        """The same names in the resource group that the stack has; None leaves them as they are."""
        return replace(self, group=group) if group else self

    def standing_on(self, parts: Mapping[Part, str]) -> Names:
        """The same names, with the ids of parts that somebody else owns."""
        return replace(self, elsewhere={**self.elsewhere, **parts})

    def with_identity(self, name: str | None) -> Names:
        """The same names with the identity that the stack has; None leaves them as they are."""
        return replace(self, called={**self.called, "identity": name}) if name else self

    @property
    def storage(self) -> str:
        """Storage account: 3 to 24 lower-case letters and digits."""
        return self.called.get("storage") or f"st{re.sub(r'[^a-z0-9]', '', self.workspace.lower())[:12]}{self._hash()}"

    @property
    def key_vault(self) -> str:
        """Key vault: 3 to 24 letters, digits and single '-', a letter first."""
        if "key_vault" in self.called:
            return self.called["key_vault"]
        stem = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]", "-", self.workspace.lower()))[:10].strip("-")
        return f"kv-{stem}-{self._hash()}"

    @property
    def registry(self) -> str:
        """Container registry: 5 to 50 letters and digits."""
        return self.called.get("registry") or f"cr{re.sub(r'[^a-z0-9]', '', self.workspace.lower())}{self._hash()}"

    @property
    def logs(self) -> str:
        """Log analytics workspace: 4 to 63 letters, digits and '-'."""
        return self.called.get("logs") or f"log-{_dashed(self.workspace)}"

    @property
    def insights(self) -> str:
        """Application insights."""
        return self.called.get("insights") or f"appi-{_dashed(self.workspace)}"

    @property
    def identity(self) -> str:
        """The clusters' user-assigned identity: 3 to 128 letters, digits, '-' and '_', a letter or digit first."""
        return self.called.get("identity") or f"id-{_dashed(self.workspace)}"

    @property
    def workspace_identity(self) -> str:
        """The user-assigned identity of the workspace itself."""
        return f"id-{_dashed(self.workspace)}-workspace"

    @property
    def identity_id(self) -> str:
        """ARM id of the clusters' identity."""
        return self.id("identity")

    @property
    def group_id(self) -> str:
        """ARM id of the resource group."""
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.group}"

    @property
    def workspace_id(self) -> str:
        """ARM id of the workspace."""
        return self.id("workspace")

    def cluster_id(self, name: str) -> str:
        """ARM id of a cluster."""
        return f"{self.workspace_id}/computes/{name}"

    def id(self, part: Part) -> str:
        """ARM id of a part, wherever it lies."""
        if part == "group":
            return self.group_id
        return self.elsewhere.get(part) or self.id_of(KINDS[part], getattr(self, part))

    def id_of(self, kind: str, name: str) -> str:
        """ARM id of a resource in the group, ``kind`` as in ``Microsoft.Storage/storageAccounts``."""
        return f"{self.group_id}/providers/{kind}/{name}"

    def _hash(self) -> str:
        # ARM compares ids without letter case, so the same place gives the same names however it is written.
        place = f"{self.workspace_id.lower()}\n{self.salt}"
        return hashlib.sha256(place.encode()).hexdigest()[:_DIGITS]


def _group_of(project: str, stack: str) -> str:
    return re.sub(r"[^\w.()-]", "-", f"rg-{project}-{stack}")[:90].rstrip(".")


def _dashed(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")
