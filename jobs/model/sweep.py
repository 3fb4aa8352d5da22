"""`Sweep`: one training job tried with many hyperparameters."""

# ruff: noqa: TC001 - pydantic reads the annotations
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from jobs.model.job import Job
from jobs.model.resources import Resources
from jobs.model.run_fields import RunFields
from jobs.model.search_space import SearchSpace
from jobs.model.values import Model

if TYPE_CHECKING:
    from collections.abc import Callable


class Objective(Model):
    """What the sweep is after; the training code logs the metric."""

    primary_metric: Annotated[StrictStr, Field(description="Name under which the trials log it.")]
    goal: Annotated[Literal["minimize", "maximize"], Field(description="Whether small or large is good.")]


class Random(Model):
    """Trials drawn at random."""

    type: Literal["random"] = "random"
    rule: Annotated[
        Literal["random", "sobol"] | None, Field(description="sobol: evenly spread, and the same again by its seed.")
    ] = None
    seed: Annotated[StrictInt | None, Field(description="Seed, so that a sweep can be repeated.")] = None
    logbase: Annotated[
        StrictInt | StrictFloat | StrictStr | None, Field(description="Base of the log distributions, or `e`.")
    ] = None


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
    slack_factor: Annotated[StrictInt | StrictFloat | None, Field(description="Allowed ratio to the best.")] = None
    slack_amount: Annotated[StrictInt | StrictFloat | None, Field(description="Allowed distance from the best.")] = None
    evaluation_interval: Annotated[Intervals | None, Field(description="Judged every so many logged metrics.")] = None
    delay_evaluation: Annotated[Intervals | None, Field(description="Metrics before the first judgement.")] = None


class MedianStopping(Model):
    """Ends trials that are worse than the median of all running averages."""

    type: Literal["median_stopping"] = "median_stopping"
    evaluation_interval: Annotated[Intervals | None, Field(description="Judged every so many logged metrics.")] = None
    delay_evaluation: Annotated[Intervals | None, Field(description="Metrics before the first judgement.")] = None


class TruncationSelection(Model):
    """Ends the worst percentage of trials at every judgement."""

    type: Literal["truncation_selection"] = "truncation_selection"
    truncation_percentage: Annotated[StrictInt, Field(description="Percentage that is ended.")]
    evaluation_interval: Annotated[Intervals | None, Field(description="Judged every so many logged metrics.")] = None
    delay_evaluation: Annotated[Intervals | None, Field(description="Metrics before the first judgement.")] = None


EarlyTermination = Annotated[Bandit | MedianStopping | TruncationSelection, Field(discriminator="type")]


class SweepLimits(Model):
    """How many trials, and how long."""

    max_total_trials: Annotated[Annotated[StrictInt, Field(ge=0)], Field(description="Trials in total.")]
    max_concurrent_trials: Annotated[
        Annotated[StrictInt, Field(ge=0)] | None, Field(description="Trials at the same time.")
    ] = None
    timeout: Annotated[
        Annotated[StrictInt, Field(ge=0)] | None, Field(description="Longest sweep in seconds; unset: no limit.")
    ] = None
    trial_timeout: Annotated[
        Annotated[StrictInt, Field(ge=0)] | None, Field(description="Longest trial in seconds; unset: no limit.")
    ] = None


class SweepResources(Resources):
    """Resources of the sweep where they are to differ from its trial's."""


class Trials(Model):
    """How a sweep, or a sweep as a step, searches."""

    objective: Annotated[Objective, Field(description="What the sweep is after.")]
    limits: Annotated[SweepLimits, Field(description="How many trials, and how long.")]
    sampling_algorithm: Annotated[
        Literal["random", "grid", "bayesian"] | Sampling | None, Field(description="How trials are chosen.")
    ] = None
    early_termination: Annotated[EarlyTermination | None, Field(description="When a trial is given up.")] = None


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

    trial: Annotated[Job, Field(description="What is tried.")]
    search_space: Annotated[dict[str, SearchSpace], Field(description="What is varied, by name.")]
    resources: Annotated[
        SweepResources | None, Field(description="Resources of the sweep; unset: those of its trial.")
    ] = None

    def with_parts(self, change: Callable[[Job], Job]) -> Self:
        """The same sweep of another trial."""
        return self.model_copy(update={"trial": change(self.trial)})
