"""The JSON Schema of Azure ML files, for editors: made from the readers' tables and the job's models.

It is a help while writing and no judge: `amlstack check` knows what a schema cannot say (near misses, files that are
not there, names that bind nothing), and takes some spellings that the schema marks. Where unknown keys are taken with
a warning (components, steps of components, a pipeline's settings), the schema takes them too.
"""

from __future__ import annotations

from jobs.azureml import schema_component, schema_pipeline, schema_schedule
from jobs.azureml.schema_job import command_keys, hyperparameters, sweep_keys
from jobs.azureml.schema_parts import NAMES, Schema, chosen, closed, ref

_SHARED = ("environment", "distribution", "resources", "limits", "queue_settings", "identity", "services", "tags")
_OF_SWEEPS = ("search_space", "objective", "sampling_algorithm", "early_termination")


def job_files() -> Schema:
    """The schema of a job file: command jobs, sweeps, pipelines, schedules, and components of every kind."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Azure ML job file",
        "description": "What `az ml job create -f` and `amlstack` take.",
        "type": "object",
        **chosen(
            (schema_schedule.IS_ONE, ref("schedule")),
            (schema_component.is_dialect(), ref("dialect")),
            (schema_component.is_component(), schema_component.of_file()),
            *((_of("parallel"), ref("parallel_component")), (_of("spark"), ref("spark_component"))),
            *((_of(kind), ref(kind)) for kind in ("sweep", "pipeline")),
            otherwise=ref("command"),
        ),
        "definitions": definitions(),
    }


def definitions() -> Schema:
    """Every block of a file, by name."""
    command, sweep = command_keys(), sweep_keys()
    shared = {key: command[key] for key in _SHARED}
    shared |= {key: sweep[key] for key in _OF_SWEEPS}
    shared |= {
        "sweep_limits": sweep["limits"],
        "input": command["inputs"]["patternProperties"][NAMES],
        "output": command["outputs"]["patternProperties"][NAMES]["anyOf"][1],
        "inputs": {"type": "object", "description": "What it reads, by name.", "additionalProperties": ref("input")},
    }
    command = _referring(command)
    sweep = _referring({**sweep, "limits": ref("sweep_limits")}) | {key: ref(key) for key in _OF_SWEEPS}
    trial = sweep["trial"]
    sweep["trial"] = {**trial, "properties": _referring(trial["properties"])}
    return {
        "command": closed(command, required=("command", "environment")),
        "sweep": closed(sweep, required=("type", "trial", "search_space", "objective", "limits")),
        **schema_pipeline.definitions(command),
        **schema_component.definitions({**command, "resources": shared["resources"]}),
        **schema_schedule.definitions(),
        **hyperparameters(),
        **shared,
    }


def _referring(keys: Schema) -> Schema:
    """The same keys, each shared block of them by its name."""
    told = {key: ref(key) if key in _SHARED and "$ref" not in each else each for key, each in keys.items()}
    for key in ("inputs", "outputs"):
        if key in told:
            one: Schema = ref(key[:-1])
            each = one if key == "inputs" else {"anyOf": [{"type": "null"}, one]}
            told[key] = {**told[key], "patternProperties": {NAMES: each}}
    return told


def _of(kind: str) -> Schema:
    return {"properties": {"type": {"const": kind}}, "required": ["type"]}
