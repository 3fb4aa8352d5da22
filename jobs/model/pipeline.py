"""`Pipeline`: steps that hand data on to each other, each with a distribution of its own."""

# ruff: noqa: TC001 - pydantic reads the annotations
from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from jobs.launchers import Launcher
from jobs.model.component import Component
from jobs.model.job import Job
from jobs.model.passthrough import PassthroughStep
from jobs.model.run_fields import Run
from jobs.model.search_space import SearchSpace
from jobs.model.sweep import EarlyTermination, Objective, Sampling, SweepLimits, SweepResources
from jobs.model.values import Count, Identity, Input, Limits, Model, Output, QueueSettings, Scalar, Service


class BareOutput(Output):
    """An output of an inline step that its file only names: its component declares it, the step does not send it."""


class _Node(Model):
    inputs: dict[str, Input | Scalar] = Field(
        default_factory=dict, description="What it reads: values, data, or `${{parent.…}}`."
    )
    outputs: dict[str, Output | None] = Field(
        default_factory=dict, description="What it writes; a path may be `${{parent.outputs.x}}`."
    )
    compute: Annotated[str | None, Field(description="Cluster; unset: the pipeline's default.")] = None
    identity: Annotated[Identity | None, Field(description="As whom it reads its data.")] = None
    queue_settings: Annotated[QueueSettings | None, Field(description="Tier and priority in the queue.")] = None
    display_name: Annotated[str | None, Field(description="Name shown in the studio.")] = None
    tags: dict[str, str | None] = Field(default_factory=dict, description="Tags.")
    properties: dict[str, str | None] = Field(default_factory=dict, description="Properties.")
    comment: Annotated[str | None, Field(description="A remark, shown in the studio.")] = None
    enrich: Annotated[
        StrictBool | None,
        Field(description="Add the fabric's variables and shared memory; unset: for typed launchers only."),
    ] = None
    extra: dict[str, Any] = Field(default_factory=dict, description="Further keys, sent as they are.")


class Step(_Node):
    """A step that runs a component, with what this pipeline gives it or wants otherwise."""

    component: Annotated[Component | str, Field(description="The component, or `azureml:NAME:VERSION`.")]
    environment_variables: dict[str, Any] = Field(default_factory=dict, description="Variables of every process.")
    launcher: Annotated[Launcher | None, Field(description="How the ranks are started; unset: the component's.")] = None
    nodes: Annotated[Count | None, Field(description="Number of nodes.")] = None
    instance_type: Annotated[str | None, Field(description="VM size of a serverless step.")] = None
    locations: Annotated[tuple[str, ...] | None, Field(description="Regions of a serverless step.")] = None
    max_instance_count: Annotated[Count | None, Field(description="Upper bound of nodes of an elastic step.")] = None
    shm_size: Annotated[str | None, Field(description="Shared memory of the container.")] = None
    docker_args: Annotated[str | tuple[str, ...] | None, Field(description="Arguments of `docker run`.")] = None
    resource_properties: Annotated[dict[str, Any] | None, Field(description="Properties, handed on as they are.")] = (
        None
    )
    limits: Annotated[Limits | None, Field(description="When the step is ended.")] = None
    services: Annotated[dict[str, Service] | None, Field(description="Ways into the running step.")] = None


class SweepStep(_Node):
    """A step that tries a component with many hyperparameters, which are inputs of it."""

    trial: Annotated[Component | str, Field(description="The component, or `azureml:NAME:VERSION`.")]
    search_space: dict[str, SearchSpace] = Field(default_factory=dict, description="What is varied.")
    objective: Annotated[Objective, Field(description="What the sweep is after.")]
    limits: Annotated[SweepLimits, Field(description="How many trials, and how long.")]
    sampling_algorithm: Annotated[
        Literal["random", "grid", "bayesian"] | Sampling | None, Field(description="How trials are chosen.")
    ] = None
    early_termination: Annotated[EarlyTermination | None, Field(description="When a trial is given up.")] = None
    resources: Annotated[SweepResources | None, Field(description="Resources; unset: the component's.")] = None


AnyStep = Job | Step | SweepStep | PassthroughStep
"""What stands in a pipeline."""


class PipelineSettings(Model):
    """What holds for all steps that say nothing else."""

    default_compute: Annotated[str | None, Field(description="Cluster of the steps, or `serverless`.")] = None
    default_datastore: Annotated[str | None, Field(description="Datastore of the outputs.")] = None
    continue_on_step_failure: Annotated[
        StrictBool | None, Field(description="Whether the others go on when a step fails.")
    ] = None
    force_rerun: Annotated[StrictBool | None, Field(description="Run every step, reuse none.")] = None
    extra: dict[str, Any] = Field(default_factory=dict, description="Further settings, sent as they are.")


class Pipeline(Run):
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
