"""The plans of a sweep and of a pipeline: the plans of their trial and steps, and what is wrong with the whole."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from amlstack.base.findings import Finding, Level, stated
from amlstack.base.text import did_you_mean
from jobs.launchers import Custom
from jobs.model.job import RESOURCE_FIELDS, Component, Job, RunFields, Sweep, SweepLimits
from jobs.model.pipeline import (
    COMMANDS,
    AnyStep,
    BareOutput,
    ComponentNode,
    PassthroughComponent,
    Pipeline,
    Step,
    SweepStep,
)
from jobs.planning import pipeline_checks
from jobs.planning.job import plan, plan_job
from jobs.planning.job_checks import lost
from jobs.planning.plans import BasePlan, Find, Plan, declaration, written_fields
from jobs.values import Source
from jobs.wire.component import SHORTEST
from jobs.wire.pipeline import inner_pipeline

_BOUND = r"\$\{\{\s*search_space\.([\w.-]+?)\s*\}\}"
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
    bound = set(re.findall(_BOUND, sweep.trial.command))
    level = Level.ERROR if sweep.trial.typed else Level.WARNING
    for name in sorted(bound - sweep.search_space.keys()):
        seen = f"The command binds `${{{{search_space.{name}}}}}`, and the search space has no `{name}`"
        rule = "Every binding names a hyperparameter of the search space"
        remedy = did_you_mean(name, sweep.search_space, otherwise=f"Add `{name}` under `search_space`.")
        yield Finding("search-space-undefined", "trial.command", seen, rule, remedy, level)
    for name in sweep.search_space.keys() - bound:
        yield stated("search-space-unbound", f"search_space.{name}", Level.WARNING, name=name)
    yield from _sampling(sweep)
    yield from _limits(sweep)


def _sampling(sweep: Sweep) -> Iterator[Finding]:
    algorithm = sweep.sampling_algorithm
    kind = algorithm if isinstance(algorithm, str | None) else algorithm.type
    supported = SUPPORTED.get(kind or "")
    if algorithm is None:
        yield stated("sampling-missing", "sampling_algorithm", Level.WARNING)
    for name, value in sweep.search_space.items():
        if supported is not None and value.type not in supported:
            where = f"search_space.{name}"
            rule = f"Azure ML's {kind} sampling takes {', '.join(f'`{each}`' for each in supported)}"
            remedy = "Write one of these, or `sampling_algorithm: random`."
            yield Finding("sampling-space", where, f"`{value.type}` under {kind} sampling", rule, remedy, Level.WARNING)
    if not sweep.search_space:
        yield stated("search-space-empty", "search_space", Level.WARNING)
    policy = sweep.early_termination
    if policy is not None and policy.type == "bandit" and not policy.slack_factor and not policy.slack_amount:
        yield stated("bandit-slack", "early_termination", Level.WARNING)


def _limits(sweep: Sweep) -> Iterator[Finding]:
    limits = sweep.limits
    for name in ("timeout", "trial_timeout"):
        seconds = getattr(limits, name)
        if seconds and seconds < SHORTEST:
            yield stated("timeout-short", f"limits.{name}", Level.WARNING, seconds=seconds, SHORTEST=SHORTEST)
    if limits.max_concurrent_trials is not None and limits.max_concurrent_trials > limits.max_total_trials:
        yield stated("trials-concurrent", "limits.max_concurrent_trials", Level.WARNING, limits=limits)


def _lost(trial: Job) -> Iterator[Finding]:
    for name in _UNSENT:
        field = Job.model_fields[name]
        if getattr(trial, name) != field.get_default(call_default_factory=True, validated_data={}):
            rule = "Of a trial Azure ML takes what runs and where; all else is the sweep's"
            yield lost(f"trial.{name}", f"The trial has `{name}`", rule, "Write it at the sweep, or leave it out.")


_BOUND_INPUT = r"\$\{\{\s*parent\.inputs\.(?P<name>[^}\s]+?)\s*\}\}"
_OF_THE_COMPONENT = ("command", "code", "environment", "additional_includes")
_OF_A_FILE = ("source", "inline", "schema_uri")
"""The file of a component; no part of a run's identity."""


@dataclass(frozen=True)
class PipelinePlan(BasePlan):
    """A pipeline resolved against the targets of its steps.

    Attributes:
        job: As declared.
        steps: The plan of every step whose component is known here; a registered component's command is not.
        findings: What is wrong, each step's under ``jobs.<step>``.
    """

    job: Pipeline
    steps: dict[str, Plan]

    @property
    def parts(self) -> dict[str, Plan]:
        """The plans of its steps, by ``jobs.STEP``; ``jobs.OUTER.jobs.STEP`` in a pipeline that is a step."""
        return {f"jobs.{name}": each for name, each in self.steps.items()}

    def trials(self, place: str) -> SweepLimits | None:
        """The trials of the step at a place; None for one that runs once."""
        jobs: Mapping[str, Any] = self.job.jobs
        *outer, last = place.removeprefix("jobs.").split(".jobs.")
        for name in outer:
            jobs = jobs[name].runs.jobs
        step: AnyStep = jobs[last]
        return step.limits if isinstance(step, SweepStep) else None

    def placed(self, place: str, finding: Finding) -> Finding:
        """A finding on a field of the part at a place: at its step, or in the file of the component that has it."""
        return _placed_in(self.job.jobs, place.removeprefix("jobs.").split(".jobs."), finding) if place else finding

    @cached_property
    def enriched(self) -> Pipeline:
        """The pipeline with its steps in Azure ML's words."""
        return self.job.model_copy(update={"jobs": _all_enriched(self.job.jobs, self.steps)})

    @cached_property
    def declaration(self) -> dict[str, Any]:
        """The declaration as plain data, for the run's identity; the place of a component's file is no part of it."""
        return {
            **written_fields(self.job, leave=("jobs",)),
            "jobs": {name: self._step(step) for name, step in self.job.jobs.items()},
        }

    def _step(self, step: AnyStep) -> dict[str, Any]:
        if isinstance(step, Job):
            return declaration(step, self.base)
        return {**written_fields(step, leave=(step.RUNS, "comment")), step.RUNS: self._component(step.runs)}

    def _component(self, component: Any) -> Any:
        if isinstance(component, PassthroughComponent):
            steps = {name: self._step(each) for name, each in component.jobs.items()}
            return {**written_fields(component, leave=(*_OF_A_FILE, "jobs")), "jobs": steps}
        if isinstance(component, Component):
            of_the_job = declaration(component.job(), self.base)
            return {
                **written_fields(component, leave=(*_OF_A_FILE, "environment", "version")),
                **{key: value for key, value in of_the_job.items() if key in _OF_THE_COMPONENT},
            }
        return component


def plan_pipeline(
    pipeline: Pipeline, find: Find, *, source: Source, environments: Collection[str] = ()
) -> PipelinePlan:
    """Resolve a pipeline: plan each step on its own target, and find what is wrong with the whole.

    See `jobs.resolve` for the arguments.
    """
    steps: dict[str, Plan] = {}
    found = [*pipeline_checks.check(pipeline), *pipeline_checks.missing_data(pipeline, source.base)]
    for name, step in pipeline.jobs.items():
        component: Any = step.runs
        if step.steps:
            inner = inner_pipeline(component, step.compute or pipeline.named_compute)
            given = {name: _text(pipeline, value) for name, value in step.inputs.items()}
            texts = {name: text for name, text in given.items() if text and inner.inputs.get(name) == ""}
            inner = inner.model_copy(update={"inputs": {**inner.inputs, **texts}})
            own_file = replace(component.source or Source(), base=source.base)  # its paths are seen from the outermost
            whole = plan_pipeline(inner, find, source=own_file, environments=environments)
            steps |= {f"{name}.jobs.{key}": each for key, each in whole.steps.items()}
            found += (each if each.file else each.under(f"jobs.{name}.component") for each in whole.findings)
        job = step.job()
        if job is None:
            continue
        target, wrong = find(job.model_copy(update={"compute": _compute(pipeline, job)}))
        planned = plan(job, target, source=Source(base=source.base), environments=environments)
        steps[name] = planned
        judged = [_of_a_step(finding, job) for finding in (*planned.findings, *wrong)]
        found += (_placed(finding, name, step) for finding in judged if not _elsewhere(finding, step))
    located = tuple(source.locate(finding) for finding in found if not source.explains(finding))
    return PipelinePlan(pipeline, steps, findings=located, base=source.base)


def _of_a_step(finding: Finding, job: Job) -> Finding:
    """A finding of a job as one of a step: azure-ai-ml takes any name of an input there, groups (`a.b`) above all.

    It also takes any name of an output that is only named.
    """
    side, _, name = finding.where.partition(".")
    bare = side == "outputs" and isinstance(job.outputs.get(name), BareOutput)
    if finding.code == "binding-name" and (side == "inputs" or bare):
        return replace(finding, level=Level.WARNING)
    return finding


def _text(pipeline: Pipeline, value: Any) -> str | None:
    """A text, of the pipeline's input where it is bound to one; None for others, and where an outer pipeline knows."""
    bound = re.fullmatch(_BOUND_INPUT, value) if isinstance(value, str) else None
    text = pipeline.inputs.get(bound["name"]) if bound else value
    return text if isinstance(text, str) and text and "${{" not in text else None


def _compute(pipeline: Pipeline, job: Job) -> str | None:
    """The cluster of a step; None for serverless, and for a binding whose value only the outer pipeline knows."""
    named = job.compute or pipeline.default_compute
    if named is not None and re.fullmatch(_BOUND_INPUT, named):
        named = _text(pipeline, named)
    return None if named is None or named.lower() == "serverless" else named


def _elsewhere(finding: Finding, step: AnyStep) -> bool:
    """True for a plan's finding that the pipeline states better: on its target, and on the component's own inputs."""
    if step.kind not in COMMANDS and finding.where.split(".")[0] not in ("code", "environment", "compute"):
        return True
    if finding.code == "target-unknown":
        return True
    return finding.code == "compute-local" and bool(step.RUNS)


def _placed_in(steps: Mapping[str, AnyStep], names: Sequence[str], finding: Finding) -> Finding:
    name, *below = names
    step: Any = steps[name]
    if not below:
        return _placed(finding, name, step)
    inner = (step.runs.source or Source()).locate(_placed_in(step.runs.jobs, below, finding))
    return inner if inner.file else inner.under(f"jobs.{name}.{step.RUNS}")


def _placed(finding: Finding, name: str, step: AnyStep) -> Finding:
    """A step's finding under its step; what a component's file says is placed in that file."""
    component: Any = step.runs
    first = finding.where.split(".")[0].split("[")[0]
    if not isinstance(step, ComponentNode) or not _given_by(component, step, first):
        return finding.under(f"jobs.{name}")
    where = finding.under(f"jobs.{name}.{step.RUNS}")
    if component.source is None:
        return where
    _, line, column = component.source.place(finding.where)
    return where.at(component.source.file, line, column)


def _given_by(component: Component, step: ComponentNode, field: str) -> bool:
    """True where a field of a step's job comes from its component."""
    if field in _OF_THE_COMPONENT:
        return True
    if field in (*RESOURCE_FIELDS, "launcher"):
        return getattr(step.own_resources, field, None) is None and hasattr(component, field)
    return False


def _all_enriched(steps: Mapping[str, AnyStep], plans: Mapping[str, Plan]) -> dict[str, AnyStep]:
    """Steps with what their plans added, those of a pipeline in the pipeline too."""
    return {name: _enriched(step, plans.get(name), plans, f"{name}.jobs.") for name, step in steps.items()}


def _enriched(step: AnyStep, planned: Plan | None, plans: Mapping[str, Plan], prefix: str) -> AnyStep:
    """A step with what its plan added: the command in its component, the rest at the step."""
    component: Any = step.runs
    if step.steps:
        below = {key.removeprefix(prefix): each for key, each in plans.items() if key.startswith(prefix)}
        return step.with_runs(component.model_copy(update={"jobs": _all_enriched(step.steps, below)}))
    if planned is None or step.kind not in COMMANDS:
        return step
    before, after = planned.job, planned.enriched
    if not step.RUNS:
        return after
    changed = {name: getattr(after, name) for name in RESOURCE_FIELDS if getattr(after, name) != getattr(before, name)}
    inner: dict[str, Any] = {"command": after.command}
    update: dict[str, Any] = {}
    if isinstance(step, Step):
        if not isinstance(component.launcher, Custom):
            inner["launcher"] = after.launcher
        if changed:
            update |= {name: getattr(after, name) for name in RESOURCE_FIELDS}
        if after.launcher != before.launcher or step.launcher is not None:
            update["launcher"] = after.launcher
        update["environment_variables"] = after.environment_variables
    else:
        # The wire has no variables for a sweep step, and its trial's resources are its component's.
        command = _exporting(after.environment_variables, after.command)
        inner |= changed | {"launcher": after.launcher, "command": command}
    return step.model_copy(update=update).with_runs(component.model_copy(update=inner))


def _exporting(variables: Mapping[str, str], command: str) -> str:
    """A command that sets variables itself, for bash, which Azure ML runs it with."""
    exported = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())
    return f"export {exported}; {command}" if exported else command
