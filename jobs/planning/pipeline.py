"""The plan of a pipeline: a plan of every step, placed under it, and what is wrong with the whole."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Level, errors
from jobs.launchers import Custom
from jobs.model.component import RUNTIME, Component
from jobs.model.job import Job
from jobs.model.location import Source
from jobs.model.passthrough import PassthroughComponent, PassthroughStep
from jobs.model.pipeline import BareOutput, Step, SweepStep
from jobs.planning import pipeline_checks
from jobs.planning.command import Plan, plan
from jobs.planning.declaration import declaration, written
from jobs.planning.target import Target
from jobs.wire.pipeline import effective
from jobs.wire.pipeline_ports import inside

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import date

    from amlstack.base.findings import Finding
    from jobs.model.location import Place
    from jobs.model.pipeline import AnyStep, Pipeline

    Find = Callable[[Job], tuple[Target, Sequence[Finding]]]

_OF_THE_COMPONENT = ("command", "code", "environment", "additional_includes")


@dataclass(frozen=True)
class PipelinePlan:
    """A pipeline resolved against the targets of its steps.

    Attributes:
        job: As declared.
        steps: The plan of every step whose component is known here; a registered component's command is not.
        findings: What is wrong, each step's under ``jobs.<step>``, placed in the file.
        base: Folder that relative paths start from.
    """

    job: Pipeline
    steps: dict[str, Plan]
    findings: tuple[Finding, ...]
    base: Path

    @property
    def ok(self) -> bool:
        """Whether nothing refuses it; warnings do not."""
        return not errors(self.findings)

    def placed(self, place: str, finding: Finding) -> Finding:
        """A finding on a field of the part at a place, at its step or in the file of the component that says it."""
        return _placed_in(self.job.jobs, place.removeprefix("jobs.").split(".jobs."), finding, self.base)

    @cached_property
    def enriched(self) -> Pipeline:
        """The pipeline with its steps in Azure ML's words."""
        return self.job.model_copy(update={"jobs": _all_enriched(self.job.jobs, self.steps)})

    @cached_property
    def declaration(self) -> dict[str, Any]:
        """What the person wrote, for the run's identity; where a component's file lies is no part of it."""
        return {
            **written(self.job, leave=("jobs",)),
            "jobs": {name: self._step(step) for name, step in self.job.jobs.items()},
        }

    def _step(self, step: AnyStep) -> dict[str, Any]:
        if isinstance(step, Job):
            return declaration(step, self.base)
        if isinstance(step, PassthroughStep):
            inner: Any = step.component
            if isinstance(inner, PassthroughComponent):
                inner = {
                    **written(inner, leave=("file", "inline", "schema_uri", "jobs")),
                    "jobs": {name: self._step(each) for name, each in inner.jobs.items()},
                }
            return {**written(step, leave=("component", "comment")), "component": inner}
        field = "trial" if isinstance(step, SweepStep) else "component"
        component = getattr(step, field)
        told: Any = component
        if isinstance(component, Component):
            told = {
                **written(component, leave=("file", "inline", "schema_uri", "environment", "version")),
                **{
                    key: value
                    for key, value in declaration(component.job(), self.base).items()
                    if key in _OF_THE_COMPONENT
                },
            }
        return {**written(step, leave=(field, "comment")), field: told}


def plan_pipeline(
    pipeline: Pipeline,
    find: Find | None = None,
    *,
    on: date,
    source: Source | None = None,
    environments: Collection[str] = (),
) -> PipelinePlan:
    """Resolve a pipeline: plan each step on its own target, and say what is wrong with the whole.

    Args:
        pipeline: As declared.
        find: The target of a step's job, and what is wrong with that; None takes the job's own instance_type.
        on: The day of the judgement, for retired sizes.
        source: The pipeline's file.
        environments: Names of environments that the stack registers, beside the curated ones.
    """
    source = source or Source()
    steps: dict[str, Plan] = {}
    found = list(pipeline_checks.check(pipeline))
    for name, step in pipeline.jobs.items():
        if (
            isinstance(step, PassthroughStep)
            and isinstance(step.component, PassthroughComponent)
            and step.component.jobs
        ):
            inner = inside(step.component, step.compute or pipeline.default_compute or _serverless(pipeline))
            whole = plan_pipeline(
                inner, find, on=on, source=_source(step.component, source.base), environments=environments
            )
            steps |= {f"{name}.jobs.{key}": each for key, each in whole.steps.items()}
            found += (each if each.file else each.under(f"jobs.{name}.component") for each in whole.findings)
        job = job_of(step)
        if job is None:
            continue
        placed = job.model_copy(update={"compute": _compute(pipeline, job)})
        target, wrong = (
            find(placed) if find else (Target(size=placed.instance_type if not placed.compute else None), ())
        )
        told = plan(job, target, on=on, source=Source(base=source.base), environments=environments)
        steps[name] = told
        judged = [_of_a_step(finding, job) for finding in (*told.findings, *wrong)]
        found += (_placed(finding, name, step) for finding in judged if not _elsewhere(finding, step))
    located = tuple(source.locate(finding) for finding in found if not source.explains(finding))
    return PipelinePlan(pipeline, steps, located, source.base)


def _of_a_step(finding: Finding, job: Job) -> Finding:
    """A finding of a job as one of a step: azure-ai-ml takes any name of an input there, groups (`a.b`) above all.

    So it does of an output that nothing is said of.
    """
    side, _, name = finding.where.partition(".")
    unsaid = side == "outputs" and isinstance(job.outputs.get(name), BareOutput)
    if finding.code == "binding-name" and (side == "inputs" or unsaid):
        return replace(finding, level=Level.WARNING)
    return finding


def _serverless(pipeline: Pipeline) -> str | None:
    """The word for serverless steps, where the pipeline says it."""
    return pipeline.compute or (pipeline.settings.default_compute if pipeline.settings else None)


def _source(component: PassthroughComponent, base: Path) -> Source:
    """The file of a pipeline component, for the places of what is wrong in it; its paths start at the pipeline's."""
    if component.file is None:
        return Source(base=base)
    from amlstack.base import yamltext  # noqa: PLC0415 - only for a pipeline that names another
    from jobs.azureml.read import pipeline as of_files  # noqa: PLC0415

    content = yamltext.read(Path(component.file))

    def place(where: str) -> Place:
        keys = of_files.path_of(where)
        return ".".join(keys), *(content.spot(keys) or (None, None))

    return Source(component.file, base, place)


def job_of(step: AnyStep) -> Job | None:
    """The command job that a step is; None where only the registered component knows its command."""
    if isinstance(step, Job):
        return step
    if isinstance(step, PassthroughStep):
        return step.job()
    component = step.trial if isinstance(step, SweepStep) else step.component
    if not isinstance(component, Component):
        return None
    job = effective(step, component)
    if isinstance(step, SweepStep):
        return job.model_copy(update={"inputs": {**job.inputs, **dict.fromkeys(step.search_space, 0)}})
    return job


def _compute(pipeline: Pipeline, job: Job) -> str | None:
    named = job.compute or pipeline.default_compute
    return None if named is None or named.lower() == "serverless" else named


def _elsewhere(finding: Finding, step: AnyStep) -> bool:
    """What a plan says of a job and the pipeline says better: its target, and the component's own inputs."""
    if isinstance(step, PassthroughStep) and finding.where.split(".")[0] not in ("code", "environment", "compute"):
        return True
    if finding.code == "target-unknown":
        return True
    return finding.code == "compute-local" and not isinstance(step, Job)


def _placed_in(steps: Mapping[str, AnyStep], names: Sequence[str], finding: Finding, base: Path) -> Finding:
    name, *below = names
    step = steps[name]
    if not below:
        return _placed(finding, name, step)
    assert isinstance(step, PassthroughStep)  # noqa: S101 - no other step holds steps
    component: Any = step.component
    inner = _source(component, base).locate(_placed_in(component.jobs, below, finding, base))
    return inner if inner.file else inner.under(f"jobs.{name}.component")


def _placed(finding: Finding, name: str, step: AnyStep) -> Finding:
    """A step's finding under its step; what a component's file says is placed in that file."""
    if isinstance(step, (Job, PassthroughStep)):
        return finding.under(f"jobs.{name}")
    component = step.trial if isinstance(step, SweepStep) else step.component
    first = finding.where.split(".")[0].split("[")[0]
    if not isinstance(component, Component) or not _said_by(component, step, first):
        return finding.under(f"jobs.{name}")
    field = "trial" if isinstance(step, SweepStep) else "component"
    where = finding.under(f"jobs.{name}.{field}")
    if component.file is None:
        return where
    line, column = _spot(Path(component.file), finding.where)
    return where.at(component.file, line, column)


def _said_by(component: Component, step: Step | SweepStep, field: str) -> bool:
    if field in _OF_THE_COMPONENT:
        return True
    if field in (*RUNTIME, "launcher"):
        given: Any = step.resources if isinstance(step, SweepStep) else step
        return getattr(given, field, None) is None and hasattr(component, field)
    return False


def _spot(file: Path, where: str) -> tuple[int | None, int | None]:
    from amlstack.base import yamltext  # noqa: PLC0415 - only for a finding in a component's file
    from jobs.azureml.read import command  # noqa: PLC0415

    return yamltext.read(file).spot(command.path_of(where)) or (None, None)


def _all_enriched(steps: Mapping[str, AnyStep], plans: Mapping[str, Plan]) -> dict[str, AnyStep]:
    """Steps with what their plans added, those of a pipeline in the pipeline too."""
    told: dict[str, AnyStep] = {}
    for name, step in steps.items():
        if isinstance(step, PassthroughStep):
            if isinstance(step.component, PassthroughComponent) and step.component.jobs:
                prefix = f"{name}.jobs."
                below = {key.removeprefix(prefix): each for key, each in plans.items() if key.startswith(prefix)}
                inner = {"jobs": _all_enriched(step.component.jobs, below)}
                step = step.model_copy(update={"component": step.component.model_copy(update=inner)})  # noqa: PLW2901
            told[name] = step
        else:
            told[name] = _enriched(step, plans.get(name))
    return told


def _exporting(variables: Mapping[str, str], command: str) -> str:
    """A command that sets variables itself, for bash, which Azure ML runs it with."""
    told = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())
    return f"export {told}; {command}" if told else command


def _enriched(step: Job | Step | SweepStep, told: Plan | None) -> Job | Step | SweepStep:
    """A step with what its plan added: the command in its component, the rest at the step."""
    if told is None:
        return step
    before, after = told.job, told.enriched
    if isinstance(step, Job):
        return after
    field = "trial" if isinstance(step, SweepStep) else "component"
    component = getattr(step, field)
    changed = {name: getattr(after, name) for name in RUNTIME if getattr(after, name) != getattr(before, name)}
    inner: dict[str, Any] = {"command": after.command}
    if not isinstance(component.launcher, Custom) or isinstance(step, SweepStep):
        inner["launcher"] = after.launcher
    update: dict[str, Any] = {}
    if isinstance(step, SweepStep):
        # The wire has no variables for a sweep step, and its trial's resources are its component's.
        inner |= changed | {"command": _exporting(after.environment_variables, after.command)}
    else:
        if changed:
            update |= {name: getattr(after, name) for name in RUNTIME}
        if after.launcher != before.launcher or step.launcher is not None:
            update["launcher"] = after.launcher
        update["environment_variables"] = after.environment_variables
    return step.model_copy(update={**update, field: component.model_copy(update=inner)})
