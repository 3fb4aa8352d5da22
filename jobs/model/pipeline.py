"""`Pipeline`: steps that hand data on to each other, each with a distribution of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, StrictBool

from jobs.model.job import Job
from jobs.model.passthrough import PassthroughStep
from jobs.model.run_fields import RunFields
from jobs.model.step import Step, SweepStep
from jobs.model.values import Identity, Input, Model, OutputOrType, Scalar, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


AnyStep = Job | Step | SweepStep | PassthroughStep
"""What a pipeline holds."""


class PipelineSettings(Model):
    """What holds for every step that gives nothing else."""

    default_compute: str | None = None
    """Cluster of the steps, or `serverless`."""
    default_datastore: str | None = None
    """Datastore of the outputs."""
    continue_on_step_failure: StrictBool | None = None
    """Whether the others go on when a step fails."""
    force_rerun: StrictBool | None = None
    """Run every step, reuse none."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further settings, sent as they are."""


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

    HOLDS: ClassVar[str] = "jobs"

    jobs: dict[str, AnyStep] = Field(default_factory=dict)
    """The steps, by name."""
    component: str | None = None
    """A registered pipeline component, instead of steps."""
    inputs: dict[str, Input | Scalar] = Field(default_factory=dict)
    """What the pipeline reads."""
    outputs: dict[str, OutputOrType | None] = Field(default_factory=dict)
    """What it writes."""
    compute: str | None = None
    """Cluster of the steps that name none."""
    settings: PipelineSettings | None = None
    """What holds for all steps."""
    identity: Identity | None = None
    """As whom the pipeline runs."""
    services: dict[str, Service] | None = None
    """Services, sent as Azure ML takes them."""

    @property
    def default_compute(self) -> str | None:
        """The cluster of a step that names none; None for serverless or unknown."""
        named = self.compute or (self.settings.default_compute if self.settings else None)
        return None if named is None or named.lower() == "serverless" else named

    @property
    def steps(self) -> Mapping[str, AnyStep]:
        """Its steps by name; empty for a registered pipeline component."""
        return self.jobs

    @property
    def parts(self) -> Mapping[str, AnyStep]:
        """Its steps, by `jobs.STEP`."""
        return {f"jobs.{name}": step for name, step in self.jobs.items()}

    def with_parts(self, change: Callable[[AnyStep], AnyStep]) -> Self:
        """The same pipeline with each step changed."""
        return self.model_copy(update={"jobs": {name: change(step) for name, step in self.jobs.items()}})
