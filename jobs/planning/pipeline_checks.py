"""Checks of the way in which a pipeline's steps hang together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from amlstack.base.findings import Finding, Level, stated
from amlstack.base.text import did_you_mean, near
from jobs.model.pipeline import COMMANDS, AnyStep, Pipeline
from jobs.planning.job_checks import lost, missing_inputs
from jobs.values import Input, Output
from jobs.wire.pipeline import BOUND

PLAYED = (*COMMANDS, "parallel", "pipeline")
"""Kinds of steps that a rehearsal and the sandbox run."""
WITH_PORTS = (*PLAYED, "spark")
"""Kinds whose own keys bind the inputs of their component; those of others bind the pipeline's."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORMER = r"\$\{\{(inputs|outputs|jobs)\..*?\}\}"


def check(pipeline: Pipeline) -> Iterator[Finding]:
    """Bindings that bind nothing, inputs that are missing, steps without a compute, circles."""
    if not pipeline.jobs and not pipeline.component:
        yield stated("pipeline-empty", "jobs", Level.WARNING)
    for name in pipeline.outputs:
        yield from _named(f"outputs.{name}", name)
    for name, step in pipeline.jobs.items():
        where = f"jobs.{name}"
        for key, value in step.inputs.items():
            text = value.path if isinstance(value, Input) else value
            if isinstance(text, str):
                yield from _former(f"{where}.inputs.{key}", text)
                yield from _bindings(pipeline, f"{where}.inputs.{key}", text, strict=not step.RUNS)
        for key, output in step.outputs.items():
            yield from _written(pipeline, f"{where}.outputs.{key}", step, output)
        if step.RUNS:
            yield from _ports(where, step)
        if step.kind not in PLAYED:
            yield from _carried(pipeline, where, step)
        if step.kind not in (*COMMANDS, "parallel"):
            continue
        if step.kind == "sweep" and step.identity is not None:
            rule = "Azure ML sends none of a sweep step; the pipeline's holds"
            yield lost(f"{where}.identity", "A sweep step has an `identity`", rule, "Write it at the pipeline.")
        if (step.compute or pipeline.named_compute or getattr(step, "instance_type", None)) is None:
            yield stated("compute-unset", f"{where}.compute", Level.WARNING)
    yield from _circles(pipeline)


def missing_data(pipeline: Pipeline, base: Path) -> Iterator[Finding]:
    """Local data that is not there, of the pipeline and of steps that no job is planned for; of others it is found."""
    yield from missing_inputs(pipeline.inputs, base)
    for name, step in pipeline.jobs.items():
        if isinstance(step.runs, str) or step.kind not in COMMANDS:
            yield from missing_inputs(step.inputs, base, f"jobs.{name}.inputs")


def _carried(pipeline: Pipeline, where: str, step: AnyStep) -> Iterator[Finding]:
    """Findings on steps that only Azure ML itself can run, and on keys that bind nothing: azure-ai-ml sends both."""
    yield stated("step-carried", where, Level.INFO, step=step)
    spec: Mapping[str, Any] = {} if step.kind in WITH_PORTS else getattr(step, "spec", {})
    for key, value in spec.items():
        if isinstance(value, str):
            for finding in _bindings(pipeline, f"{where}.{key}", value, strict=False):
                yield replace(finding, level=Level.WARNING)


def _written(pipeline: Pipeline, where: str, step: AnyStep, output: Output | None) -> Iterator[Finding]:
    """One output of a step."""
    if output is None:
        return
    if output.path:
        yield from _former(where, output.path)
        yield from _output_binding(pipeline, where, output.path)
    if step.RUNS:
        yield from _named(where, where.partition(".outputs.")[2])


def _named(where: str, name: str) -> Iterator[Finding]:
    """The name of an output; those of inputs may be groups (`a.b`)."""
    if not _NAME.fullmatch(name):
        yield stated("binding-name", where, name=name)


def _former(where: str, text: str) -> Iterator[Finding]:
    """The preview's bindings, without ``parent``: they would arrive in the step as text."""
    if re.fullmatch(_FORMER, text):
        today = text.replace("{{", "{{parent.")
        yield stated("binding-former", where, text=text, today=today)


def _bindings(pipeline: Pipeline, where: str, text: str, *, strict: bool) -> Iterator[Finding]:
    """Findings on the bindings of a text; azure-ai-ml looks up those of an inline step, and refuses what is missing."""
    for match in BOUND.finditer(text):
        kind, _, rest = match["path"].partition(".")
        whole = strict and match[0] == text
        match kind:
            case "inputs" | "outputs":
                yield from _known(where, match[0], rest.split(".")[0], getattr(pipeline, kind), kind, error=whole)
            case "jobs":
                step, _, port = rest.partition(".")
                if step not in pipeline.jobs:
                    yield from _known(where, match[0], step, pipeline.jobs, "steps", error=whole)
                else:
                    yield from _port(pipeline, where, match[0], step, port)
            case _:
                seen = f"`{match[0]}` binds nothing"
                rule = "A step binds `${{parent.inputs.NAME}}` and `${{parent.jobs.STEP.outputs.NAME}}`"
                yield Finding("binding-unknown", where, seen, rule, did_you_mean(kind, ("inputs", "jobs", "outputs")))


def _known(
    where: str, binding: str, name: str, names: Iterable[str], what: str, *, error: bool = True
) -> Iterator[Finding]:
    if name in (known := tuple(names)):
        return
    seen = f"`{binding}` binds nothing: the pipeline has no {what.removesuffix('s')} `{name}`"
    rule = f"A binding names one of the pipeline's {what}"
    remedy = did_you_mean(name, known, otherwise=f"Add `{name}`.")
    yield Finding("binding-undefined", where, seen, rule, remedy, Level.ERROR if error else Level.WARNING)


def _port(pipeline: Pipeline, where: str, binding: str, step: str, port: str) -> Iterator[Finding]:
    side, _, name = port.partition(".")
    declared = _declared(pipeline.jobs[step], side)
    if declared is not None and name not in declared:
        seen = f"`{binding}` binds nothing: the step `{step}` has no {side.removesuffix('s')} `{name}`"
        remedy = did_you_mean(name, declared, otherwise=f"Add `{name}` under the outputs of `{step}`.")
        yield Finding("binding-undefined", where, seen, "A binding names an output of an earlier step", remedy)


def _declared(step: AnyStep, side: str) -> tuple[str, ...] | None:
    """Names of a step's outputs (or inputs); None where only the registered component knows them."""
    if side not in ("inputs", "outputs"):
        return ()
    component: Any = step.runs
    if component is None:
        return None if side == "outputs" else ()
    if isinstance(component, str):
        return None
    return tuple(getattr(component if component.declares_ports else step, side))


def _output_binding(pipeline: Pipeline, where: str, path: str) -> Iterator[Finding]:
    kind, _, name = match["path"].partition(".") if (match := BOUND.fullmatch(path)) else ("", "", "")
    if kind == "outputs":
        yield from _known(where, path, name, pipeline.outputs, "outputs")
    elif kind:
        yield stated("binding-unknown", where, path=path)


def _ports(where: str, step: AnyStep) -> Iterator[Finding]:
    """Findings on inputs that a component wants and is not given, and on those that it does not know."""
    component: Any = step.runs
    if isinstance(component, str | None) or not component.declares_ports:
        return
    varied: Mapping[str, Any] = getattr(step, "search_space", {})
    for name, port in component.inputs.items():
        if name not in step.inputs and name not in varied and not port.optional and port.default is None:
            yield stated("input-missing", f"{where}.inputs.{name}", name=name)
    for name, value in step.inputs.items():
        declared_ = component.inputs.get(name)
        if declared_ is not None and not declared_.literal and isinstance(value, (bool, int, float)):
            yield stated("input-kind", f"{where}.inputs.{name}", value=value, declared_=declared_)
    for side, given, declared in (
        ("inputs", {**step.inputs, **varied}, component.inputs),
        ("outputs", step.outputs, component.outputs),
    ):
        for name in given:
            if name not in declared:
                superfluous = side == "inputs" and not near(name, declared)
                yield Finding(
                    "port-unknown",
                    f"{where}.{side}.{name}",
                    f"The component has no {side.removesuffix('s')} `{name}`",
                    "It is sent as azure-ai-ml sends it, and nothing reads it"
                    if superfluous
                    else f"A step gives the component's {side}",
                    "Leave it out, or declare it in the component." if superfluous else did_you_mean(name, declared),
                    Level.WARNING if superfluous else Level.ERROR,
                )


def _circles(pipeline: Pipeline) -> Iterator[Finding]:
    needs: dict[str, set[str]] = {}
    for name, step in pipeline.jobs.items():
        texts = [value.path if isinstance(value, Input) else value for value in step.inputs.values()]
        paths = [match["path"].split(".") for text in texts if isinstance(text, str) for match in BOUND.finditer(text)]
        needs[name] = {path[1] for path in paths if path[0] == "jobs" and len(path) > 2 and path[2] == "outputs"}
    while ready := [name for name, wanted in needs.items() if not wanted & needs.keys()]:
        for name in ready:
            del needs[name]
    if needs:
        names = ", ".join(f"`{name}`" for name in needs)
        yield stated("pipeline-circle", f"jobs.{next(iter(needs))}", names=names)
