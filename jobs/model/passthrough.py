"""Steps that are no command and no sweep: parallel, spark, and pipelines in a pipeline, sent as azure-ai-ml does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from pydantic import Field, StrictBool

from jobs.model.component import NO_ENVIRONMENT, Port, asset
from jobs.model.job import Job
from jobs.model.step import Node
from jobs.model.values import Code, Environment, Input, Model, OwnSource, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["parallel", "spark", "pipeline", "automl", "data_transfer"]
KINDS: tuple[str, ...] = get_args(Kind)
"""The same as values."""


class PassthroughComponent(Model):
    """A component that is sent as it is written: parallel, spark, data transfer, or a pipeline."""

    HOLDS: ClassVar[str] = "jobs"

    kind: Kind
    """Kind of the component."""
    inputs: dict[str, Port] = Field(default_factory=dict)
    """What it reads, by name."""
    outputs: dict[str, Port] = Field(default_factory=dict)
    """What it writes, by name."""
    code: Code | None = None
    """Folder that it runs in."""
    environment: str | Environment | None = None
    """As of a job."""
    spec: dict[str, Any] = Field(default_factory=dict)
    """Its own keys, in the words of its file."""
    jobs: dict[str, Any] = Field(default_factory=dict)
    """The steps of a pipeline, by name."""
    display_name: str | None = None
    """Name shown in the studio."""
    description: str | None = None
    """Description."""
    tags: dict[str, str | None] = Field(default_factory=dict)
    """Tags."""
    properties: dict[str, Any] = Field(default_factory=dict)
    """Properties."""
    is_deterministic: StrictBool | None = None
    """Whether a step may be reused."""
    schema_uri: str | None = None
    """`$schema` of the file it was written in."""
    source: OwnSource = None
    inline: StrictBool = False
    """Whether it stands in the pipeline's own file."""

    @property
    def steps(self) -> Mapping[str, Any]:
        """The steps of a pipeline, by name; empty for any other."""
        return self.jobs

    @property
    def declares_ports(self) -> bool:
        """Whether it says itself what it reads and writes; an inline one is given that by its step."""
        return not self.inline


class PassthroughStep(Node):
    """A step that is sent as it is written and not enriched: parallel, spark, automl, data transfer, or a pipeline."""

    HOLDS: ClassVar[str] = "component"

    kind: Kind
    """Kind of the step."""
    component: PassthroughComponent | str | None
    """What it runs, or `azureml:NAME:VERSION`; None: Azure ML's own."""
    spec: dict[str, Any] = Field(default_factory=dict)
    """Its own keys, in the words of its file."""

    def job(self) -> Job | None:
        """The code and environment that have to be there, as the command job that would need the same."""
        component = self.component
        if isinstance(component, str | None) or component.kind in ("pipeline", "data_transfer"):
            return None
        return Job(
            command="",
            environment=component.environment or NO_ENVIRONMENT,
            code=component.code,
            compute=self.compute,
            nodes=self._nodes(component) if self.kind == "parallel" else None,
            inputs=self.inputs if self.kind == "parallel" else {},
            enrich=False,
        )

    def _nodes(self, component: PassthroughComponent) -> int | None:
        """Nodes of a parallel step, of its own or its component's `resources`; None where that is no number."""
        given = self.spec.get("resources") or component.spec.get("resources") or {}
        count = given.get("instance_count") if isinstance(given, dict) else None
        return count if isinstance(count, int) and count > 0 else None


def literals(ports: Mapping[str, Port]) -> dict[str, Input | Scalar]:
    """What a pipeline component's inputs are inside of it: data without a place, or a value of the type."""
    empty: dict[str, Scalar] = {"string": "", "number": 0.0, "integer": 0, "boolean": False}
    return {name: empty[port.type] if port.type in empty else Input(type=asset(port)) for name, port in ports.items()}
