"""The steps of a pipeline that run a component: once (`Step`), or with many hyperparameters (`SweepStep`)."""

# ruff: noqa: TC001 - pydantic reads the annotations
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, StrictBool

from jobs.launchers import Launcher
from jobs.model.component import Component
from jobs.model.job import Job
from jobs.model.resources import RESOURCE_FIELDS, Resources
from jobs.model.search_space import SearchSpace
from jobs.model.sweep import SweepResources, Trials
from jobs.model.values import (
    AnyValue,
    FabricBlocks,
    Identity,
    Input,
    Limits,
    Model,
    Output,
    OutputOrType,
    QueueSettings,
    Scalar,
    Service,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class BareOutput(Output):
    """An output of an inline step that its file only names: its component declares it, the step does not send it."""


class Node(Model):
    """What every step has that runs a component."""

    RUNS: ClassVar[str] = "component"
    """The field that names what the step runs; empty for a job, which runs itself."""

    inputs: dict[str, Input | Scalar] = Field(default_factory=dict)
    """What it reads: values, data, or `${{parent.…}}`."""
    outputs: dict[str, OutputOrType | None] = Field(default_factory=dict)
    """What it writes; a path may be `${{parent.outputs.x}}`."""
    compute: str | None = None
    """Cluster; unset: the pipeline's default."""
    identity: Identity | None = None
    """As whom it reads its data."""
    display_name: str | None = None
    """Name shown in the studio."""
    tags: dict[str, str | None] = Field(default_factory=dict)
    """Tags."""
    properties: dict[str, str | None] = Field(default_factory=dict)
    """Properties."""
    comment: str | None = None
    """A remark, shown in the studio."""
    enrich: StrictBool | None = None
    """Add the fabric's variables and shared memory; unset: for typed launchers, and where `fabric` asks."""
    fabric: FabricBlocks = ()
    """Further variables of the size's fabric: `azure-tuned`, `sharp`, `topology`."""

    @property
    def runs(self) -> Any:
        """What the step runs: a component, or the name of a registered one."""
        return getattr(self, self.RUNS)

    @property
    def steps(self) -> Mapping[str, Any]:
        """The steps of the pipeline that it runs, by name; empty for any other."""
        return getattr(self.runs, "steps", {})

    def with_runs(self, runs: Any) -> Self:
        """The same step of another component."""
        return self.model_copy(update={self.RUNS: runs})


COMMANDS = ("command", "sweep")
"""Kinds of steps that run a command; of others only code and environment are known."""


class ComponentNode(Node):
    """What the steps of a command component have in common."""

    kind: ClassVar[str] = "command"
    """Kind of the step, as its file names it."""

    queue_settings: QueueSettings | None = None
    """Tier and priority in the queue."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys, sent as they are."""

    @property
    def own_resources(self) -> Resources | None:
        """The resources that the step gives instead of its component's; None for none."""
        raise NotImplementedError

    def job(self) -> Job | None:
        """The command job that the step is; None where only the registered component knows its command."""
        return None if isinstance(self.runs, str) else self.job_of(self.runs)

    def job_of(self, component: Component) -> Job:
        """The command job of a component in this step: the component's, as far as the step gives nothing else."""
        job = component.job()
        update: dict[str, Any] = {
            "inputs": {**job.inputs, **self.inputs},
            "outputs": {**job.outputs, **{name: value for name, value in self.outputs.items() if value is not None}},
            **{name: getattr(self, name) for name in ("compute", "identity", "queue_settings", "enrich", "fabric")},
        }
        given = self.own_resources
        if given is not None and any(getattr(given, name) is not None for name in RESOURCE_FIELDS):
            update |= {name: getattr(given, name) for name in RESOURCE_FIELDS}  # Azure ML takes all of them or none
        return job.model_copy(update=update)


class Step(ComponentNode, Resources):
    """A step that runs a component, with what this pipeline gives it or wants otherwise."""

    component: Component | str
    """The component, or `azureml:NAME:VERSION`."""
    environment_variables: dict[str, AnyValue] = Field(default_factory=dict)
    """Variables of every process."""
    launcher: Launcher | None = None
    """How the ranks are started; unset: the component's."""
    limits: Limits | None = None
    """When the step is ended."""
    services: dict[str, Service] | None = None
    """Ways into the running step."""

    @property
    def own_resources(self) -> Resources:
        """The step's own fields."""
        return self

    def job_of(self, component: Component) -> Job:
        """The command job of a component in this step."""
        names = ("environment_variables", "limits", "services", *(("launcher",) if self.launcher else ()))
        return super().job_of(component).model_copy(update={name: getattr(self, name) for name in names})


class SweepStep(ComponentNode, Trials):
    """A step that tries a component with many hyperparameters, which are inputs of it."""

    kind: ClassVar[str] = "sweep"
    RUNS: ClassVar[str] = "trial"

    trial: Component | str
    """The component, or `azureml:NAME:VERSION`."""
    search_space: dict[str, SearchSpace] = Field(default_factory=dict)
    """What is varied."""
    resources: SweepResources | None = None
    """Resources; unset: the component's."""

    @property
    def own_resources(self) -> Resources | None:
        """Those of the field."""
        return self.resources

    def job(self) -> Job | None:
        """The command job of one trial; what is varied has the value 0."""
        job = super().job()
        varied = dict.fromkeys(self.search_space, 0)
        return job and job.model_copy(update={"inputs": {**job.inputs, **varied}})
