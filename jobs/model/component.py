"""`Component`: a command with declared inputs and outputs, of which pipelines make steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from jobs.launchers import Custom, Launcher
from jobs.model.job import RESOURCE_FIELDS, Job, Resources
from jobs.values import AssetType, Code, CodeFolder, Environment, Input, InputMode, Model, Output, OwnSource, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from jobs.model.job import ResourceArguments
    from jobs.values import Source

Primitive = Literal["string", "number", "integer", "boolean"]
PRIMITIVES: tuple[str, ...] = ("string", "number", "integer", "boolean")
NO_ENVIRONMENT = "azureml:(none)"
"""Stands where a step names no environment, and is never sent; no environment can have this name."""


class Port(Model):
    """An input or output that a component declares."""

    type: AssetType | Literal["path"] | Primitive
    """Kind of asset, or of literal."""
    description: str | None = None
    """What it is for."""
    optional: StrictBool | None = None
    """Whether a step may leave it out."""
    default: StrictBool | StrictInt | StrictFloat | StrictStr | None = None
    """Its default."""
    min: StrictInt | StrictFloat | StrictStr | None = None
    """Least value."""
    max: StrictInt | StrictFloat | StrictStr | None = None
    """Greatest value."""
    enum: tuple[str, ...] | None = None
    """The values it may have."""
    mode: InputMode | Literal["upload", "link"] | None = None
    """How it reaches or leaves the node."""

    @property
    def literal(self) -> bool:
        """True where it is a literal, not data."""
        return self.type in PRIMITIVES


class NotGiven(str):
    """The value of a component's input that has no default and was not given: an empty text that says so."""

    __slots__ = ()


class Component(Resources):
    """A command that pipelines run as a step, with what it reads and writes declared."""

    declares_ports: ClassVar[bool] = True

    command: StrictStr
    """Shell command; `${{inputs.x}}` and `${{outputs.y}}` are bound."""
    environment: str | Environment
    """As of a job."""
    name: str | None = None
    """Name to register it under."""
    version: str | None = None
    """Version to register it under."""
    display_name: str | None = None
    """Name shown in the studio."""
    description: str | None = None
    """Description."""
    tags: dict[str, str | None] = Field(default_factory=dict)
    """Tags."""
    properties: dict[str, Any] = Field(default_factory=dict)
    """Properties."""
    is_deterministic: StrictBool = True
    """Whether the same inputs give the same outputs, so that a step may be reused."""
    inputs: dict[str, Port] = Field(default_factory=dict)
    """What it reads, by name."""
    outputs: dict[str, Port] = Field(default_factory=dict)
    """What it writes, by name."""
    code: CodeFolder | None = None
    """Folder that the command runs in."""
    # A factory: making one at import would build its validators in every process that imports jobs.
    launcher: Launcher = Field(default_factory=Custom)
    """How the ranks are started."""
    additional_includes: tuple[str, ...] = ()
    """Files and folders that go along with the code, under their own names."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys, kept with the component."""
    schema_uri: str | None = None
    """`$schema` of the file it was written in."""
    source: OwnSource = None
    inline: StrictBool = False
    """Whether it stands in the pipeline's own file."""

    if TYPE_CHECKING:
        # As of `Job`: what may be given is wider than what a field holds.
        def __init__(
            self,
            *,
            command: str,
            environment: str | Environment,
            code: Code | str | None = None,
            name: str | None = None,
            version: str | None = None,
            display_name: str | None = None,
            description: str | None = None,
            tags: Mapping[str, str | None] = ...,
            properties: Mapping[str, Any] = ...,
            is_deterministic: bool = True,
            inputs: Mapping[str, Port] = ...,
            outputs: Mapping[str, Port] = ...,
            launcher: Launcher = ...,
            additional_includes: Sequence[str] = (),
            extra: Mapping[str, Any] = ...,
            schema_uri: str | None = None,
            source: Source | None = None,
            inline: bool = False,
            **resources: Unpack[ResourceArguments],
        ) -> None: ...

    def job(self) -> Job:
        """The command job that it would be: its defaults are the inputs, data is yet to be named."""
        inputs: dict[str, Input | Scalar] = {}
        for name, port in self.inputs.items():
            if port.default is not None:
                inputs[name] = port.default
            elif port.literal:
                inputs[name] = ""
            else:
                inputs[name] = Input(type=asset(port))
        return Job(
            command=self.command,
            environment=self.environment,
            name=self.name,
            display_name=self.display_name,
            description=self.description,
            tags=self.tags,
            inputs=inputs,
            outputs={name: Output(type=asset(port)) for name, port in self.outputs.items()},
            code=self._whole_code(),
            **{name: getattr(self, name) for name in (*RESOURCE_FIELDS, "launcher")},
        )

    def _whole_code(self) -> Code | None:
        """The code with what goes along; a component of a file has its includes placed by its reader."""
        if self.code is None or self.code.includes or self.source is not None:
            return self.code
        return self.code.model_copy(update={"includes": self.additional_includes})


def asset(port: Port) -> AssetType:
    """The kind of asset that a port takes; a folder where it is a literal or a plain path."""
    return "uri_folder" if port.type == "path" or port.type in PRIMITIVES else port.type  # type: ignore[return-value]
