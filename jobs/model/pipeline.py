"""`Pipeline`: steps that hand data on to each other, each with a distribution of its own.

A step runs a component once (`Step`) or with many hyperparameters (`SweepStep`). A `PassthroughStep` is sent as
azure-ai-ml does: parallel, spark, automl, data transfer, or a pipeline in the pipeline. A `Schedule` starts a pipeline
(or a job that ran before) again and again.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr

from jobs import values
from jobs.launchers import Launcher
from jobs.model.job import (
    NO_ENVIRONMENT,
    RESOURCE_FIELDS,
    Component,
    Job,
    Port,
    Resources,
    RunFields,
    SearchSpace,
    Sweep,
    SweepResources,
    Trials,
    asset,
)


class BareOutput(values.Output):
    """An output of an inline step that its file only names: its component declares it, the step does not send it."""


class Node(values.Model):
    """The fields of every step that runs a component."""

    RUNS: ClassVar[str] = "component"
    """The field that names what the step runs; empty for a job, which runs itself."""

    inputs: dict[str, values.Input | values.Scalar] = Field(default_factory=dict)
    """Inputs: values, data, or `${{parent.…}}`."""
    outputs: dict[str, values.OutputOrType | None] = Field(default_factory=dict)
    """Outputs; a path may be `${{parent.outputs.x}}`."""
    compute: str | None = None
    """Cluster; unset: the pipeline's default."""
    identity: values.Identity | None = None
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
    fabric: values.FabricBlocks = ()
    """Further variables of the size's fabric: `azure-tuned`, `sharp`, `topology`."""

    @property
    def runs(self) -> Any:
        """The component that the step runs, or the name of a registered one."""
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
    """The fields of every step of a command component."""

    kind: ClassVar[str] = "command"
    """Kind of the step, as its file names it."""

    queue_settings: values.QueueSettings | None = None
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
    environment_variables: dict[str, values.AnyValue] = Field(default_factory=dict)
    """Variables of every process."""
    launcher: Launcher | None = None
    """The launcher of the ranks; unset: the component's."""
    limits: values.Limits | None = None
    """Limits at which the step is ended."""
    services: dict[str, values.Service] | None = None
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
    """The values that are varied."""
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


PassedThrough = Literal["parallel", "spark", "pipeline", "automl", "data_transfer"]
PASSED_THROUGH: tuple[str, ...] = get_args(PassedThrough)
"""The same as values."""


class PassthroughComponent(values.Model):
    """A component that is sent as it is written: parallel, spark, data transfer, or a pipeline."""

    HOLDS: ClassVar[str] = "jobs"

    kind: PassedThrough
    """Kind of the component."""
    inputs: dict[str, Port] = Field(default_factory=dict)
    """Inputs, by name."""
    outputs: dict[str, Port] = Field(default_factory=dict)
    """Outputs, by name."""
    code: values.Code | None = None
    """Folder that it runs in."""
    environment: str | values.Environment | None = None
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
    """True where a step may be reused."""
    schema_uri: str | None = None
    """`$schema` of the file it was written in."""
    source: values.OwnSource = None
    inline: StrictBool = False
    """True where it stands in the pipeline's own file."""

    @property
    def steps(self) -> Mapping[str, Any]:
        """The steps of a pipeline, by name; empty for any other."""
        return self.jobs

    @property
    def declares_ports(self) -> bool:
        """True where it says itself what it reads and writes; an inline one is given that by its step."""
        return not self.inline


class PassthroughStep(Node):
    """A step that is sent as it is written and not enriched: parallel, spark, automl, data transfer, or a pipeline."""

    HOLDS: ClassVar[str] = "component"

    kind: PassedThrough
    """Kind of the step."""
    component: PassthroughComponent | str | None
    """The component that it runs, or `azureml:NAME:VERSION`; None: Azure ML's own."""
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


def port_literals(ports: Mapping[str, Port]) -> dict[str, values.Input | values.Scalar]:
    """A pipeline component's inputs as its steps see them: data without a place, or a value of the type."""
    empty: dict[str, values.Scalar] = {"string": "", "number": 0.0, "integer": 0, "boolean": False}
    return {
        name: empty[port.type] if port.type in empty else values.Input(type=asset(port)) for name, port in ports.items()
    }


AnyStep = Job | Step | SweepStep | PassthroughStep
"""The kinds of a pipeline's steps."""


class PipelineSettings(values.Model):
    """Settings of every step that gives nothing else."""

    default_compute: str | None = None
    """Cluster of the steps, or `serverless`."""
    default_datastore: str | None = None
    """Datastore of the outputs."""
    continue_on_step_failure: StrictBool | None = None
    """True where the other steps go on when one fails."""
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
    inputs: dict[str, values.Input | values.Scalar] = Field(default_factory=dict)
    """Inputs of the pipeline."""
    outputs: dict[str, values.OutputOrType | None] = Field(default_factory=dict)
    """Outputs."""
    compute: str | None = None
    """Cluster of the steps that name none."""
    settings: PipelineSettings | None = None
    """Settings of all steps."""
    identity: values.Identity | None = None
    """As whom the pipeline runs."""
    services: dict[str, values.Service] | None = None
    """Services, sent as Azure ML takes them."""

    @property
    def named_compute(self) -> str | None:
        """The cluster of a step that names none, or `serverless`, as it is written; None for unknown."""
        return self.compute or (self.settings.default_compute if self.settings else None)

    @property
    def default_compute(self) -> str | None:
        """The cluster of a step that names none; None for serverless or unknown."""
        named = self.named_compute
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


WEEK_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WeekDay = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _time(value: str) -> str:
    if len(value) <= len("2026-01-01"):
        raise ValueError("a time has a date and a clock, such as 2026-01-01T08:00:00")
    datetime.fromisoformat(value)
    return value


Time = Annotated[StrictStr, AfterValidator(_time)]


class _Trigger(values.Model):
    start_time: Time | None = None
    """First start, ISO-8601 without a zone; unset: now."""
    end_time: Time | None = None
    """No start after it, ISO-8601 without a zone."""
    time_zone: str = "UTC"
    """Time zone of the times, in Windows' names."""


class Cron(_Trigger):
    """Starts at the times of a cron expression."""

    type: Literal["cron"] = "cron"
    expression: StrictStr
    """minute hour day-of-month month day-of-week"""


class Pattern(values.Model):
    """At which hours and minutes, and on which days, a recurrence starts."""

    hours: tuple[StrictInt, ...]
    """Hours, 0 to 23."""
    minutes: tuple[StrictInt, ...]
    """Minutes, 0 to 59."""
    week_days: tuple[WeekDay, ...] | None = None
    """Days of the week."""
    month_days: tuple[StrictInt, ...] | None = None
    """Days of the month."""


class Recurrence(_Trigger):
    """Starts every so many minutes, hours, days, weeks or months."""

    type: Literal["recurrence"] = "recurrence"
    frequency: Literal["minute", "hour", "day", "week", "month"]
    """The unit."""
    interval: Annotated[StrictInt, Field(ge=1)]
    """The number of them."""
    schedule: Pattern | None = None
    """Times on such a day; unset: the time of the start."""


class Schedule(values.Model):
    """A pipeline, or a job that ran before by its name, started by a trigger."""

    timed: ClassVar[bool] = True
    """Times start what it runs."""
    HOLDS: ClassVar[str] = "create_job"

    name: str
    """Name of the schedule."""
    trigger: Annotated[Cron | Recurrence, Field(discriminator="type")]
    """The times at which it starts."""
    create_job: Pipeline | Job | Sweep | str
    """The job that it starts; a text names one that ran before."""
    source_job: str | None = None
    """The job that ran before, when `create_job` changes it."""
    source: values.OwnSource = None
    display_name: str | None = None
    """Name shown in the studio."""
    description: str | None = None
    """Description."""
    tags: dict[str, str | None] = Field(default_factory=dict)
    """Tags."""
    properties: dict[str, str | None] = Field(default_factory=dict)
    """Properties."""
    is_enabled: StrictBool | None = None
    """True where it starts anything; unset: it does."""

    @property
    def runs(self) -> Pipeline | Job | Sweep | None:
        """The declaration that it starts; None for a job that ran before."""
        return None if isinstance(self.create_job, str) else self.create_job

    @property
    def steps(self) -> Mapping[str, Any]:
        """The steps of what it starts, by name."""
        return self.runs.steps if self.runs else {}

    @property
    def parts(self) -> Mapping[str, Any]:
        """Those of what it starts, below `create_job`."""
        inner = self.runs.parts if self.runs else {}
        return {f"create_job.{place}".rstrip("."): part for place, part in inner.items()}

    def with_parts(self, change: Callable[[Any], Any]) -> Self:
        """The same schedule, with what it starts changed; a job that ran before stays."""
        if isinstance(self.create_job, str):
            return self
        return self.model_copy(update={"create_job": self.create_job.with_parts(change)})


Declared = Job | Sweep | Pipeline | Schedule
"""Whatever a job file declares."""


def trigger_text(trigger: Cron | Recurrence) -> str:
    """The times at which it starts, as a person reads them: ``cron `0 8 * * 1`, UTC, from 2026-07-01T00:00:00``."""
    if isinstance(trigger, Cron):
        words = [f"cron `{trigger.expression}`"]
    else:
        unit = trigger.frequency if trigger.interval == 1 else f"{trigger.interval} {trigger.frequency}s"
        words = [f"every {unit}", *_pattern_text(trigger.schedule)]
    times = (("from", trigger.start_time), ("until", trigger.end_time))
    return ", ".join([*words, trigger.time_zone, *(f"{word} {time}" for word, time in times if time)])


def _pattern_text(pattern: Pattern | None) -> list[str]:
    if pattern is None:
        return []
    clocks = [f"{hour}:{minute:02}" for hour in pattern.hours for minute in pattern.minutes]
    days = [*(pattern.week_days or ()), *(f"day {day}" for day in pattern.month_days or ())]
    return [f"{word} {' and '.join(each)}" for word, each in (("at", clocks), ("on", days)) if each]
