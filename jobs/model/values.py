"""The parts of a job that carry no behaviour: inputs, outputs, code, environment, services, limits.

Field names and words (`ro_mount`, `uri_folder`, `vs_code`) are those of Azure ML's own job files, so that its
documentation holds for ours. Every model is frozen and refuses unknown keys.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from jobs.model.location import Source

EXPRESSION = re.compile(r"\$\{\{\s*(\S*?)\s*\}\}")
"""A data binding, ``${{inputs.x}}``; its group is what is bound."""


class Model(BaseModel):
    """What all parts of a job share: frozen, no unknown keys, the attribute docstrings of Azure's words."""

    # Validators are built when a model is first used: most files use few of the models.
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)


OwnSource = Annotated[
    InstanceOf[Source] | None, Field(description="File of its own that it was read from.", exclude=True, repr=False)
]
"""Of what may be written in a file of its own: where that is, for the places of findings."""


def _expression(value: Any) -> Any:
    if isinstance(value, bool):
        message = "a count is an integer"
        raise ValueError(message)  # noqa: TRY004 - pydantic turns only this one into a fault
    if isinstance(value, str) and not EXPRESSION.fullmatch(value):
        message = "a count is an integer or a pipeline expression like ${{parent.inputs.n}}"
        raise ValueError(message)
    return value


Count = Annotated[
    Annotated[StrictInt, Field(ge=1)] | StrictStr,
    BeforeValidator(_expression),
    Field(description="A whole number from 1, or a pipeline expression such as `${{parent.inputs.n}}`."),
]

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
"""A literal input; on the wire all of them are text (`true` becomes `True`)."""

AssetType = Literal["uri_file", "uri_folder", "mltable", "mlflow_model", "custom_model", "triton_model"]
InputMode = Literal["ro_mount", "rw_mount", "mount", "download", "direct", "eval_mount", "eval_download"]
OutputMode = Literal["rw_mount", "mount", "upload", "direct"]


class Input(Model):
    """Data or a model that a job reads, bound as ``${{inputs.NAME}}``."""

    path: Annotated[
        str | None,
        Field(
            description="Where it lies: `azureml:NAME:VERSION`, `azureml://datastores/…`, an https or wasbs address, "
            "or a local path."
        ),
    ] = None
    type: Annotated[AssetType, Field(description="Kind of asset.")] = "uri_folder"
    mode: Annotated[InputMode | None, Field(description="How it reaches the node; unset leaves it to Azure ML.")] = None
    datastore: Annotated[str | None, Field(description="Datastore that a local path is uploaded to.")] = None
    path_on_compute: Annotated[str | None, Field(description="Where it is mounted on the node.")] = None


class Output(Model):
    """A place that a job writes to, bound as ``${{outputs.NAME}}``."""

    type: Annotated[AssetType, Field(description="Kind of asset.")] = "uri_folder"
    mode: Annotated[OutputMode | None, Field(description="How it leaves the node; unset leaves it to Azure ML.")] = None
    path: Annotated[str | None, Field(description="Where it is kept; unset: the workspace's default datastore.")] = None
    name: Annotated[str | None, Field(description="Register the output as this asset.")] = None
    version: Annotated[str | None, Field(description="Version of that asset.")] = None
    description: Annotated[str | None, Field(description="Description of that asset.")] = None


class Code(Model):
    """The folder that is copied to every node and is the working directory of the command."""

    path: Annotated[
        str,
        Field(
            description="Folder, relative to the job file; or the address of code that is registered already "
            "(`azureml:NAME:VERSION`, `azureml://registries/…`, `git+https://…`)."
        ),
    ]
    includes: Annotated[
        tuple[str, ...],
        Field(
            description="Files and folders that go along under their own names; `NAME.zip` for a folder, compressed."
        ),
    ] = ()

    @property
    def local(self) -> bool:
        """Whether it is a folder of this machine that has to be uploaded; an empty path is no code."""
        return bool(self.path) and not re.match(r"(azureml:|git\+|https?://)", self.path)


class Build(Model):
    """A Docker build context."""

    path: Annotated[str, Field(description="Folder with the Dockerfile, relative to the job file, or an address.")]
    dockerfile_path: Annotated[str | None, Field(description="Dockerfile in that folder, when not `Dockerfile`.")] = (
        None
    )


class Environment(Model):
    """An environment written inline: an image, perhaps with conda packages on top, or a build context."""

    image: Annotated[str | None, Field(description="Docker image.")] = None
    conda_file: Annotated[
        str | dict[str, Any] | None,
        Field(description="Conda specification: a file relative to the job file, or its content."),
    ] = None
    build: Annotated[Build | None, Field(description="Docker build context, instead of an image.")] = None
    os_type: Annotated[Literal["linux", "windows"] | None, Field(description="Operating system.")] = None
    name: Annotated[str | None, Field(description="Name to register it under; unset: named by its content.")] = None
    version: Annotated[str | None, Field(description="Version to register it under.")] = None
    description: Annotated[str | None, Field(description="Description of the registered version.")] = None
    tags: Annotated[dict[str, Any] | None, Field(description="Tags of the registered version.")] = None
    properties: Annotated[dict[str, Any] | None, Field(description="Properties of the registered version.")] = None
    inference_config: Annotated[dict[str, Any] | None, Field(description="Routes of an inference container.")] = None
    datastore: Annotated[str | None, Field(description="Datastore that a build context is uploaded to.")] = None


class Limits(Model):
    """When Azure ML ends a job by itself."""

    timeout: Annotated[
        Annotated[StrictInt, Field(ge=0)] | None, Field(description="Longest run in seconds; 0 or unset: no limit.")
    ] = None


class QueueSettings(Model):
    """Where a job stands in the queue."""

    job_tier: Annotated[
        Literal["null", "spot", "basic", "standard", "premium"] | None,
        Field(description="Tier of a serverless job; a cluster has its own priority instead."),
    ] = None
    priority: Annotated[Literal["low", "medium", "high"] | None, Field(description="Priority among jobs.")] = None


class Identity(Model):
    """As whom a job reads its data."""

    type: Annotated[
        Literal["managed", "user_identity", "aml_token"],
        Field(description="The cluster's managed identity, the submitting user, or Azure ML's token."),
    ]
    client_id: Annotated[str | None, Field(description="Client id of a user-assigned managed identity.")] = None
    object_id: Annotated[str | None, Field(description="Object id of a user-assigned managed identity.")] = None
    resource_id: Annotated[str | None, Field(description="ARM id of a user-assigned managed identity.")] = None


class Service(Model):
    """Something to look into a running job with."""

    type: Annotated[
        Literal["ssh", "jupyter_lab", "tensor_board", "vs_code"] | None,
        Field(description="Kind of service; unset: one of Azure ML's own, sent without a kind."),
    ] = None
    nodes: Annotated[Literal["all"] | None, Field(description="`all`: on every node; unset: on the first.")] = None
    port: Annotated[StrictInt | None, Field(description="Port in the container.")] = None
    properties: Annotated[dict[str, Any] | None, Field(description="Further settings of the service.")] = None
    ssh_public_keys: Annotated[str | None, Field(description="Key that may log in (ssh).")] = None
    log_dir: Annotated[str | None, Field(description="Folder of the event files (tensor_board).")] = None
    endpoint: Annotated[str | None, Field(description="Address, where Azure ML does not choose it.")] = None
