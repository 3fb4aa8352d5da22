"""The whole of what a person writes into the settings of a stack, and the JSON Schema of the file for editors."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from amlstack.base.models import UNION_TAG, matching
from amlstack.catalog.fabric import Block
from infra.settings.model.base import AssetName, Location, SettingsModel, Tags, arm_id, named, or_named
from infra.settings.model.cluster import Cluster, ClusterDefaults
from infra.settings.model.workspace import ResourceGroup, Workspace, WorkspaceAccess
from infra.settings.stackfile import NAMESPACE

SecretName = Annotated[str, named("SecretName")]
VariableName = Annotated[str, named("VariableName")]
Secrets = dict[SecretName, Annotated[str, Field(min_length=1)]]


class SecretVariable(SettingsModel):
    """The value of a variable: a secret of the stack."""

    secret: SecretName
    """Name of the secret under `amlstack:secrets`."""


class CuratedEnvironment(SettingsModel):
    """A curated environment, referred to and never registered; a bare string is its name."""

    curated: AssetName
    """Name in the `azureml` registry, e.g. acpt-pytorch-2.8-cuda12.6."""
    version: Annotated[str, matching(r"^\d+\Z", 'A version is a number in quotes, for example "12"')] | None = None
    """Its version, which pins it; label `latest` when absent."""


class CustomEnvironment(SettingsModel):
    """An environment that is registered in the workspace under a version made from its content."""

    name: AssetName
    """Name under which jobs refer to it."""
    image: str = Field(min_length=1)
    """Docker image that it builds on."""
    conda: str | None = None
    """Conda file, a path in the project."""


def _kind(value: Any) -> str:
    has_curated = isinstance(value, CuratedEnvironment) or (isinstance(value, dict) and "curated" in value)
    return UNION_TAG + (CuratedEnvironment if has_curated else CustomEnvironment).__name__


Environment = Annotated[
    Annotated[CuratedEnvironment, Tag(f"{UNION_TAG}CuratedEnvironment")]
    | Annotated[CustomEnvironment, Tag(f"{UNION_TAG}CustomEnvironment")],
    Discriminator(_kind),
    or_named("curated", CuratedEnvironment | CustomEnvironment),
]


DatastoreName = Annotated[str, named("DatastoreName")]
_ACCOUNT = arm_id("Microsoft.Storage/storageAccounts").removesuffix("[^/]+")
StorageAccountRef = Annotated[
    str,
    matching(
        rf"^({_ACCOUNT})?[a-z0-9]{{3,24}}\Z",
        "An account is a name of 3 to 24 lower-case letters and digits, or an ARM id, "
        "/subscriptions/…/providers/Microsoft.Storage/storageAccounts/<name>",
    ),
]
_KEYS = frozenset(
    {"account_key", "key", "sas_token", "sas", "client_secret", "client_id", "tenant_id", "certificate", "credentials"}
)
"""Keys of a datastore's credential in azure-ai-ml's own files."""


class Datastore(SettingsModel):
    """A datastore that goes by identities: whoever reads or writes does so under a role on the account."""

    name: DatastoreName
    """Name in the workspace, as in `azureml://datastores/NAME/paths/…`: lower-case letters, digits, '_'."""
    kind: Literal["blob", "adls_gen2", "file"] = "blob"
    """blob: a container of blobs; adls_gen2: a file system of an account with hierarchical namespace; file: a file
    share."""
    account: StorageAccountRef | None = None
    """Storage account that exists: the name of one in the stack's resource group, or the ARM id of any other. It is
    not changed, but for the roles of the clusters' identities on it. The workspace's own account when absent."""
    container: str = Field(min_length=1, max_length=63)
    """Container, file system or share. In an account that the stack creates, which is that of its workspace, it is
    created and deleted with the datastore; everywhere else it exists already, and stays."""
    read_only: bool = False
    """The clusters' identities get the right to read the account, not to write to it."""
    description: str | None = None
    """A sentence for people who find the datastore in the studio."""
    tags: Tags = Field(default_factory=dict)
    """Tags of the datastore."""

    @model_validator(mode="before")
    @classmethod
    def _without_keys(cls, value: Any) -> Any:
        found = sorted(_KEYS & value.keys()) if isinstance(value, dict) else []
        if found:
            raise ValueError(
                f"`{found[0]}` is a credential|A stack's datastores go by identities: a key in a datastore is handed "
                "to everybody who may use the workspace, does not expire, and many tenants deny accounts that take "
                "keys; leave it out, and give whoever reads the data a role on the account"
            )
        return value


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class DataAsset(SettingsModel):
    """One data asset; jobs read it as `azureml:NAME@latest` or `azureml:NAME:VERSION`."""

    name: AssetName
    """Name under which jobs refer to it."""
    path: str = Field(min_length=1)
    """The place of the data: a file or folder of this machine, a path in the project, which `up` uploads; or an
    address (`azureml://datastores/NAME/paths/…`, `https://…`), which is registered as it is."""
    type: Literal["uri_folder", "uri_file", "mltable"] = "uri_folder"
    """A folder, a file, or a folder with a file `MLTable`."""
    version: AssetName | None = None
    """Version of data at an address. Data of this machine have none here: their version is made from their content."""
    datastore: DatastoreName | None = None
    """Datastore that data of this machine are uploaded to; `workspaceblobstore` when absent."""
    description: str | None = None
    """A sentence for people who find the data in the studio."""
    tags: Tags = Field(default_factory=dict)
    """Tags of the version."""

    @model_validator(mode="after")
    def _versioned(self) -> DataAsset:
        if self.local and self.version is not None:
            raise ValueError(
                f"`{self.path}` lies on this machine and has the `version` {self.version}|The version of data of this "
                "machine is made from their content; leave `version` out"
            )
        if not self.local and self.version is None:
            raise ValueError(
                f"`{self.path}` is an address and has no `version`|Nobody sees from here whether data at an address "
                'change, so their version is yours to name; write `version: "1"`'
            )
        if not self.local and self.datastore is not None:
            raise ValueError(
                f"`{self.path}` is an address, and there is a `datastore`|`datastore` says where data of this machine "
                "are uploaded; leave it out"
            )
        return self

    @property
    def local(self) -> bool:
        """True where the data lie on this machine."""
        return self.path.startswith("file:") or _ADDRESS.match(self.path) is None


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class JobFile(SettingsModel):
    """A file of jobs with the stack's overrides; a bare string is its path."""

    file: str = Field(min_length=1)
    """Job file, a path in the project: Python, or an Azure ML CLI v2 YAML."""
    rerun: str | None = None
    """Any word; another word is another run of the file's jobs."""
    on_edit: Literal["refuse", "cancel", "keep"] | None = None
    """The effect of an edit while the old run is active: refuse it, cancel the old run, or keep it."""
    wait: Literal["none", "started", "completed"] | None = None
    """The event that `up` waits for before whatever depends on the jobs goes on."""
    after: Annotated[tuple[str, ...], BeforeValidator(_several, json_schema_input_type=str | tuple[str, ...])] = ()
    """Jobs of this stack, each by its name or by its job file, that must have completed before the file's jobs are
    submitted; beside what these name themselves."""
    fabric: Annotated[
        tuple[Block, ...], BeforeValidator(_several, json_schema_input_type=Block | tuple[Block, ...])
    ] = ()
    """Further variables of the fabric for the file's jobs, trials and steps: `azure-tuned`, `sharp`, `topology`
    (docs/reference/fabric.md). Jobs in Azure ML's own words get the usual ones with them."""
    environment_variables: dict[VariableName, SecretVariable] = Field(default_factory=dict)
    """Variables of the file's jobs, trials and steps that hold a secret of the stack: `WANDB_API_KEY: {secret:
    NAME}`. For files of Azure ML, which have no word for it."""
    delete_history: bool | None = None
    """Delete the run's record when the job is removed."""
    enabled: bool | None = None
    """False keeps the file's schedules from starting anything; as each is declared when absent, and one that a
    person paused in the workspace then stays paused."""

    @property
    def overrides(self) -> dict[str, str | bool]:
        """The values that the stack sets for runs instead of the job file."""
        return dict(
            self.model_dump(exclude={"file", "enabled", "after", "environment_variables", "fabric"}, exclude_none=True)
        )


class AzurePolicy(SettingsModel):
    """The rules at Azure's own gate."""

    effect: Literal["audit", "deny"] = "audit"
    """audit: what breaks a rule is reported; deny: what breaks a mandatory one is refused, by whatever tool it
    comes."""
    scope: Literal["resourceGroup", "subscription"] = "resourceGroup"
    """The reach of the rules: the stack's resource group, or the whole subscription."""
    exclude: tuple[str, ...] = ()
    """Codes of rules that are left out."""


SlurmValue = Annotated[str, named("SlurmValue")]


class SlurmSite(SettingsModel):
    """A part of a site with Slurm: options of sbatch by the same names, each left to the site when absent."""

    account: SlurmValue | None = None
    """Account that the nodes' time is booked on."""
    partition: SlurmValue | None = None
    """Partition, as `sinfo` names it."""
    qos: SlurmValue | None = None
    """Quality of service."""
    constraint: SlurmValue | None = None
    """Features that each node has, e.g. `ib&h100`."""
    gres: SlurmValue | None = None
    """Devices of each node, e.g. `gpu:h100:8`; without them a site's nodes may show a job no GPU."""
    reservation: SlurmValue | None = None
    """Reservation whose nodes are used."""
    nodelist: SlurmValue | None = None
    """Nodes that must be among a job's, e.g. `node[01-04]`."""
    exclude: SlurmValue | None = None
    """Nodes that are never taken."""
    mpirun: SlurmValue | None = None
    """Path of the site's own mpirun on the nodes; that of the environment when absent."""
    container: Annotated[str, named("SlurmContainer")] | None = None
    """The way into the image of a job's environment: `pyxis`, or `apptainer` or `singularity`, by name or path; the
    stand-in when absent. Untried on a real site."""


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
    slurm: dict[Annotated[str, named("SlurmProfile")], SlurmSite] = Field(default_factory=dict)
    """Profiles by name, for `amlstack rehearse --on slurm:PROFILE` and `clusters[].rehearse_on`: what is asked of a
    site with Slurm. Azure is told nothing of them."""
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
