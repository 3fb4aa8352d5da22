"""Every block of a file that the schema describes: its place, an example, and the table that it is read by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import sweep_cases

from jobs.azureml.read import (
    command,
    component,
    data,
    distributed_component,
    environment,
    passthrough,
    pipeline,
    port,
    runtime,
    schedule,
    sweep,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

HERE = "@"
"""Stands in a file where the block is put."""
JOB: dict[str, Any] = {"command": "x", "environment": "azureml:e:1"}
COMPONENT: dict[str, Any] = {**JOB, "type": "command"}
TASK: dict[str, Any] = {"type": "run_function", "environment": "azureml:e:1"}
SWEEP: dict[str, Any] = {
    "type": "sweep",
    "trial": "azureml:c:1",
    "objective": {"goal": "maximize", "primary_metric": "acc"},
    "limits": {"max_total_trials": 1},
}
OLDER: dict[str, Any] = {
    "type": "DistributedComponent",
    "launcher": {"type": "mpi", "additional_arguments": "x"},
    "environment": "azureml:e:1",
}
CRON: dict[str, Any] = {"type": "cron", "expression": "0 8 * * *"}
STARTED: dict[str, Any] = {"name": "s", "trigger": CRON, "create_job": "azureml:x"}
EVERY: dict[str, Any] = {"type": "recurrence", "frequency": "day", "interval": 1}
CHANGED = {**{key: None for key in pipeline.KEYS if key not in ("jobs", "component")}, "job": None}


class Block(NamedTuple):
    """A block of a file.

    Attributes:
        file: The file, with `HERE` in place of the block.
        example: The block with what it has to have.
        known: Keys of it that are read.
        ignored: Keys of it that Azure ML writes.
        definition: Where the schema has it, when not under its own name: names of definitions, keys and positions.
    """

    file: Any
    example: dict[str, Any]
    known: Collection[str]
    ignored: Collection[str] = ()
    definition: tuple[Any, ...] = ()

    def filled(self, block: Mapping[str, Any]) -> Any:
        """The file with a block in its place."""
        return _filled(self.file, block)


def _filled(value: Any, block: Any) -> Any:
    if value == HERE:
        return block
    return {key: _filled(each, block) for key, each in value.items()} if isinstance(value, dict) else value


def _pipeline(step: Any) -> dict[str, Any]:
    return {"type": "pipeline", "jobs": {"t": step}}


def _inside(key: str, step: Mapping[str, Any]) -> dict[str, Any]:
    return _pipeline({**step, key: HERE})


def _swept(key: str, value: Any = HERE) -> dict[str, Any]:
    return {**sweep_cases.BASE, key: value}


WRITTEN = command.READ_ONLY
STEP = pipeline.NODE
PARALLEL: dict[str, Any] = {"type": "parallel", "task": TASK}
SPARK: dict[str, Any] = {"type": "spark", "entry": {"file": "a.py"}}
WITH: dict[str, Any] = {"component": "azureml:c:1"}
_OUTPUTS = pipeline.INLINE["outputs"]

BLOCKS: dict[str, Block] = {
    "command": Block(HERE, JOB, command.KEYS, WRITTEN),
    "sweep": Block(HERE, {**sweep_cases.BASE}, sweep.KEYS, WRITTEN),
    "trial": Block(_swept("trial"), JOB, {*sweep.TRIAL, "queue_settings"}, definition=("sweep", "properties", "trial")),
    "pipeline": Block(HERE, {"type": "pipeline", "jobs": {}}, pipeline.KEYS, WRITTEN),
    "settings": Block({"type": "pipeline", "settings": HERE}, {}, pipeline.SETTINGS, WRITTEN),
    "command_step": Block(_pipeline(HERE), JOB, pipeline.INLINE, WRITTEN),
    "component_step": Block(_pipeline(HERE), WITH, pipeline.STEP, WRITTEN),
    "sweep_step": Block(_pipeline(HERE), SWEEP, pipeline.SWEEP, WRITTEN),
    **{
        f"{kind}_step": Block(
            _pipeline(HERE), {**WITH, "type": kind}, passthrough.step_keys(kind, STEP), passthrough.SKIPPED
        )
        for kind in passthrough.KINDS
    },
    "parallel_inline": Block(
        _pipeline(HERE), PARALLEL, passthrough.step_keys("parallel", STEP, _OUTPUTS), passthrough.SKIPPED
    ),
    "spark_inline": Block(_pipeline(HERE), SPARK, passthrough.step_keys("spark", STEP, _OUTPUTS), passthrough.SKIPPED),
    "retry_settings": Block(_inside("retry_settings", PARALLEL), {}, passthrough.RETRIES),
    "task": Block(_inside("task", PARALLEL), TASK, passthrough.TASK),
    "spark_entry": Block(_inside("entry", SPARK), {"file": "a.py"}, passthrough.ENTRY),
    "spark_resources": Block(_inside("resources", SPARK), {}, passthrough.SPARK_RESOURCES),
    "command_component": Block(
        _inside("component", {}), COMPONENT, {*component.KEYS, "intellectual_property"}, component.SKIPPED
    ),
    "parallel_component": Block(
        _inside("component", {"type": "parallel"}),
        PARALLEL,
        passthrough.component_keys("parallel"),
        passthrough.SKIPPED,
    ),
    "spark_component": Block(
        _inside("component", {"type": "spark"}), SPARK, passthrough.component_keys("spark"), passthrough.SKIPPED
    ),
    "component_input": Block(
        _pipeline({"component": {**COMPONENT, "inputs": {"a": HERE}}}), {"type": "string"}, port.INPUT
    ),
    "component_output": Block(
        _pipeline({"component": {**COMPONENT, "outputs": {"a": HERE}}}), {"type": "uri_folder"}, port.OUTPUT
    ),
    "component_resources": Block(_pipeline({"component": {**COMPONENT, "resources": HERE}}), {}, runtime.RESOURCES),
    "dialect": Block(HERE, OLDER, distributed_component.KEYS),
    "dialect_input": Block({**OLDER, "inputs": {"a": HERE}}, {"type": "string"}, distributed_component.PORT),
    "launcher": Block({**OLDER, "launcher": HERE}, OLDER["launcher"], distributed_component.LAUNCHER),
    "schedule": Block(HERE, STARTED, schedule.KEYS, schedule.READ_ONLY),
    "cron": Block({**STARTED, "trigger": HERE}, CRON, schedule.CRON),
    "recurrence": Block({**STARTED, "trigger": HERE}, EVERY, schedule.RECURRENCE),
    "recurrence_pattern": Block(
        {**STARTED, "trigger": {**EVERY, "schedule": HERE}}, {"hours": 1, "minutes": 1}, schedule.PATTERN
    ),
    "create_job": Block(
        {**STARTED, "create_job": HERE},
        {"type": "pipeline", "job": "azureml:x"},
        CHANGED,
        WRITTEN,
        ("create_job", "anyOf", 1),
    ),
    "environment": Block(
        {**JOB, "environment": HERE},
        {"image": "x"},
        environment.KEYS,
        ("id", "$schema", "creation_context"),
        ("environment", "anyOf", 1),
    ),
    "input": Block({**JOB, "inputs": {"a": HERE}}, {"path": "x"}, data.DATA_INPUT, (), ("input", "anyOf", 1)),
    "output": Block({**JOB, "outputs": {"a": HERE}}, {}, data.OUTPUT, ("$schema",)),
    "resources": Block({**JOB, "resources": HERE}, {}, runtime.RESOURCES),
    "limits": Block({**JOB, "limits": HERE}, {}, ("timeout",)),
    "objective": Block(_swept("objective"), SWEEP["objective"], ("goal", "primary_metric")),
    "sweep_limits": Block(
        _swept("limits"),
        SWEEP["limits"],
        ("max_total_trials", "max_concurrent_trials", "timeout", "trial_timeout"),
    ),
}
"""By the name of the schema's definition."""

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    **{
        f"distribution-{kind}": ({**JOB, "distribution": HERE}, {"type": kind})
        for kind in ("pytorch", "mpi", "tensorflow", "ray")
    },
    "step-distribution": (_inside("distribution", WITH), {"type": "mpi"}),
    "step-resources": (_inside("resources", WITH), {}),
    "step-limits": (_inside("limits", JOB), {}),
    "step-identity": (_inside("identity", JOB), {"type": "managed"}),
    "identity": ({**JOB, "identity": HERE}, {"type": "managed"}),
    "queue": ({**JOB, "queue_settings": HERE}, {}),
    "service": ({**JOB, "services": {"a": HERE}}, {"type": "ssh"}),
    "build": ({**JOB, "environment": {"build": HERE}}, {"path": "."}),
    **{f"sampling-{kind}": (_swept("sampling_algorithm"), {"type": kind}) for kind in ("random", "grid", "bayesian")},
    "bandit": (_swept("early_termination"), {"type": "bandit"}),
    "median": (_swept("early_termination"), {"type": "median_stopping"}),
    "truncation": (_swept("early_termination"), {"type": "truncation_selection", "truncation_percentage": 1}),
    "choice": (_swept("search_space", {"lr": HERE}), {"type": "choice", "values": [1]}),
    "randint": (_swept("search_space", {"lr": HERE}), {"type": "randint", "upper": 3}),
    "normal": (_swept("search_space", {"lr": HERE}), {"type": "normal", "mu": 0, "sigma": 1}),
    "qnormal": (_swept("search_space", {"lr": HERE}), {"type": "qnormal", "mu": 0, "sigma": 1, "q": 1}),
}
"""Blocks of several kinds: the file, and an example with its type. All refuse what they do not know."""
