"""The JSON Schema of pipelines and of their steps, from the tables by which they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.azureml.read import automl_words, command, passthrough, pipeline, transfer
from jobs.azureml.schema_parts import Schema, any_case, chosen, closed, of_type, ref
from jobs.azureml.schema_readers import ABOUT, BOUND, keys
from jobs.model.passthrough import PassthroughStep
from jobs.model.pipeline import Pipeline, PipelineSettings, Step, SweepStep

if TYPE_CHECKING:
    from collections.abc import Mapping

_BINDING = {**BOUND, "pattern": r"^\$\{\{\s*\S*?\s*\}\}$"}
_OUTPUTS = "What it writes; `${{parent.outputs.NAME}}` binds one to an output of the pipeline."


def definitions(job: Mapping[str, Schema]) -> Schema:
    """The definitions of pipelines and steps, by name.

    Args:
        job: Key to schema of a command job.
    """
    parts: Schema = {
        "pipeline": closed(pipeline_keys()),
        "settings": closed(settings_keys(), "What holds for all steps that say nothing else.", more=True),
        "steps": {
            "type": "object",
            "description": "Steps by name.",
            "propertyNames": {"pattern": f"^({pipeline.STEP_NAME.pattern})$"},
            "additionalProperties": ref("step"),
        },
        "step": {"type": "object", **_step()},
        "command_step": closed(command_step_keys(job), "A command.", required=("command",)),
        "component_step": closed(component_step_keys(), "A step that runs a component.", more=True),
        "sweep_step": closed(
            sweep_step_keys(),
            "A step that tries a component with many hyperparameters, which are inputs of it.",
            required=("trial", "objective", "limits"),
            more=True,
        ),
        "retry_settings": closed(keys(passthrough.RETRIES), "How often, and how many seconds, a mini-batch is tried."),
        "task": closed(keys(passthrough.TASK), ABOUT["task"], required=("type", "environment")),
        "spark_entry": {**closed(keys(passthrough.ENTRY), ABOUT["entry"]), "minProperties": 1, "maxProperties": 1},
        "spark_resources": closed(keys(passthrough.SPARK_RESOURCES), "The serverless Spark pool that it runs on."),
    }
    parts["automl_step"] = closed(
        automl_keys(), "Automated training, sent to Azure ML as it is.", required=("type", "task", "training_data"),
        more=True,
    )  # fmt: skip
    parts["transfer_step"] = closed(
        transfer_keys(), "Data that is moved, sent to Azure ML as it is.", required=("type", "task"), more=True
    )
    for kind in passthrough.KINDS:
        parts[f"{kind}_step"] = closed(other_step_keys(kind), required=("component",), more=True)
    # A parallel step is sent with whatever stands in it, a spark step is not.
    parts["parallel_inline"] = closed(other_step_keys("parallel", inline=True), required=("task",), more=True)
    parts["spark_inline"] = closed(other_step_keys("spark", inline=True), required=("entry",))
    return parts


def pipeline_keys() -> Schema:
    """Key to schema of a pipeline job."""
    own: Schema = {
        "component": {"type": "string", "pattern": "^azureml:"},
        "outputs": _named({"anyOf": [{"type": "null"}, ref("output")]}),
    }
    return keys(pipeline.KEYS, Pipeline, own=own, ignored=command.READ_ONLY)


def settings_keys() -> Schema:
    """Key to schema of the settings of a pipeline."""
    named: Schema = {"type": "string", "pattern": "^azureml:"}
    serverless = any_case(("serverless",))["anyOf"]
    own: Schema = {"default_compute": {"anyOf": [named, *serverless]}, "default_datastore": named}
    return keys(pipeline.SETTINGS, PipelineSettings, own=own, ignored=command.READ_ONLY)


def command_step_keys(job: Mapping[str, Schema]) -> Schema:
    """Key to schema of a step with a command of its own."""
    own = {key: job[key] for key in command.KEYS if key not in ("type", "inputs")}
    own["outputs"] = _named({"anyOf": [{"type": ["null", "string"]}, ref("output")]})
    return keys(pipeline.INLINE, Step, own=own, ignored=command.READ_ONLY)


def component_step_keys() -> Schema:
    """Key to schema of a step that runs a command component."""
    return keys(pipeline.STEP, Step, own={"outputs": _bound()}, ignored=command.READ_ONLY)


def sweep_step_keys() -> Schema:
    """Key to schema of a sweep step."""
    return keys(pipeline.SWEEP, SweepStep, own={"outputs": _bound()}, ignored=command.READ_ONLY)


def other_step_keys(kind: str, *, inline: bool = False) -> Schema:
    """Key to schema of a parallel, spark or pipeline step; ``inline`` when it names no component."""
    readers = passthrough.step_keys(kind, pipeline.NODE, pipeline.INLINE["outputs"] if inline else None)
    component: Schema = {"type": "string", "minLength": 1}
    if kind != "pipeline":
        component = {"anyOf": [component, ref(f"{kind}_component")]}
    own = {"type": any_case((kind,)), "component": component, "outputs": _bound()}
    if inline:
        own["outputs"] = _named({"anyOf": [{"type": ["null", "string"]}, ref("output")]})
        own["component"] = {"not": {}}
    return keys(readers, PassthroughStep, own=own, ignored=passthrough.SKIPPED)


def automl_keys() -> Schema:
    """Key to schema of a step of automated training, of those that every task has."""
    table: Schema = {"type": ["string", "object"]}
    return {
        "type": any_case(("automl",)),
        "task": {"description": "What is trained.", **any_case(tuple(automl_words.TASKS))},
        "target_column_name": {"type": "string", "description": "The column to be foretold."},
        "training_data": {**table, "description": "The table to learn from."},
        "validation_data": {**table, "description": "The table to choose by."},
    }


def transfer_keys() -> Schema:
    """Key to schema of a step that moves data, of those that every task has."""
    return {
        "type": any_case(("data_transfer",)),
        "task": {"description": "Whether data is copied, imported or exported.", **any_case(transfer.TASKS)},
    }


def _named(each: Schema) -> Schema:
    return {"type": "object", "description": _OUTPUTS, "additionalProperties": each}


def _bound() -> Schema:
    return _named({"anyOf": [{"type": "null"}, _BINDING, ref("output")]})


def _step() -> Schema:
    component: Schema = {"required": ["component"]}
    return chosen(
        (of_type("sweep"), ref("sweep_step")),
        (of_type("automl"), ref("automl_step")),
        (of_type("data_transfer"), ref("transfer_step")),
        (of_type("pipeline"), ref("pipeline_step")),
        *(
            (of_type(kind), chosen((component, ref(f"{kind}_step")), otherwise=ref(f"{kind}_inline")))
            for kind in ("parallel", "spark")
        ),
        (component, ref("component_step")),
        otherwise=ref("command_step"),
    )
