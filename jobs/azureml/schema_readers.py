"""Schemas of what single readers take, and of their tables: a key that is read is a key that the schema has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.fields import (
    FALSE,
    LONGEST,
    TRUE,
    AtLeast,
    Listed,
    Named,
    Nullable,
    Word,
    anything,
    count,
    mapping,
    seconds,
    text,
    truth,
    unsent,
    version,
    whole,
)
from jobs.azureml.read import (
    command,
    component,
    component_file,
    data,
    environment,
    passthrough,
    pipeline,
    port,
    runtime,
    sweep,
)
from jobs.azureml.read.schedule import Some
from jobs.azureml.schema_parts import COUNT, DIGITS, TEXT, VALUES, WRITTEN, Schema, any_case, ref

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from jobs.azureml.cursor import Cursor
    from jobs.model.values import Model

    Reader = Callable[[Cursor], Any]

_WHOLE: Schema = {"type": ["integer", "string"], "pattern": DIGITS}
BOUND: Schema = {
    "type": "string",
    "pattern": r"\$\{\{\s*\S*?\s*\}\}",
    "examples": ["${{parent.inputs.NAME}}", "${{parent.jobs.STEP.outputs.NAME}}"],
}
"""A binding, wherever it brings a value."""
TRUTH: Schema = {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}, any_case(sorted(TRUE | FALSE))]}
_PATH: Schema = {"type": "string", "description": "Path from the file, or `azureml:…`."}

SIMPLE: Mapping[Reader, Schema] = {
    anything: {},
    unsent: {},
    text: TEXT,
    version: {"type": ["string", "number"]},
    whole: _WHOLE,
    count: {**_WHOLE, "pattern": COUNT, "minimum": 1},
    seconds: {**_WHOLE, "minimum": 0, "maximum": LONGEST},
    truth: TRUTH,
    mapping: VALUES,
    command.KEYS["code"]: _PATH,
    command.KEYS["compute"]: {"type": "string", "minLength": 1},
    passthrough.TASK["code"]: _PATH,
    passthrough.size: {"type": "string", "pattern": r"^\d+([kKmMgG][bB])?$", "examples": ["10", "10kb"]},
    passthrough.texts: {"type": "array", "items": TEXT},
    data.variables: {"type": "object", "description": "Variables of every process, by name."},
    data.tags: ref("tags"),
    data.inputs: ref("inputs"),
    environment.environment: ref("environment"),
    runtime.distribution: ref("distribution"),
    runtime.resources: ref("resources"),
    runtime.limits: ref("limits"),
    runtime.queue: ref("queue_settings"),
    runtime.identity: ref("identity"),
    runtime.services: ref("services"),
    sweep.search_space: ref("search_space"),
    sweep.objective: ref("objective"),
    sweep.limits: ref("sweep_limits"),
    sweep.sampling: ref("sampling_algorithm"),
    sweep.early_termination: ref("early_termination"),
    sweep.PARTS["resources"]: ref("resources"),
    component.KEYS["resources"]: ref("component_resources"),
    component_file.reference: ref("component"),
    port.inputs: ref("component_inputs"),
    port.outputs: ref("component_outputs"),
    pipeline.steps: ref("steps"),
    pipeline.KEYS["settings"]: ref("settings"),
    passthrough.SPECS["parallel"]["resources"]: ref("resources"),
    passthrough.SPECS["parallel"]["retry_settings"]: ref("retry_settings"),
    passthrough.SPECS["parallel"]["task"]: ref("task"),
    passthrough.SPECS["spark"]["entry"]: ref("spark_entry"),
    passthrough.STEPS["spark"]["resources"]: ref("spark_resources"),
}
"""What single readers take."""

ABOUT: Mapping[str, str] = {
    "task": "What runs on each mini-batch.",
    "input_data": "The input that is cut into mini-batches: `${{inputs.NAME}}`.",
    "mini_batch_size": "Files in a mini-batch, or bytes of a table: `10kb`.",
    "partition_keys": "Columns by which the data is cut instead.",
    "mini_batch_error_threshold": "Mini-batches that may fail; -1: all.",
    "error_threshold": "Records that may fail; -1: all.",
    "max_concurrency_per_instance": "Processes on each node.",
    "retry_settings": "How often and how long a mini-batch is tried.",
    "logging_level": "What the logs hold.",
    "entry": "The script, or the class, that is run.",
    "conf": "Spark's settings: `spark.driver.cores` and the like.",
    "args": "Arguments of the script.",
    "py_files": "Python files and packages beside it.",
    "jars": "Java archives beside it.",
    "files": "Files in the folder of each executor.",
    "archives": "Archives that are unpacked there.",
    "code": "Folder with the code.",
    "jobs": "The steps, by name.",
    "type": "Kind of it.",
    "name": "Name to register it under; a step has the name that it stands under.",
    "version": "Version to register it under.",
    "description": "Description.",
    "experiment_name": "Not sent: a step runs in its pipeline's experiment.",
    "command": "Not sent: a step takes it from its component.",
    "is_deterministic": "Whether the same inputs give the same outputs, so that a step may be reused.",
    "environment": "As of a job.",
    "environment_variables": "Variables of every process, by name.",
    "timeout": "Seconds that one try may take.",
    "max_retries": "Further tries.",
    "entry_script": "The script, with `init()` and `run(mini_batch)`.",
    "program_arguments": "Arguments of the script.",
    "model": "The model that is run.",
    "append_row_to": "The output that gathers what `run` returns: `${{outputs.NAME}}`.",
    "file": "The script.",
    "class_name": "The class.",
    "instance_type": "VM size.",
    "runtime_version": "Version of Spark.",
    "options": "The values it may have.",
    "datastore_mode": "How it reaches the node.",
    "additional_arguments": "What is started: the command.",
    "process_count_per_node": "Ranks on each node.",
}
"""Words on keys of which no model has any."""


def of(read: Reader) -> Schema:
    """What a reader takes.

    Raises:
        KeyError: Nobody has said it of this reader: say it in `SIMPLE`, or give the key's own schema.
    """
    if (told := SIMPLE.get(read)) is not None:
        return dict(told)
    match read:
        case Nullable():
            return {"anyOf": [of(read.read), {"type": "null"}]}
        case passthrough.OrBound():
            return {"anyOf": [of(read.read), BOUND]}
        case Some():
            return {"anyOf": [of(read.read), {"type": "array", "items": of(read.read)}]}
        case Listed():
            return {"type": "array", "items": of(read.read)}
        case Named():
            return {"type": "object", "additionalProperties": of(read.read)}
        case AtLeast():
            return {**_WHOLE, "minimum": read.least}
        case Word():
            return {"enum": list(read.words)} if read.normal is str else any_case(read.words)
        case _:
            raise KeyError(read)


def keys(
    readers: Mapping[str, Reader],
    *models: type[Model],
    own: Mapping[str, Schema] | None = None,
    ignored: Collection[str] = (),
) -> Schema:
    """Key to schema of a table of readers.

    Args:
        readers: The table.
        models: What it is read into, which have the descriptions.
        own: Schemas of single keys of it, where the reader does not say enough.
        ignored: Keys beside the table that Azure ML writes.
    """
    words = {name: field.description for model in models for name, field in model.model_fields.items()}
    made: Schema = {}
    for key, read in readers.items():
        schema = own[key] if own and key in own else of(read)
        told = words.get(key) or ABOUT.get(key)
        made[key] = schema if told is None or "description" in schema else {"description": told, **schema}
    skipped = {key: TEXT if key == "$schema" else WRITTEN for key in ignored if key not in made}
    return {**made, **skipped}
