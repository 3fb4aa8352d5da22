"""`Job`: the training run that a person declares. `jobs.plan` derives from it, `jobs.body` renders it.

It shares `RunFields` with sweeps and pipelines, and `Resources`, Azure ML's `resources`, with components and steps. A
`Component` is a command with declared inputs and outputs, of which pipelines make steps. A `Sweep` is a job tried with
many hyperparameters, each drawn from one of Azure ML's distributions.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from jobs.launchers import Custom, Launcher
from jobs.values import (
    AnyValue,
    AssetType,
    Code,
    CodeFolder,
    Count,
    Environment,
    FabricBlocks,
    Identity,
    Input,
    InputMode,
    Limits,
    Model,
    Output,
    OutputOrType,
    OwnSource,
    QueueSettings,
    Scalar,
    Seconds,
    Service,
    as_tuple,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict, Unpack

    from amlstack.catalog.fabric import Block
    from jobs.values import Source

Names = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]
"""Names, or the only one by itself."""


class RunFields(Model):
    """Names, tags, and what an edit or a removal does."""

    timed: ClassVar[bool] = False
    """True where times start it, again and again."""

    name: str | None = None
    """Name of the run; its id is this plus a hash. Unset: the file's name."""
    display_name: str | None = None
    """Name shown in the studio; may change later."""
    description: str | None = None
    """Description; may change later."""
    experiment_name: str | None = None
    """Experiment that the run is filed under."""
    tags: dict[str, str | None] = Field(default_factory=dict)
    """Tags; may change later."""
    properties: dict[str, str | None] = Field(default_factory=dict)
    """Properties of the run record."""
    rerun: str | None = None
    """Any word; another word is another run of the same."""
    on_edit: Literal["refuse", "cancel", "keep"] = "refuse"
    """Effect of an edit while the old run is active: refuse it, cancel the old run, or keep it."""
    wait: Literal["none", "started", "completed"] = "none"
    """The state that `up` waits for before whatever depends on the run goes on."""
    after: Names = ()
    """Jobs of the same stack, by name or by job file, that must have completed before this one is submitted."""
    delete_history: StrictBool = False
    """Delete the run's record when it is removed."""

    @property
    def runs(self) -> Self:
        """The run itself."""
        return self

    @property
    def steps(self) -> Mapping[str, Any]:
        """Its steps by name; empty for what is no pipeline."""
        return {}

    @property
    def parts(self) -> Mapping[str, Any]:
        """The parts with a command of their own, by place in the file: the job itself, `trial`, or `jobs.STEP`."""
        return {"": self}


if TYPE_CHECKING:

    class ResourceArguments(TypedDict, total=False):
        """The values that each field takes, for type checkers: wider than what the field holds."""

        nodes: int | str | None
        instance_type: str | None
        locations: Sequence[str] | None
        max_instance_count: int | str | None
        shm_size: str | None
        docker_args: str | Sequence[str] | None
        resource_properties: Mapping[str, Any] | None


class Resources(Model):
    """The machines of a run, as far as its cluster does not say."""

    nodes: Count | None = None
    """Number of nodes; unset: 1, or the component's."""
    instance_type: str | None = None
    """VM size of a serverless job."""
    locations: tuple[str, ...] | None = None
    """Regions that a serverless job may run in."""
    max_instance_count: Count | None = None
    """Upper bound of nodes of an elastic job."""
    shm_size: str | None = None
    """Shared memory of the container, e.g. `64g`; Azure ML's own default is 2g."""
    docker_args: str | tuple[str, ...] | None = None
    """Further arguments of `docker run`."""
    resource_properties: dict[str, Any] | None = None
    """Properties of the resources, passed through unchanged."""


RESOURCE_FIELDS = tuple(Resources.model_fields)


class Job(RunFields, Resources):
    """One training run: a command, where it runs, on how many nodes, and how its ranks are started.

    Usage::

        job = Job(
            name="ddp",
            command="python train.py --epochs ${{inputs.epochs}}",
            code="src",
            inputs={"epochs": 3},
            environment="acpt-pytorch-2.8-cuda12.6",
            compute="h100",
            nodes=2,
            launcher=TorchRun(),
        )
    """

    kind: ClassVar[str] = "command"
    """Kind of step that it is in a pipeline."""
    RUNS: ClassVar[str] = ""
    """A step that is a job names no component: it runs itself."""
    declares_ports: ClassVar[bool] = True
    """True where it says itself what it reads and writes; otherwise its step does."""

    command: StrictStr
    """Shell command; `${{inputs.x}}` and `${{outputs.y}}` are bound."""
    environment: str | Environment
    """Curated name (`acpt-pytorch-2.8-cuda12.6`), `azureml:NAME:VERSION`, `azureml:NAME@LABEL`,
    `azureml://registries/…`, or one written inline.
    """
    code: CodeFolder | None = None
    """Folder that the command runs in."""
    inputs: dict[str, Input | Scalar] = Field(default_factory=dict)
    """Inputs of the command, by name."""
    outputs: dict[str, OutputOrType] = Field(default_factory=dict)
    """Outputs of the command, by name."""
    environment_variables: dict[str, AnyValue] = Field(default_factory=dict)
    """Variables of every process."""

    # A factory: making one at import would build its validators in every process that imports jobs.
    launcher: Launcher = Field(default_factory=Custom)
    """The launcher of the ranks."""
    compute: str | None = None
    """Cluster by name or id, or `local`; unset: serverless."""
    limits: Limits | None = None
    """Limits at which the job is ended."""
    queue_settings: QueueSettings | None = None
    """Tier and priority in the queue."""
    identity: Identity | None = None
    """As whom the job reads its data."""
    services: dict[str, Service] | None = None
    """Ways into the running job, by name."""
    parent_job_name: str | None = None
    """Run that this one is filed under."""

    enrich: StrictBool | None = None
    """Add the fabric's variables and shared memory; unset: for typed launchers, and where `fabric` asks."""
    fabric: FabricBlocks = ()
    """Further variables of the size's fabric: `azure-tuned`, `sharp`, `topology` (docs/reference/fabric.md)."""

    if TYPE_CHECKING:
        # What may be given is wider than what a field holds (`code="src"`), which editors cannot see in the fields.
        def __init__(
            self,
            *,
            command: str,
            environment: str | Environment,
            code: Code | str | None = None,
            inputs: Mapping[str, Input | Scalar] = ...,
            outputs: Mapping[str, Output | AssetType] = ...,
            environment_variables: Mapping[str, Any] = ...,
            launcher: Launcher = ...,
            compute: str | None = None,
            limits: Limits | Mapping[str, int | str] | None = None,
            queue_settings: QueueSettings | None = None,
            identity: Identity | None = None,
            services: Mapping[str, Service] | None = None,
            parent_job_name: str | None = None,
            enrich: bool | None = None,
            fabric: Block | Sequence[Block] = (),
            # As of every run.
            name: str | None = None,
            display_name: str | None = None,
            description: str | None = None,
            experiment_name: str | None = None,
            tags: Mapping[str, str | None] = ...,
            properties: Mapping[str, str | None] = ...,
            rerun: str | None = None,
            on_edit: Literal["refuse", "cancel", "keep"] = "refuse",
            wait: Literal["none", "started", "completed"] = "none",
            after: str | Sequence[str] = (),
            delete_history: bool = False,
            **resources: Unpack[ResourceArguments],
        ) -> None: ...

    @property
    def typed(self) -> bool:
        """True where the launcher is one of ours, not Azure ML's words taken as they are."""
        return not isinstance(self.launcher, Custom)

    def with_runs(self, runs: Self) -> Self:
        """The other job."""
        return runs

    def job(self) -> Self:
        """The command job that an inline step is: the job itself."""
        return self

    def with_parts(self, change: Callable[[Self], Self]) -> Self:
        """The job changed: it is its own one part."""
        return change(self)


Primitive = Literal["string", "number", "integer", "boolean"]
PRIMITIVES: tuple[str, ...] = ("string", "number", "integer", "boolean")
NO_ENVIRONMENT = "azureml:(none)"
"""Stands where a step names no environment, and is never sent; no environment can have this name."""


class Port(Model):
    """An input or output that a component declares."""

    type: AssetType | Literal["path"] | Primitive
    """Kind of asset, or of literal."""
    description: str | None = None
    """Its purpose, for readers."""
    optional: StrictBool | None = None
    """True where a step may leave it out."""
    default: StrictBool | StrictInt | StrictFloat | StrictStr | None = None
    """Its default."""
    min: StrictInt | StrictFloat | StrictStr | None = None
    """Least value."""
    max: StrictInt | StrictFloat | StrictStr | None = None
    """Greatest value."""
    enum: tuple[str, ...] | None = None
    """The values it may have."""
    mode: InputMode | Literal["upload", "link"] | None = None
    """The way in which it reaches or leaves the node."""

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
    """True where the same inputs give the same outputs, so that a step may be reused."""
    inputs: dict[str, Port] = Field(default_factory=dict)
    """Inputs, by name."""
    outputs: dict[str, Port] = Field(default_factory=dict)
    """Outputs, by name."""
    code: CodeFolder | None = None
    """Folder that the command runs in."""
    # A factory: making one at import would build its validators in every process that imports jobs.
    launcher: Launcher = Field(default_factory=Custom)
    """The launcher of the ranks."""
    additional_includes: tuple[str, ...] = ()
    """Files and folders that go along with the code, under their own names."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys, kept with the component."""
    schema_uri: str | None = None
    """`$schema` of the file it was written in."""
    source: OwnSource = None
    inline: StrictBool = False
    """True where it stands in the pipeline's own file."""

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


Number = StrictInt | StrictFloat


class _Between(Model):
    min_value: Number
    """Lower bound; of the logarithm for the log distributions."""
    max_value: Number
    """Upper bound; of the logarithm for the log distributions."""


class _Bell(Model):
    mu: Number
    """Mean; of the logarithm for the log distributions."""
    sigma: Number
    """Standard deviation; of the logarithm for the log distributions."""


class Choice(Model):
    """One of a few values; a value may be a mapping of names to values or further distributions."""

    type: Literal["choice"] = "choice"
    values: tuple[StrictInt | StrictFloat | StrictStr | dict[str, Any], ...] = ()
    """The values to choose from."""


class Randint(Model):
    """A whole number from 0, below an upper bound."""

    type: Literal["randint"] = "randint"
    upper: StrictInt
    """Upper bound, itself excluded."""


class Uniform(_Between):
    """Any value between two bounds, all equally likely."""

    type: Literal["uniform"] = "uniform"


class LogUniform(_Between):
    """exp of a uniform value: for learning rates and the like."""

    type: Literal["loguniform"] = "loguniform"


class QUniform(_Between):
    """A uniform value, rounded to multiples of q."""

    type: Literal["quniform"] = "quniform"
    q: Number
    """Step."""


class QLogUniform(_Between):
    """exp of a uniform value, rounded to multiples of q."""

    type: Literal["qloguniform"] = "qloguniform"
    q: Number
    """Step."""


class Normal(_Bell):
    """A normally distributed value."""

    type: Literal["normal"] = "normal"


class LogNormal(_Bell):
    """exp of a normally distributed value."""

    type: Literal["lognormal"] = "lognormal"


class QNormal(_Bell):
    """A normally distributed value, rounded to multiples of q."""

    type: Literal["qnormal"] = "qnormal"
    q: Number
    """Step."""


class QLogNormal(_Bell):
    """exp of a normally distributed value, rounded to multiples of q."""

    type: Literal["qlognormal"] = "qlognormal"
    q: Number
    """Step."""


SearchSpace = Annotated[
    Choice | Randint | Uniform | LogUniform | QUniform | QLogUniform | Normal | LogNormal | QNormal | QLogNormal,
    Field(discriminator="type"),
]


SEARCH_DISTRIBUTIONS: tuple[type[Model], ...] = get_args(get_args(SearchSpace)[0])
"""The same as values."""


class Objective(Model):
    """The aim of the sweep; the training code logs the metric."""

    primary_metric: StrictStr
    """Name under which the trials log it."""
    goal: Literal["minimize", "maximize"]
    """The direction in which the metric gets better."""


class Random(Model):
    """Trials drawn at random."""

    type: Literal["random"] = "random"
    rule: Literal["random", "sobol"] | None = None
    """sobol: evenly spread, and the same again by its seed."""
    seed: StrictInt | None = None
    """Seed, so that a sweep can be repeated."""
    logbase: StrictInt | StrictFloat | StrictStr | None = None
    """Base of the log distributions, or `e`."""


class Grid(Model):
    """Every combination of choices."""

    type: Literal["grid"] = "grid"


class Bayesian(Model):
    """Trials near what did well before."""

    type: Literal["bayesian"] = "bayesian"


Sampling = Annotated[Random | Grid | Bayesian, Field(discriminator="type")]

Intervals = Annotated[StrictInt, Field(ge=0)]


class Bandit(Model):
    """Ends trials that are further than a slack from the best one."""

    type: Literal["bandit"] = "bandit"
    slack_factor: StrictInt | StrictFloat | None = None
    """Allowed ratio to the best."""
    slack_amount: StrictInt | StrictFloat | None = None
    """Allowed distance from the best."""
    evaluation_interval: Intervals | None = None
    """Judged every so many logged metrics."""
    delay_evaluation: Intervals | None = None
    """Metrics before the first judgement."""


class MedianStopping(Model):
    """Ends trials that are worse than the median of all running averages."""

    type: Literal["median_stopping"] = "median_stopping"
    evaluation_interval: Intervals | None = None
    """Judged every so many logged metrics."""
    delay_evaluation: Intervals | None = None
    """Metrics before the first judgement."""


class TruncationSelection(Model):
    """Ends the worst percentage of trials at every judgement."""

    type: Literal["truncation_selection"] = "truncation_selection"
    truncation_percentage: StrictInt
    """Percentage that is ended."""
    evaluation_interval: Intervals | None = None
    """Judged every so many logged metrics."""
    delay_evaluation: Intervals | None = None
    """Metrics before the first judgement."""


EarlyTermination = Annotated[Bandit | MedianStopping | TruncationSelection, Field(discriminator="type")]


class SweepLimits(Model):
    """The number of trials, and their time."""

    max_total_trials: Annotated[StrictInt, Field(ge=0)]
    """Trials in total."""
    max_concurrent_trials: Annotated[StrictInt, Field(ge=0)] | None = None
    """Trials at the same time."""
    timeout: Seconds | None = None
    """Longest sweep in seconds, in Python also as text (`2h`); unset: no limit."""
    trial_timeout: Seconds | None = None
    """Longest trial in seconds, in Python also as text (`2h`); unset: no limit."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            max_total_trials: int,
            max_concurrent_trials: int | None = None,
            timeout: int | str | None = None,
            trial_timeout: int | str | None = None,
        ) -> None: ...


class SweepResources(Resources):
    """Resources of the sweep where they are to differ from its trial's."""


class Trials(Model):
    """The search of a sweep, or of a sweep as a step."""

    objective: Objective
    """The objective of the sweep."""
    limits: SweepLimits
    """The number of trials, and their time."""
    sampling_algorithm: Literal["random", "grid", "bayesian"] | Sampling | None = None
    """The algorithm that chooses trials."""
    early_termination: EarlyTermination | None = None
    """The policy by which a trial is given up."""


class Sweep(RunFields, Trials):
    """Many trials of one job.

    The trial says what runs and where, its launcher and distribution included; its command binds what is varied as
    ``${{search_space.NAME}}``. Names, tags and the like are the sweep's.

    Usage::

        job = Sweep(
            name="tune",
            trial=Job(command="python train.py --lr ${{search_space.lr}}", …),
            search_space={"lr": LogUniform(min_value=-6, max_value=-1)},
            objective=Objective(primary_metric="loss", goal="minimize"),
            limits=SweepLimits(max_total_trials=20, max_concurrent_trials=4),
        )
    """

    HOLDS: ClassVar[str] = "trial"

    trial: Job
    """The job that is tried."""
    search_space: dict[str, SearchSpace]
    """The hyperparameters, by name."""
    resources: SweepResources | None = None
    """Resources of the sweep; unset: those of its trial."""

    @property
    def parts(self) -> Mapping[str, Job]:
        """Its trial."""
        return {"trial": self.trial}

    def with_parts(self, change: Callable[[Job], Job]) -> Self:
        """The same sweep of another trial."""
        return self.model_copy(update={"trial": change(self.trial)})
