"""`Component`: a command with declared inputs and outputs, of which pipelines make steps."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from jobs.launchers import Custom, Launcher
from jobs.model.job import Job
from jobs.model.resources import RESOURCE_FIELDS, Resources
from jobs.model.values import AssetType, Code, Environment, Input, InputMode, Model, Output, OwnSource, Scalar

Primitive = Literal["string", "number", "integer", "boolean"]
PRIMITIVES: tuple[str, ...] = ("string", "number", "integer", "boolean")
NO_ENVIRONMENT = "azureml:(none)"
"""Stands where a step names no environment, and is never sent; no environment can have this name."""


class Port(Model):
    """An input or output that a component declares."""

    type: Annotated[AssetType | Literal["path"] | Primitive, Field(description="Kind of asset, or of literal.")]
    description: Annotated[str | None, Field(description="What it is for.")] = None
    optional: Annotated[StrictBool | None, Field(description="Whether a step may leave it out.")] = None
    default: Annotated[StrictBool | StrictInt | StrictFloat | StrictStr | None, Field(description="Its default.")] = (
        None
    )
    min: Annotated[StrictInt | StrictFloat | StrictStr | None, Field(description="Least value.")] = None
    max: Annotated[StrictInt | StrictFloat | StrictStr | None, Field(description="Greatest value.")] = None
    enum: Annotated[tuple[str, ...] | None, Field(description="The values it may have.")] = None
    mode: Annotated[
        InputMode | Literal["upload", "link"] | None, Field(description="How it reaches or leaves the node.")
    ] = None

    @property
    def literal(self) -> bool:
        """Whether it is a literal, not data."""
        return self.type in PRIMITIVES


def _code(value: Any) -> Any:
    return Code(path=value) if isinstance(value, str) else value


class Component(Resources):
    """A command that pipelines run as a step, with what it reads and writes declared."""

    command: Annotated[StrictStr, Field(description="Shell command; `${{inputs.x}}` and `${{outputs.y}}` are bound.")]
    environment: Annotated[str | Environment, Field(description="As of a job.")]
    name: Annotated[str | None, Field(description="Name to register it under.")] = None
    version: Annotated[str | None, Field(description="Version to register it under.")] = None
    display_name: Annotated[str | None, Field(description="Name shown in the studio.")] = None
    description: Annotated[str | None, Field(description="Description.")] = None
    tags: dict[str, str | None] = Field(default_factory=dict, description="Tags.")
    properties: dict[str, Any] = Field(default_factory=dict, description="Properties.")
    is_deterministic: Annotated[
        StrictBool, Field(description="Whether the same inputs give the same outputs, so that a step may be reused.")
    ] = True
    inputs: dict[str, Port] = Field(default_factory=dict, description="What it reads, by name.")
    outputs: dict[str, Port] = Field(default_factory=dict, description="What it writes, by name.")
    code: Annotated[Code | None, BeforeValidator(_code), Field(description="Folder that the command runs in.")] = None
    # A factory: making one at import would build its validators in every process that imports jobs.
    launcher: Launcher = Field(default_factory=Custom, description="How the ranks are started.")
    additional_includes: Annotated[
        tuple[str, ...], Field(description="Files and folders that go along with the code, under their own names.")
    ] = ()
    extra: dict[str, Any] = Field(default_factory=dict, description="Further keys, kept with the component.")
    schema_uri: Annotated[str | None, Field(description="`$schema` of the file it was written in.")] = None
    source: OwnSource = None
    inline: Annotated[StrictBool, Field(description="Whether it stands in the pipeline's own file.")] = False

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
