"""Parts of a job that carry no behaviour (inputs, outputs, code, environment, services, limits), and the file of a job.

Field names and words (`ro_mount`, `uri_folder`, `vs_code`) are those of Azure ML's own job files, so that its
documentation holds for ours. Every model is frozen and refuses unknown keys.
"""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

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
    model_validator,
)

from amlstack.base.findings import Finding
from amlstack.base.text import whole_seconds
from amlstack.catalog.fabric import Block

Place = tuple[str, int | None, int | None]
"""The path as the file itself spells it, line and column."""


def _nowhere(where: str) -> Place:
    return where, None, None


_RESTS_ON = {
    "environment-incomplete": "environment",
    "input-undefined": "inputs",
    "output-undefined": "outputs",
    "pipeline-empty": "jobs",
}
"""Findings of plans that only follow when a key of the file could not be read."""


@dataclass(frozen=True, slots=True)
class Source:
    """The file of a job.

    Attributes:
        file: Name of the file for messages; None for a job that was made in memory.
        base: Folder that relative paths start from.
        place: From a path in the job (`nodes`) to the path, line and column in the file
            (`resources.instance_count`, 12, 3).
        unreadable: Keys in the file whose values could not be read; the reader's findings say so.
        sdk: True where its jobs are objects of azure-ai-ml.
    """

    file: str | None = None
    base: Path = field(default_factory=Path)
    place: Callable[[str], Place] = field(default=_nowhere, compare=False)
    unreadable: frozenset[tuple[str, ...]] = frozenset()
    sdk: bool = False

    def locate(self, finding: Finding) -> Finding:
        """The finding with its place in the file."""
        where, line, column = self.place(finding.where)
        return finding.changed(
            where=where, file=finding.file or self.file, line=finding.line or line, column=finding.column or column
        )

    def explains(self, finding: Finding) -> bool:
        """True where a finding only follows from an error that the reader of the file has found."""
        key = _RESTS_ON.get(finding.code)
        return any(path == (key,) or path[0] == key in {"environment", "jobs"} for path in self.unreadable)


EXPRESSION = re.compile(r"\$\{\{\s*(\S*?)\s*\}\}")
"""A data binding, ``${{inputs.x}}``; its group is what is bound."""


class _Signature:
    """The fields as keyword arguments, for `inspect.signature` and `help`.

    pydantic makes one only when it builds the validators, which are built when a model is first used.
    """

    def __get__(self, instance: object, owner: type[BaseModel]) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        return inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if field.is_required() else field.get_default(),
                    annotation=field.annotation,
                )
                for name, field in owner.model_fields.items()
                if not field.exclude
            ]
        )


class Model(BaseModel):
    """Base of all parts of a job: frozen, no unknown keys."""

    # Validators are built when a model is first used: most files use few of the models.
    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), defer_build=True, allow_inf_nan=False
    )

    HOLDS: ClassVar[str] = ""
    """The field with what is declared inside of it, such as a pipeline's steps; empty for none."""

    if not TYPE_CHECKING:
        __signature__ = _Signature()

    @model_validator(mode="before")
    @classmethod
    def _numbers_end(cls, values: Any) -> Any:
        """A whole number that no float holds counts as infinite: its field then refuses it, and Python can print it."""
        return _bounded(values)


_ENDING = frozenset({str, bool, float, type(None)})  # most values, which need no call


def _bounded(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        try:
            float(value)
        except OverflowError:
            return -math.inf if value < 0 else math.inf
        return value
    if kind is dict:
        if all(type(key) is str and type(inner) in _ENDING for key, inner in value.items()):
            return value
        return {
            key if type(key) is str else _bounded(key): inner if type(inner) in _ENDING else _bounded(inner)
            for key, inner in value.items()
        }
    return kind(map(_bounded, value)) if kind is list or kind is tuple else value


OwnSource = Annotated[
    InstanceOf[Source] | None, Field(description="File of its own that it was read from.", exclude=True, repr=False)
]
"""Of what may be written in a file of its own: where that is, for the places of findings."""


def _expression(value: Any) -> Any:
    if isinstance(value, bool):
        message = "Input should be an integer"
        raise ValueError(message)  # noqa: TRY004 - pydantic turns only this one into a fault
    if isinstance(value, str) and not EXPRESSION.fullmatch(value):
        raise ValueError("Input should be an integer or a pipeline expression like ${{parent.inputs.n}}")
    return value


def as_tuple(value: Any) -> Any:
    """Several values, or the only one by itself, which is text."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


FabricBlocks = Annotated[tuple[Block, ...], BeforeValidator(as_tuple)]
"""Blocks of the fabric's variables, or the only one by itself."""

Count = Annotated[
    Annotated[StrictInt, Field(ge=1)] | StrictStr,
    BeforeValidator(_expression),
    Field(description="A whole number from 1, or a pipeline expression such as `${{parent.inputs.n}}`."),
]


def _finite(value: Any) -> Any:
    # A request is JSON, which has no word for these.
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("Input should be a finite number, or text in quotes")
    return value


AnyValue = Annotated[Any, BeforeValidator(_finite)]
"""A value that is sent as it is."""

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
"""A literal input; on the wire all of them are text (`true` becomes `True`)."""


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    taken = whole_seconds(value)
    if taken is None:
        message = "a number of seconds, or text such as `2h`, `1h30m` or `90s`"
        raise ValueError(f"Input should be {message}")
    return taken


Seconds = Annotated[Annotated[StrictInt, Field(ge=0)], BeforeValidator(_seconds)]
"""A duration: whole seconds from 0, or text with units (``2h``, ``1h30m``, ``90s``, ``PT2H``)."""

AssetType = Literal["uri_file", "uri_folder", "mltable", "mlflow_model", "custom_model", "triton_model"]
InputMode = Literal["ro_mount", "rw_mount", "mount", "download", "direct", "eval_mount", "eval_download"]
OutputMode = Literal["rw_mount", "mount", "upload", "direct"]


class Input(Model):
    """Data or a model that a job reads, bound as ``${{inputs.NAME}}``."""

    path: str | None = None
    """Its address: `azureml:NAME:VERSION`, `azureml://datastores/…`, an https or wasbs address, or a local path."""
    type: AssetType = "uri_folder"
    """Kind of asset."""
    mode: InputMode | None = None
    """The way in which it reaches the node; unset leaves it to Azure ML."""
    datastore: str | None = None
    """Datastore that a local path is uploaded to."""
    path_on_compute: str | None = None
    """The path at which it is mounted on the node."""


class Output(Model):
    """A place that a job writes to, bound as ``${{outputs.NAME}}``."""

    type: AssetType = "uri_folder"
    """Kind of asset."""
    mode: OutputMode | None = None
    """The way in which it leaves the node; unset leaves it to Azure ML."""
    path: str | None = None
    """The address at which it is kept; unset: the workspace's default datastore."""
    name: str | None = None
    """Register the output as this asset."""
    version: str | None = None
    """Version of that asset."""
    description: str | None = None
    """Description of that asset."""


_REMOTE = re.compile(r"azureml:|git\+|https?://")


class Code(Model):
    """The folder that is copied to every node and is the working directory of the command."""

    path: str
    """Folder, relative to the job file; or the address of code that is registered already (`azureml:NAME:VERSION`,
    `azureml://registries/…`, `git+https://…`).
    """
    includes: tuple[str, ...] = ()
    """Files and folders that go along under their own names; `NAME.zip` for a folder, compressed."""

    @property
    def local(self) -> bool:
        """True where it is a folder of this machine that has to be uploaded; an empty path is no code."""
        return bool(self.path) and _REMOTE.match(self.path) is None


def _code(value: Any) -> Any:
    return Code(path=value) if isinstance(value, str) else value


CodeFolder = Annotated[Code, BeforeValidator(_code)]
"""Code, or the path of its folder."""


def _output(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


OutputOrType = Annotated[Output, BeforeValidator(_output)]
"""An output, or its type alone (`uri_folder`)."""


class Build(Model):
    """A Docker build context."""

    path: str
    """Folder with the Dockerfile, relative to the job file, or an address."""
    dockerfile_path: str | None = None
    """Dockerfile in that folder, when not `Dockerfile`."""


class Environment(Model):
    """An environment written inline: an image, perhaps with conda packages on top, or a build context."""

    image: str | None = None
    """Docker image."""
    conda_file: str | dict[str, Any] | None = None
    """Conda specification: a file relative to the job file, or its content."""
    build: Build | None = None
    """Docker build context, instead of an image."""
    os_type: Literal["linux", "windows"] | None = None
    """Operating system."""
    name: str | None = None
    """Name to register it under; unset: named by its content."""
    version: str | None = None
    """Version to register it under."""
    description: str | None = None
    """Description of the registered version."""
    tags: dict[str, Any] | None = None
    """Tags of the registered version."""
    properties: dict[str, Any] | None = None
    """Properties of the registered version."""
    inference_config: dict[str, Any] | None = None
    """Routes of an inference container."""
    datastore: str | None = None
    """Datastore that a build context is uploaded to."""


class Limits(Model):
    """Limits at which Azure ML ends a job by itself."""

    timeout: Seconds | None = None
    """Longest run in seconds, in Python also as text (`2h`, `1h30m`); 0 or unset: no limit."""

    if TYPE_CHECKING:

        def __init__(self, *, timeout: int | str | None = None) -> None: ...


class QueueSettings(Model):
    """The place of a job in the queue."""

    job_tier: Literal["null", "spot", "basic", "standard", "premium"] | None = None
    """Tier of a serverless job; a cluster has its own priority instead."""
    priority: Literal["low", "medium", "high"] | None = None
    """Priority among jobs."""


class Identity(Model):
    """As whom a job reads its data."""

    type: Literal["managed", "user_identity", "aml_token"]
    """The cluster's managed identity, the submitting user, or Azure ML's token."""
    client_id: str | None = None
    """Client id of a user-assigned managed identity."""
    object_id: str | None = None
    """Object id of a user-assigned managed identity."""
    resource_id: str | None = None
    """ARM id of a user-assigned managed identity."""


class Service(Model):
    """Something to look into a running job with."""

    type: Literal["ssh", "jupyter_lab", "tensor_board", "vs_code"] | None = None
    """Kind of service; unset: one of Azure ML's own, sent without a kind."""
    nodes: Literal["all"] | None = None
    """`all`: on every node; unset: on the first."""
    port: StrictInt | None = None
    """Port in the container."""
    properties: dict[str, Any] | None = None
    """Further settings of the service."""
    ssh_public_keys: str | None = None
    """Key that may log in (ssh)."""
    log_dir: str | None = None
    """Folder of the event files (tensor_board)."""
    endpoint: str | None = None
    """Address, where Azure ML does not choose it."""
