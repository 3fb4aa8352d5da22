"""The plan of a sweep: its trial's plan, and what can be wrong with trying it many times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, Level
from amlstack.base.text import did_you_mean
from jobs.model.job import Job, RunFields
from jobs.planning.job import plan_job
from jobs.planning.job_checks import lost
from jobs.planning.plans import BasePlan, declaration, written_fields
from jobs.values import Source
from jobs.wire.sweep import SHORTEST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from jobs.model.sweep import Sweep, SweepLimits
    from jobs.planning.plans import Find, Plan

_BOUND = re.compile(r"\$\{\{\s*search_space\.([\w.-]+?)\s*\}\}")
_UNSENT = (*RunFields.model_fields, "limits", "services")
"""Fields of a job that its sweep has, or that no sweep sends."""
SUPPORTED = {"grid": ("choice",), "bayesian": ("choice", "uniform", "quniform")}
"""Distributions that a sampling algorithm takes; random takes them all."""


@dataclass(frozen=True)
class SweepPlan(BasePlan):
    """A sweep resolved against a target.

    Attributes:
        job: As declared.
        trial: Its trial's plan.
        findings: What is wrong, the trial's findings under ``trial``.
    """

    job: Sweep
    trial: Plan

    @property
    def parts(self) -> dict[str, Plan]:
        """The plan of its trial."""
        return {"trial": self.trial}

    def placed(self, place: str, finding: Finding) -> Finding:
        """A finding on a field of the trial as one of the sweep, which has limits of its own."""
        return finding if finding.where.startswith("limits.") else super().placed(place, finding)

    def trials(self, place: str) -> SweepLimits:
        """The trials."""
        del place
        return self.job.limits

    @cached_property
    def enriched(self) -> Sweep:
        """The sweep with its trial in Azure ML's words."""
        return self.job.model_copy(update={"trial": self.trial.enriched})

    @cached_property
    def declaration(self) -> dict[str, Any]:
        """The declaration as plain data, for the run's identity."""
        return {**written_fields(self.job, leave=("trial",)), "trial": declaration(self.job.trial, self.base)}


def plan_sweep(sweep: Sweep, find: Find, *, source: Source, environments: Collection[str] = ()) -> SweepPlan:
    """Resolve a sweep: plan its trial, and find what is wrong with the whole; see `jobs.resolve`."""
    trial = plan_job(sweep.trial, find, source=Source(base=source.base), environments=environments)
    found = [finding.under("trial") for finding in trial.findings if not _bound_elsewhere(finding)]
    found += findings(sweep)
    found += _lost(sweep.trial)
    return SweepPlan(sweep, trial, findings=tuple(map(source.locate, found)), base=source.base)


def _bound_elsewhere(finding: Finding) -> bool:
    return finding.code == "input-undefined" and "search_space" in finding.seen


def findings(sweep: Sweep) -> Iterator[Finding]:
    """Findings on a sweep beside those on its trial."""
    bound = set(_BOUND.findall(sweep.trial.command))
    level = Level.ERROR if sweep.trial.typed else Level.WARNING
    for name in sorted(bound - sweep.search_space.keys()):
        yield Finding(
            "search-space-undefined",
            "trial.command",
            f"The command binds `${{{{search_space.{name}}}}}`, and the search space has no `{name}`",
            "Every binding names a hyperparameter of the search space",
            did_you_mean(name, sweep.search_space, otherwise=f"Add `{name}` under `search_space`."),
            level,
        )
    for name in sweep.search_space.keys() - bound:
        yield Finding(
            "search-space-unbound",
            f"search_space.{name}",
            f"The command does not bind `{name}`",
            "A hyperparameter reaches a trial only through its command",
            f"Write `${{{{search_space.{name}}}}}` in the command, or leave it out.",
            Level.WARNING,
        )
    yield from _sampling(sweep)
    yield from _limits(sweep)


def _sampling(sweep: Sweep) -> Iterator[Finding]:
    algorithm = sweep.sampling_algorithm
    kind = algorithm if isinstance(algorithm, str | None) else algorithm.type
    supported = SUPPORTED.get(kind or "")
    if algorithm is None:
        yield Finding(
            "sampling-missing",
            "sampling_algorithm",
            "There is no sampling algorithm",
            "azure-ai-ml sends none then, and Azure ML's interface requires one",
            "Write `sampling_algorithm: random`.",
            Level.WARNING,
        )
    for name, value in sweep.search_space.items():
        if supported is not None and value.type not in supported:
            yield Finding(
                "sampling-space",
                f"search_space.{name}",
                f"`{value.type}` under {kind} sampling",
                f"Azure ML's {kind} sampling takes {', '.join(f'`{each}`' for each in supported)}",
                "Write one of these, or `sampling_algorithm: random`.",
                Level.WARNING,
            )
    if not sweep.search_space:
        yield Finding(
            "search-space-empty",
            "search_space",
            "Nothing is varied",
            "A sweep varies at least one hyperparameter",
            "Add one, or make it a command job.",
            Level.WARNING,
        )
    policy = sweep.early_termination
    if policy is not None and policy.type == "bandit" and not policy.slack_factor and not policy.slack_amount:
        yield Finding(
            "bandit-slack",
            "early_termination",
            "The bandit policy has no slack",
            "Without one every trial but the best is ended at its first judgement",
            "Write `slack_factor` or `slack_amount`.",
            Level.WARNING,
        )


def _limits(sweep: Sweep) -> Iterator[Finding]:
    limits = sweep.limits
    for name in ("timeout", "trial_timeout"):
        seconds = getattr(limits, name)
        if seconds and seconds < SHORTEST:
            yield Finding(
                "timeout-short",
                f"limits.{name}",
                f"{seconds} seconds",
                f"A timeout of a sweep is at least {SHORTEST} seconds; Azure ML is sent {SHORTEST}",
                f"Write {SHORTEST}, or more.",
                Level.WARNING,
            )
    if limits.max_concurrent_trials is not None and limits.max_concurrent_trials > limits.max_total_trials:
        yield Finding(
            "trials-concurrent",
            "limits.max_concurrent_trials",
            f"{limits.max_concurrent_trials} trials at the same time, {limits.max_total_trials} in total",
            "No more trials run at the same time than there are",
            f"Write at most {limits.max_total_trials}.",
            Level.WARNING,
        )


def _lost(trial: Job) -> Iterator[Finding]:
    for name in _UNSENT:
        field = Job.model_fields[name]
        if getattr(trial, name) != field.get_default(call_default_factory=True, validated_data={}):
            rule = "Of a trial Azure ML takes what runs and where; all else is the sweep's"
            yield lost(f"trial.{name}", f"The trial has `{name}`", rule, "Write it at the sweep, or leave it out.")
