"""The adoption of existing resources by a stack: the estate, its settings, and the engine's import file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from amlstack.base.api_versions import OF_PARTS
from amlstack.base.files import write_whole
from amlstack.catalog import sizes
from infra import resource_types
from infra.components.workspace.existing_workspace import PROVIDER
from infra.names import OWN_SETTINGS, Names, Part

if TYPE_CHECKING:
    from amlstack.cli.console import Progress
    from amlstack.provider.arm import ArmClient
    from infra.settings import Reading, Settings

Body = dict[str, Any]

_NAMED_BY_WORKSPACE: Final[Mapping[Part, str]] = {
    "storage": "storageAccount",
    "key_vault": "keyVault",
    "registry": "containerRegistry",
    "insights": "applicationInsights",
}
"""Part → property of the workspace that has its id."""


@dataclass(frozen=True, slots=True)
class Estate:
    """A workspace with what it stands on and what lies in it.

    Attributes:
        group: Body of the resource group; None where there is none.
        workspace: Body of the workspace likewise.
        parts: Ids of what the workspace stands on, as Azure writes them, by part.
        computes: Bodies of its compute, of every kind.
        schedules: Bodies of its schedules.
    """

    group: Body | None
    workspace: Body | None
    parts: Mapping[Part, str] = field(default_factory=dict)
    computes: tuple[Body, ...] = ()
    schedules: tuple[Body, ...] = ()


def read_estate(arm: ArmClient, names: Names) -> Estate:
    """Ask Azure.

    Args:
        arm: Azure Resource Manager.
        names: Where the stack's settings look for group and workspace.

    Raises:
        ArmError: Something could not be asked for; what is not there is no error.
    """
    group = _one(arm, names.group_id, OF_PARTS["group"])
    workspace = _one(arm, names.workspace_id) if group else None
    if workspace is None:
        return Estate(group, None)
    root = str(workspace["id"])
    return Estate(
        group,
        workspace,
        dict(_parts(arm, workspace)),
        tuple(arm.rows(f"{root}/computes")),
        # Azure's answers have the name of a schedule and no id (docs/maintain/recordings.md).
        tuple({**one, "id": f"{root}/schedules/{one['name']}"} for one in arm.rows(f"{root}/schedules")),
    )


def _parts(arm: ArmClient, workspace: Body) -> Iterator[tuple[Part, str]]:
    properties = workspace.get("properties") or {}
    for part, name in _NAMED_BY_WORKSPACE.items():
        if not (given := properties.get(name)):
            continue
        # The workspace repeats what it was created with, in whatever letter case.
        found = _one(arm, str(given), OF_PARTS[part])
        yield part, str((found or {}).get("id") or given)
        if part == "insights" and found is not None:
            inner = found.get("properties") or {}
            logs = inner.get("WorkspaceResourceId") or inner.get("workspaceResourceId")
            if logs:
                yield "logs", str((_one(arm, str(logs), OF_PARTS["logs"]) or {}).get("id") or logs)


def _one(arm: ArmClient, resource_id: str, *version: str) -> Body | None:
    answer = arm.get(resource_id, *version, allow=(404,))
    return answer.body if answer.status == 200 and isinstance(answer.body, dict) else None


OPTIONAL: Final[tuple[Part, ...]] = ("registry", "insights")
"""Parts without which a workspace can be."""


def workspace_settings(estate: Estate, names: Names) -> dict[str, Any]:
    """The settings of the workspace: its parts by the names that they have, or by id where they lie elsewhere."""
    found: dict[str, Any] = {"name": names.workspace, "adopted": True}
    for part in OWN_SETTINGS:
        part_id = estate.parts.get(part)
        if part_id is None:
            if part in OPTIONAL:
                found[part] = {"absent": True}
        elif _within(part_id, names):
            found[part] = {"name": part_id.rsplit("/", 1)[-1]}
        else:
            found[part] = {"existing": part_id}
    return found


def differs(estate: Estate, names: Names, *, adopted: bool) -> bool:
    """True where the settings differ from the workspace that exists."""
    if not adopted:
        return True
    for part in OWN_SETTINGS:
        there = estate.parts.get(part)
        if there is None:
            # Log analytics go with application insights; where those are somebody else's, so are these.
            if part in OPTIONAL and part not in names.without:
                return True
        elif part in names.without or names.id(part).lower() != there.lower():
            if part == "logs" and "insights" in names.elsewhere:
                continue
            return True
    return False


def cluster_settings(body: Body, location: str) -> dict[str, Any]:
    """The settings of a cluster that Azure has.

    Args:
        body: Its ARM body.
        location: The stack's own region.
    """
    compute = body["properties"]
    aml = compute.get("properties") or {}
    scale = aml.get("scaleSettings") or {}
    nodes = {"min": scale.get("minNodeCount", 0), "max": scale.get("maxNodeCount", 0)}
    if idle := scale.get("nodeIdleTimeBeforeScaleDown"):
        nodes["idle"] = idle
    known = sizes.get(str(aml.get("vmSize")))  # Azure answers a size in capitals
    size = known.name if known else aml.get("vmSize")
    found: dict[str, Any] = {"name": body["name"], "adopted": True, "size": size, "nodes": nodes}
    if str(aml.get("vmPriority")) == "LowPriority":
        found["priority"] = "low_priority"
    if subnet := (aml.get("subnet") or {}).get("id"):
        found["subnet"] = subnet
    if aml.get("enableNodePublicIp") is False:
        found["node_public_ip"] = False
    place = str(compute.get("computeLocation") or body.get("location") or "").replace(" ", "").lower()
    if place and place != location:
        found["location"] = place
    found["identity"] = _identity(body.get("identity") or {})
    optional = {"description": compute.get("description"), "tags": body.get("tags")}
    return {**found, **{name: value for name, value in optional.items() if value}}


def is_cluster(body: Body) -> bool:
    """True where a compute is one that a stack can declare."""
    return (body.get("properties") or {}).get("computeType") == "AmlCompute"


def _identity(given: Body) -> Any:
    users = sorted(given.get("userAssignedIdentities") or ())
    system = "systemassigned" in str(given.get("type", "")).replace(" ", "").lower()
    if users:
        return {"user_assigned": users, **({"type": "system"} if system else {})}
    return "system" if system else "none"


def _within(part_id: str, names: Names) -> bool:
    return part_id.lower().startswith(f"{names.group_id}/providers/".lower())


_PARTS: Final[Mapping[Part, tuple[str, str]]] = {
    "storage": (resource_types.STORAGE_ACCOUNT, "storage"),
    "key_vault": (resource_types.KEY_VAULT, "key-vault"),
    "registry": (resource_types.REGISTRY, "registry"),
    "logs": (resource_types.LOGS, "logs"),
    "insights": (resource_types.INSIGHTS, "insights"),
}
"""Part → type and name in the stack."""
_WORKSPACE, _CLUSTERS, _SCHEDULES = "in the workspace", "in the clusters", "in the schedules"

_PROVIDER = "of the workspace"


def provider_urn(stack: str, project: str) -> str:
    """URN of the provider that a stack has for a workspace in another subscription."""
    return f"urn:pulumi:{stack}::{project}::pulumi:providers:azure-native::{PROVIDER}"


class ImportFile:
    """The engine's import file: resources under the names and parents that the stack's program gives them.

    Parents come first.

    Args:
        provider: URN of the azure-native provider that they are registered with, which the state has already; the
            default one without it.
    """

    def __init__(self, provider: str | None = None) -> None:
        self._provider = provider
        self._resources: list[dict[str, Any]] = []

    @property
    def content(self) -> dict[str, Any]:
        """As ``pulumi import --file`` reads it."""
        named = {"nameTable": {_PROVIDER: self._provider}} if self._provider else {}
        return {**named, "resources": self._resources}

    @property
    def ids(self) -> list[str]:
        """Ids of what is imported."""
        return [str(one["id"]) for one in self._resources if "id" in one]

    def workspace(self, estate: Estate, names: Names, name: str, *, owns_group: bool = True) -> None:
        """Group, parts and workspace, as far as they are there and the stack's own.

        Args:
            estate: What there is.
            names: As the settings give them.
            name: The workspace's, which is that of its parent in the stack.
            owns_group: The settings do not say of the group that it exists for others too.
        """
        if estate.group is None:
            return
        self._parent(resource_types.WORKSPACE_PARENT, name, _WORKSPACE)
        if owns_group:
            self._add(resource_types.RESOURCE_GROUP, "group", str(estate.group["id"]), _WORKSPACE)
        if estate.workspace is None:
            return
        for part in OWN_SETTINGS:
            given = part in names.elsewhere or (part == "logs" and "insights" in names.elsewhere)
            if (part_id := estate.parts.get(part)) and not given:
                self._add(*_PARTS[part], part_id, _WORKSPACE)
        self._add(resource_types.WORKSPACE, "workspace", str(estate.workspace["id"]), _WORKSPACE)

    def clusters(self, ids: Mapping[str, str]) -> None:
        """Clusters, ids by name."""
        self._children(resource_types.CLUSTERS, _CLUSTERS, resource_types.COMPUTE, ids)

    def schedules(self, ids: Mapping[str, str]) -> None:
        """Schedules, ids by name."""
        self._children(resource_types.SCHEDULES, _SCHEDULES, resource_types.SCHEDULE, ids)

    def _children(self, parent: str, key: str, token: str, ids: Mapping[str, str]) -> None:
        if ids:
            self._parent(parent, parent.rsplit(":", 1)[-1].lower(), key)
        for name, resource_id in ids.items():
            self._add(token, name, resource_id, key)

    def _parent(self, token: str, name: str, key: str) -> None:
        self._resources.append({"type": token, "name": key, "logicalName": name, "component": True})

    def _add(self, token: str, name: str, resource_id: str, parent: str) -> None:
        # Names in the file are the file's own: a cluster may be called like a part.
        entry = {"type": token, "name": f"{token} {name}", "logicalName": name, "id": resource_id, "parent": parent}
        if token.startswith("azure-native:") and self._provider:
            entry["provider"] = _PROVIDER
        elif token.startswith("azure-native:"):
            entry["version"] = metadata.version("pulumi-azure-native")
        self._resources.append(entry)


@dataclass(frozen=True)
class Adoption:
    """An estate and the settings of the stack that takes it over.

    Attributes:
        progress: Where what was found is printed.
        reading: The stack's settings with their places.
        settings: The same without a fault.
        names: Where they look.
        found: What Azure has there.
        stack: The stack's name.
        answer: Where settings to write are printed.
        provider: URN of the stack's second provider, where the workspace lies in another subscription.
    """

    progress: Progress
    reading: Reading
    settings: Settings
    names: Names
    found: Estate
    stack: str
    answer: TextIO
    provider: str | None = None

    def write(self, output: Path) -> int:
        """Write the import file, or print the settings that have to be written first.

        Returns:
            0 when the file is written, else 1.
        """
        if self.found.group is None or self.found.workspace is None:
            group = self.found.group is None
            what = f"resource group `{self.names.group}`" if group else f"workspace `{self.names.workspace}`"
            self.progress.fail(
                f"there is no {what} in subscription {self.names.subscription}: write `amlstack:resource_group` and "
                "`amlstack:workspace` as Azure has them"
            )
            return 1
        owned = not self.settings.workspace.existing
        adopted = self.settings.workspace.adopted
        if owned and differs(self.found, self.names, adopted=adopted):
            self._advise(whole=True)
            self.progress.fail("nothing was written: write the settings above first, then run the same command again")
            return 1
        if self._undeclared and not self.settings.clusters:
            self._advise(whole=False)
        file = ImportFile(self.provider)
        if owned:
            given = self.settings.resource_group
            owns_group = not (given and given.existing)
            file.workspace(self.found, self.names, self.settings.workspace.name, owns_group=owns_group)
        declared = [one.name for one in self.settings.clusters]
        file.clusters({name: str(self._there[name.lower()]["id"]) for name in declared if name.lower() in self._there})
        schedules = {str(one["name"]): str(one["id"]) for one in self.found.schedules}
        mine = self._declared_schedules() if schedules else set()
        file.schedules({name: schedule_id for name, schedule_id in schedules.items() if name in mine})
        write_whole(output, json.dumps(file.content, indent=2) + "\n")
        self.progress.done(f"{len(file.ids)} resources in {output}")
        self._name_the_rest(set(schedules) - mine)
        if self.provider:
            self.progress.note(
                f"first: pulumi up --stack {self.stack} --target '{self.provider}' --yes, which makes the provider of "
                f"subscription {self.names.subscription} and nothing in Azure"
            )
        self.progress.note(
            f"next: pulumi import --file {output} --stack {self.stack} --yes --protect=false --generate-code=false, "
            f"then pulumi preview --stack {self.stack}, which shows no change of what was imported"
        )
        return 0

    @cached_property
    def _there(self) -> dict[str, Body]:
        """Clusters by their names in lower case, which Azure does not tell apart."""
        return {str(one["name"]).lower(): one for one in self.found.computes if is_cluster(one)}

    @property
    def _undeclared(self) -> list[Body]:
        declared = {one.name.lower() for one in self.settings.clusters}
        return [body for name, body in self._there.items() if name not in declared]

    def _declared_schedules(self) -> set[str]:
        """Names of the schedules in the stack's job files."""
        from amlstack.catalog import clock
        from infra.declaration import declare

        return {run.name for run in declare(self.reading, on=clock.today()).runs if run.is_schedule}

    def _advise(self, *, whole: bool) -> None:
        """Print the settings of what there is."""
        import yaml

        text: dict[str, object] = {}
        if whole:
            text["amlstack:resource_group"] = self.names.group
            text["amlstack:workspace"] = workspace_settings(self.found, self.names)
        if self._undeclared:
            text["amlstack:clusters"] = [cluster_settings(one, self.settings.location) for one in self._undeclared]
        self.progress.step(f"the settings of what there is, for Pulumi.{self.stack}.yaml under `config:`")
        self.answer.write(yaml.safe_dump(text, sort_keys=False, width=120))

    def _name_the_rest(self, schedules: set[str]) -> None:
        """Print the declared schedules that are absent, and those that exist and stay outside."""
        note = self.progress.note
        for one in self.settings.clusters:
            if one.name.lower() not in self._there:
                note(f"cluster `{one.name}` is declared and not there: `up` creates it")
            elif not one.adopted:
                note(f"cluster `{one.name}` has no `adopted: true`: `up` changes what its settings do not say")
        for body in self._undeclared:
            note(f"cluster `{body['name']}` is there and not declared: it stays outside the stack")
        for body in self.found.computes:
            if not is_cluster(body):
                note(f"compute `{body['name']}` is no cluster: it stays outside the stack")
        for name in sorted(schedules):
            note(f"schedule `{name}` is there and not declared: it stays outside the stack")
