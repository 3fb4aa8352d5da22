"""The whole of what a person writes into the settings of a stack, and the JSON Schema of the file for editors."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from amlstack.base.models import matching
from infra.settings.model.base import Location, SettingsModel, Tags, or_named
from infra.settings.model.cluster import Cluster, ClusterDefaults
from infra.settings.model.jobs import DataAsset, Datastore, Environment, JobFile, Secrets
from infra.settings.model.workspace import ResourceGroup, Workspace, WorkspaceAccess
from infra.settings.stackfile import NAMESPACE


class AzurePolicy(SettingsModel):
    """The rules at Azure's own gate."""

    effect: Literal["audit", "deny"] = "audit"
    """audit: what breaks a rule is reported; deny: what breaks a mandatory one is refused, by whatever tool it
    comes."""
    scope: Literal["resourceGroup", "subscription"] = "resourceGroup"
    """The reach of the rules: the stack's resource group, or the whole subscription."""
    exclude: tuple[str, ...] = ()
    """Codes of rules that are left out."""


INCLUDE = "include"
LISTS = ("clusters", "environments", "datastores", "data", "access", "jobs")
"""The lists whose entries may lie in files."""


class Include(SettingsModel):
    """Stands in a list of the settings for the entries of files; what reads them is ``infra.settings.reading``."""

    include: str | list[str]
    """A path or a list of paths in the project, each to a YAML file with a list of such entries; `clusters/*.yml`
    means all files named so, in the order of their names."""


class Settings(SettingsModel):
    """The whole namespace ``amlstack:``."""

    location: Location
    """Azure region of everything that does not name its own."""
    resource_group: Annotated[ResourceGroup, or_named("name", ResourceGroup)] | None = None
    """Resource group: a name, which the stack makes, or {existing: NAME}. When absent the one that the stack has,
    `rg-<project>-<stack>` for a new stack."""
    workspace: Annotated[Workspace, or_named("name", Workspace)]
    """The workspace: a name, or an object."""
    clusters: tuple[Cluster, ...] = ()
    """The clusters."""
    cluster_defaults: ClusterDefaults | None = None
    """Settings of each of the clusters that does not say otherwise: any key of `clusters[]` but `name`. `nodes`,
    `ssh` and `tags` are completed key by key."""
    environments: tuple[Environment, ...] = ()
    """Environments that jobs refer to by name."""
    datastores: tuple[Datastore, ...] = ()
    """Storage that jobs refer to by name."""
    data: tuple[DataAsset, ...] = ()
    """Data that jobs refer to by name."""
    jobs: tuple[Annotated[JobFile, or_named("file", JobFile)], ...] = ()
    """Job files."""
    access: tuple[WorkspaceAccess, ...] = ()
    """The roles that people, groups and applications get on the workspace."""
    secrets: Secrets = Field(default_factory=dict)
    """Secrets that variables of jobs name, each set by `pulumi config set --secret --path amlstack:secrets.NAME`.
    docs/how-to/secrets.md says who sees them."""
    tags: Tags = Field(default_factory=dict)
    """Tags of every resource that takes tags."""
    policies: str | None = Field(None, min_length=1)
    """JSON file that configures the rules, a path in the project; the policy pack takes the same file. The pack's
    own configuration when absent."""
    azure_policy: AzurePolicy | None = Field(None, alias="azurePolicy")
    """Assigns the rules in Azure itself, as Azure Policy definitions; nothing is assigned when absent."""
    assign_roles: bool = True
    """True lets the stack assign the roles that the identities of workspace and clusters need, which takes a
    deployer who may assign roles (Owner, User Access Administrator or Role Based Access Control Administrator).
    docs/explanation/identities.md has the commands for somebody else to run."""
    protect: Annotated[Literal["auto", "true", "false"], WithJsonSchema({"enum": ["auto", True, False]})] = "auto"
    """True lets the engine refuse to delete resources that hold data; auto: on every stack but `sandbox`."""
    stack_id: (
        Annotated[str, matching(r"^[A-Za-z0-9-]{8,64}\Z", "A stack's id has 8 to 64 letters, digits and '-'")] | None
    ) = None
    """Id of a stack whose state was lost, as its runs have it in the property `amlstack.stack`: this stack takes
    them over. A random one that the state keeps when absent."""
    quota: Literal["refuse", "warn", "off"] = "refuse"
    """The answer to clusters that the subscription's quota has no room for, or whose size is not offered in their
    region (docs/how-to/quota.md). off: Azure is not asked."""
    arm_endpoint: str | None = Field(None, alias="armEndpoint")
    """Resource manager that our provider asks, `https://host`; that of the cloud in `azure-native:environment`,
    else Azure's public one, when absent. The provider reads it by itself."""


def stack_file_schema() -> dict[str, Any]:
    """The schema of ``Pulumi.<stack>.yaml``: unknown keys of ours are marked, those of other namespaces are left."""
    # Python's end of text; the expressions of JSON Schema have another.
    settings = json.loads(json.dumps(Settings.model_json_schema()).replace(r"\\Z", "$"))
    for name in LISTS:
        entry = settings["properties"][name]["items"]
        files = {"type": "object", "required": [INCLUDE]}
        settings["properties"][name]["items"] = {"if": files, "then": {"$ref": "#/$defs/Include"}, "else": entry}
    # A key that an entry leaves out may be among the defaults, which no schema can look up.
    settings["$defs"]["Cluster"]["required"] = ["name"]
    for name in ("Nodes", "Ssh"):
        settings["$defs"][name].pop("required", None)
    settings["$defs"]["Include"] = Include.model_json_schema()
    properties = {f"{NAMESPACE}:{name}": schema for name, schema in settings["properties"].items()}
    others = f"^{NAMESPACE}:(?!({'|'.join(settings['properties'])})$)"
    config = {"type": "object", "properties": properties, "patternProperties": {others: False}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Stack settings of amlstack",
        "type": "object",
        "properties": {"config": config},
        "$defs": settings["$defs"],
    }
