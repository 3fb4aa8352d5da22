"""What a person writes into ``Pulumi.<stack>.yaml``, namespace ``amlstack:``: frozen models, unknown keys forbidden.

The field descriptions are the reference documentation; docs/settings.md is made from them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    WithJsonSchema,
    model_validator,
)

CURATED_TAG, CUSTOM_TAG = "\0curated", "\0custom"
"""What pydantic puts into the paths of its errors inside an environment; no key of a YAML file can look like it."""


class _Model(BaseModel):
    # Python's own expressions: pydantic's take 30 ms to compile a group's name, which every verb would wait for.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, regex_engine="python-re")


def _or_named(field: str, whole: Any) -> BeforeValidator:
    """Lets a bare string stand for an object of the type ``whole`` with nothing but ``field``."""
    return BeforeValidator(
        lambda value: {field: value} if isinstance(value, str) else value, json_schema_input_type=str | whole
    )


def _name(pattern: str) -> StringConstraints:
    r"""A pattern that ends with ``\Z``: ``$`` would let a line break pass."""
    return StringConstraints(pattern=pattern)


ClusterName = Annotated[str, _name(r"^[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]\Z")]
WorkspaceName = Annotated[str, _name(r"^[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z")]
GroupName = Annotated[str, _name(r"^[\w.()-]{0,89}[\w()-]\Z")]
EnvironmentName = Annotated[str, _name(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")]
Location = Annotated[str, _name(r"^[a-z][a-z0-9]+\Z")]
Duration = Annotated[str, _name(r"^P(\d+D|(\d+D)?T(\d+H(\d+M)?(\d+S)?|\d+M(\d+S)?|\d+S))\Z")]
SubnetId = Annotated[
    str,
    _name(
        r"^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network/virtualNetworks/[^/]+/subnets/[^/]+\Z"
    ),
]
IdentityId = Annotated[
    str,
    _name(
        r"^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ManagedIdentity/userAssignedIdentities/[^/]+\Z"
    ),
]
Tags = Annotated[
    dict[Annotated[str, _name(r"^[^<>%&\\?/]{1,512}\Z")], Annotated[str, StringConstraints(max_length=256)]],
    Field(max_length=50),
]


class Workspace(_Model):
    """The Azure ML workspace and what it stands on; a bare string is its name."""

    name: WorkspaceName = Field(description="Name of the workspace: 3 to 33 characters, letters, digits, '-' and '_'.")
    display_name: str | None = Field(None, description="What the studio shows; the name when absent.")
    description: str | None = Field(None, description="A sentence for people who find the workspace in the portal.")
    public_network: bool = Field(
        True,
        description="Whether workspace, storage, key vault and registry answer from the internet (to Entra ID only).",
    )
    name_salt: str = Field(
        "",
        description="Changes the names of storage account, key vault and registry: a destroyed vault's name stays "
        "taken until its purge protection ends.",
    )


class Nodes(_Model):
    """How far a cluster scales."""

    min: int = Field(0, ge=0, description="Nodes that stay up, and are paid for, without work.")
    max: int = Field(ge=0, description="Most nodes at once; also what the policies judge the cluster's fabric by.")
    idle: Duration = Field("PT10M", description="How long a node waits for work before it goes, ISO 8601 (PT10M).")

    @model_validator(mode="after")
    def _ordered(self) -> Nodes:
        if self.min > self.max:
            raise ValueError(f"`min` is {self.min} and `max` is {self.max}|`min` must not be above `max`")
        return self


class ClusterIdentity(_Model):
    """As whom the nodes of a cluster act; a bare string is its `type`."""

    type: Literal["stack", "system", "none"] | None = Field(
        None,
        description="stack: one user-assigned identity, which the stack makes for all its clusters, so that a replaced "
        "cluster keeps its access; system: the cluster's own. Both get the roles of docs/identities.md. none: nobody. "
        "When absent: none beside `user_assigned`, else stack.",
    )
    user_assigned: tuple[IdentityId, ...] = Field(
        (), description="ARM ids of user-assigned identities that exist already. The stack gives them no role."
    )

    @property
    def kind(self) -> Literal["stack", "system", "none"]:
        """The type, with what is meant when it is absent."""
        return self.type or ("none" if self.user_assigned else "stack")


class Cluster(_Model):
    """One AmlCompute cluster."""

    name: ClusterName = Field(
        description="Name: 3 to 24 characters, a letter first, then letters, digits and '-', no '-' at the end."
    )
    size: str = Field(description="VM size, as `amlstack sizes` lists them.")
    nodes: Nodes = Field(description="Scale: min, max, idle.")
    priority: Literal["dedicated", "low_priority"] = Field(
        "dedicated", description="Low-priority nodes can be pre-empted."
    )
    single_node_jobs: bool = Field(
        False,
        description="Promises that no job takes more than one node, so that a GPU size without InfiniBand may have "
        "many.",
    )
    location: Location | None = Field(None, description="Region of the nodes; the stack's when absent.")
    subnet: SubnetId | None = Field(None, description="ARM id of the subnet that the nodes join.")
    node_public_ip: bool | None = Field(
        None, description="Whether nodes get public addresses; Azure's default when absent."
    )
    identity: Annotated[ClusterIdentity, _or_named("type", ClusterIdentity)] = Field(
        default_factory=ClusterIdentity,
        description="As whom the nodes read and write datastores and pull images: a type, or an object.",
    )
    description: str | None = Field(None, description="A sentence for people who find the cluster in the studio.")
    tags: Tags = Field(default_factory=dict, description="Tags beside the stack's.")


class CuratedEnvironment(_Model):
    """A curated environment, referred to and never registered; a bare string is its name."""

    curated: EnvironmentName = Field(description="Name in the `azureml` registry, e.g. acpt-pytorch-2.8-cuda12.6.")
    version: Annotated[str, _name(r"^\d+\Z")] | None = Field(
        None, description="Its version, which pins it; label `latest` when absent."
    )


class CustomEnvironment(_Model):
    """An environment that is registered in the workspace under a version made from its content."""

    name: EnvironmentName = Field(description="Name under which jobs refer to it.")
    image: str = Field(min_length=1, description="Docker image that it builds on.")
    conda: str | None = Field(None, description="Conda file, a path in the project.")


def _kind(value: Any) -> str:
    has_curated = isinstance(value, CuratedEnvironment) or (isinstance(value, dict) and "curated" in value)
    return CURATED_TAG if has_curated else CUSTOM_TAG


Environment = Annotated[
    Annotated[CuratedEnvironment, Tag(CURATED_TAG)] | Annotated[CustomEnvironment, Tag(CUSTOM_TAG)],
    Discriminator(_kind),
    _or_named("curated", CuratedEnvironment | CustomEnvironment),
]


class JobFile(_Model):
    """A file of jobs with the stack's overrides; a bare string is its path."""

    file: str = Field(min_length=1, description="Job file, a path in the project: Python, or an Azure ML CLI v2 YAML.")
    rerun: str | None = Field(None, description="Any word; another word is another run of the file's jobs.")
    on_edit: Literal["refuse", "cancel", "keep"] | None = Field(
        None, description="What an edit does while the old run is active: refuse it, cancel the old run, or keep it."
    )
    wait: Literal["none", "started", "completed"] | None = Field(
        None, description="What `up` waits for before whatever depends on the jobs goes on."
    )
    delete_history: bool | None = Field(None, description="Delete the run's record when the job is removed.")
    enabled: bool | None = Field(
        None,
        description="Whether the file's schedules start anything; as each is declared when absent, and one that a "
        "person paused in the workspace then stays paused.",
    )

    @property
    def overrides(self) -> dict[str, str | bool]:
        """What the stack sets for runs instead of the job file."""
        return dict(self.model_dump(exclude={"file", "enabled"}, exclude_none=True))


class AzurePolicy(_Model):
    """The rules at Azure's own gate."""

    effect: Literal["audit", "deny"] = Field(
        "audit",
        description="audit: what breaks a rule is reported; deny: what breaks a mandatory one is refused, by whatever "
        "tool it comes.",
    )
    scope: Literal["resourceGroup", "subscription"] = Field(
        "resourceGroup", description="What the rules reach: the stack's resource group, or the whole subscription."
    )
    exclude: tuple[str, ...] = Field((), description="Codes of rules that are left out.")


class Include(_Model):
    """Stands in a list of the settings for the entries of files; what reads them is ``infra.settings.includes``."""

    include: str | list[str] = Field(
        description="A path or a list of paths in the project, each to a YAML file with a list of such entries; "
        "`clusters/*.yml` means all files named so, in the order of their names."
    )


class Settings(_Model):
    """The whole namespace ``amlstack:``."""

    location: Location = Field(description="Azure region of everything that does not name its own.")
    resource_group: GroupName | None = Field(
        None,
        description="Resource group; when absent the one that the stack has, `rg-<project>-<stack>` for a new stack.",
    )
    workspace: Annotated[Workspace, _or_named("name", Workspace)] = Field(
        description="The workspace: a name, or an object."
    )
    clusters: tuple[Cluster, ...] = Field((), description="The clusters.")
    environments: tuple[Environment, ...] = Field((), description="Environments that jobs refer to by name.")
    jobs: tuple[Annotated[JobFile, _or_named("file", JobFile)], ...] = Field((), description="Job files.")
    tags: Tags = Field(default_factory=dict, description="Tags of every resource that takes tags.")
    policies: str | None = Field(
        None,
        min_length=1,
        description="JSON file that configures the rules, a path in the project; the policy pack takes the same file. "
        "The pack's own configuration when absent.",
    )
    azure_policy: AzurePolicy | None = Field(
        None,
        alias="azurePolicy",
        description="Assigns the rules in Azure itself, as Azure Policy definitions; nothing is assigned when absent.",
    )
    assign_roles: bool = Field(
        True,
        description="Whether the stack assigns the roles that its clusters' identities need, which takes a deployer "
        "who may assign roles (Owner, User Access Administrator or Role Based Access Control Administrator). "
        "docs/identities.md has the commands for somebody else to run.",
    )
    protect: Annotated[Literal["auto", "true", "false"], WithJsonSchema({"enum": ["auto", True, False]})] = Field(
        "auto",
        description="Whether the engine refuses to delete what holds data; auto: on every stack but `sandbox`.",
    )
    stack_id: Annotated[str, _name(r"^[A-Za-z0-9-]{8,64}\Z")] | None = Field(
        None,
        description="Id of a stack whose state was lost, as its runs have it in the property `amlstack.stack`: this "
        "stack takes them over. A random one that the state keeps when absent.",
    )
    keep_aliases: bool = Field(
        False,
        description="Keeps azure-native's aliases of older API versions, for a stack that an older major version made.",
    )
    arm_endpoint: str | None = Field(
        None,
        alias="armEndpoint",
        description="Resource manager that our provider asks, `https://host`; that of the cloud in "
        "`azure-native:environment`, else Azure's public one, when absent. The provider reads it by itself.",
    )
