"""`Pipeline`: steps that hand data on to each other, each with a distribution of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, StrictBool

from jobs.model.job import Job
from jobs.model.passthrough import PassthroughStep
from jobs.model.run_fields import RunFields
from jobs.model.step import Step, SweepStep
from jobs.model.values import Identity, Input, Model, Output, Scalar, Service

if TYPE_CHECKING:
    from collections.abc import Callable


AnyStep = Job | Step | SweepStep | PassthroughStep
"""What a pipeline holds."""


class PipelineSettings(Model):
    """What holds for every step that gives nothing else."""

    default_compute: Annotated[str | None, Field(description="Cluster of the steps, or `serverless`.")] = None
    default_datastore: Annotated[str | None, Field(description="Datastore of the outputs.")] = None
    continue_on_step_failure: Annotated[
        StrictBool | None, Field(description="Whether the others go on when a step fails.")
    ] = None
    force_rerun: Annotated[StrictBool | None, Field(description="Run every step, reuse none.")] = None
    extra: dict[str, Any] = Field(default_factory=dict, description="Further settings, sent as they are.")


class Pipeline(RunFields):
    """Steps by name. A step is a `Job`, a `Step` of a component, a `SweepStep`, or an `PassthroughStep`.

    Inputs bind ``${{parent.inputs.x}}`` and ``${{parent.jobs.STEP.outputs.y}}``.

    Usage::

        job = Pipeline(
            jobs={
                "prepare": Job(command="python prep.py ${{outputs.data}}", outputs={"data": Output()}, …),
                "train": Job(
                    command="python train.py ${{inputs.data}}",
                    inputs={"data": "${{parent.jobs.prepare.outputs.data}}"},
                    launcher=TorchRun(), nodes=2, compute="h100", …,
                ),
            },
        )
    """

    jobs: dict[str, AnyStep] = Field(default_factory=dict, description="The steps, by name.")
    component: Annotated[str | None, Field(description="A registered pipeline component, instead of steps.")] = None
    inputs: dict[str, Input | Scalar] = Field(default_factory=dict, description="What the pipeline reads.")
    outputs: dict[str, Output | None] = Field(default_factory=dict, description="What it writes.")
    compute: Annotated[str | None, Field(description="Cluster of the steps that name none.")] = None
    settings: Annotated[PipelineSettings | None, Field(description="What holds for all steps.")] = None
    identity: Annotated[Identity | None, Field(description="As whom the pipeline runs.")] = None
    services: Annotated[dict[str, Service] | None, Field(description="Services, sent as Azure ML takes them.")] = None

    @property
    def default_compute(self) -> str | None:
        """The cluster of a step that names none; None for serverless or unknown."""
        named = self.compute or (self.settings.default_compute if self.settings else None)
        return None if named is None or named.lower() == "serverless" else named

    def with_parts(self, change: Callable[[AnyStep], AnyStep]) -> Self:
        """The same pipeline with each step changed."""
        return self.model_copy(update={"jobs": {name: change(step) for name, step in self.jobs.items()}})
