"""`Sweep`: one training job tried with many hyperparameters, each drawn from one of Azure ML's distributions."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from jobs.model.job import Job, Resources, RunFields
from jobs.values import Model, Seconds

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
