"""Steps that are no command and no sweep: parallel, spark, and pipelines in a pipeline, sent as azure-ai-ml does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field, StrictBool

from jobs.model.component import NO_ENVIRONMENT, Port, asset
from jobs.model.job import Job
from jobs.model.step import Node
from jobs.model.values import Code, Environment, Input, Model, OwnSource, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["parallel", "spark", "pipeline", "automl", "data_transfer", "notebook"]
KINDS: tuple[str, ...] = get_args(Kind)
"""The same as values."""


class PassthroughComponent(Model):
    """A component that is sent as it is written: parallel, spark, data transfer, or a pipeline."""

    kind: Annotated[Kind, Field(description="Kind of the component.")]
    inputs: dict[str, Port] = Field(default_factory=dict, description="What it reads, by name.")
    outputs: dict[str, Port] = Field(default_factory=dict, description="What it writes, by name.")
    code: Annotated[Code | None, Field(description="Folder that it runs in.")] = None
    environment: Annotated[str | Environment | None, Field(description="As of a job.")] = None
    spec: dict[str, Any] = Field(default_factory=dict, description="Its own keys, in the words of its file.")
    jobs: dict[str, Any] = Field(default_factory=dict, description="The steps of a pipeline, by name.")
    display_name: Annotated[str | None, Field(description="Name shown in the studio.")] = None
    description: Annotated[str | None, Field(description="Description.")] = None
    tags: dict[str, str | None] = Field(default_factory=dict, description="Tags.")
    properties: dict[str, Any] = Field(default_factory=dict, description="Properties.")
    is_deterministic: Annotated[StrictBool | None, Field(description="Whether a step may be reused.")] = None
    schema_uri: Annotated[str | None, Field(description="`$schema` of the file it was written in.")] = None
    source: OwnSource = None
    inline: Annotated[StrictBool, Field(description="Whether it stands in the pipeline's own file.")] = False


class PassthroughStep(Node):
    """A step that is sent as it is written and not enriched: parallel, spark, automl, data transfer, or a pipeline."""

    kind: Annotated[Kind, Field(description="Kind of the step.")]
    component: Annotated[
        PassthroughComponent | str | None,
        Field(description="What it runs, or `azureml:NAME:VERSION`; None: Azure ML's own."),
    ]
    spec: dict[str, Any] = Field(default_factory=dict, description="Its own keys, in the words of its file.")

    def job(self) -> Job | None:
        """The code and environment that have to be there, as the command job that would need the same."""
        component = self.component
        if not isinstance(component, PassthroughComponent) or component.kind in ("pipeline", "data_transfer"):
            return None
        return Job(
            command="",
            environment=component.environment or NO_ENVIRONMENT,
            code=component.code,
            compute=self.compute,
            enrich=False,
        )


def literals(ports: Mapping[str, Port]) -> dict[str, Input | Scalar]:
    """What a pipeline component's inputs are inside of it: data without a place, or a value of the type."""
    empty: dict[str, Scalar] = {"string": "", "number": 0.0, "integer": 0, "boolean": False}
    return {name: empty[port.type] if port.type in empty else Input(type=asset(port)) for name, port in ports.items()}
