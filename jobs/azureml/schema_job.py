"""The JSON Schema of command jobs and sweeps: from the job's models, with the words of the real loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.azureml.read import command, data, environment, runtime, sweep
from jobs.azureml.schema_parts import NAMES, TEXT, TEXTS, VALUES, WRITTEN, Schema, about, any_case, closed, fields, ref
from jobs.model import distribution
from jobs.model.job import Job
from jobs.model.sweep import Sweep
from jobs.wire.keys import PLACES

if TYPE_CHECKING:
    from collections.abc import Collection


def command_keys() -> Schema:
    """Key to schema of a command job."""
    job = fields(Job)
    resources = {path[1]: job[field] for field, path in PLACES.items() if path[0] == "resources" and len(path) == 2}
    made = {key: job[key] for key in command.KEYS if key in job}
    made |= {
        "type": {"const": "command", "description": "Kind of job; unset: command."},
        "code": {"type": "string", "description": about(job["code"])},
        "environment": _environment(job["environment"]),
        "inputs": {
            "type": "object",
            "description": about(job["inputs"]),
            "patternProperties": {NAMES: _input(job["inputs"])},
            "additionalProperties": False,
        },
        "outputs": {
            "type": "object",
            "description": about(job["outputs"]),
            "patternProperties": {NAMES: {"anyOf": [{"type": "null"}, _output(_inner(job["outputs"]))]}},
            "additionalProperties": False,
        },
        "distribution": {"description": "How Azure ML starts the processes.", "anyOf": _distributions()},
        "resources": closed(resources, "Nodes, their size, and their container."),
        "identity": _identity(job["identity"]),
        "services": {
            "type": "object",
            "description": about(job["services"]),
            "additionalProperties": _service(_inner(job["services"])),
        },
        "tags": {**TEXTS, "description": about(job["tags"])},
        "properties": {**TEXTS, "description": about(job["properties"])},
    }
    return {"$schema": TEXT, **made, **{key: WRITTEN for key in command.READ_ONLY if key != "$schema"}}


def sweep_keys() -> Schema:
    """Key to schema of a sweep job."""
    job, own = command_keys(), fields(Sweep)
    made = {key: own[key] if key in sweep.PARTS and key in own else job.get(key, VALUES) for key in sweep.KEYS}
    made["type"] = {"const": "sweep", "description": "Kind of job."}
    made["resources"] = job["resources"]
    made["early_termination"] = _policies(_typed(own["early_termination"]))
    made["sampling_algorithm"] = _typed(own["sampling_algorithm"])
    made["search_space"] = {
        **VALUES,
        "description": about(own["search_space"]),
        "patternProperties": {"^[A-Za-z0-9_]+$": ref("hyperparameter")},
        "additionalProperties": False,
    }
    made["trial"] = closed(
        {key: job[key] for key in (*sweep.TRIAL, "queue_settings")},
        "What is tried: the command binds what is varied as `${{search_space.NAME}}`.",
        required=("command", "environment"),
    )
    return {"$schema": TEXT, **made, **{key: WRITTEN for key in command.READ_ONLY if key != "$schema"}}


def hyperparameters() -> Schema:
    """The definitions of what is varied: a distribution by its type, and the values of a choice."""
    kinds = _typed(_inner(fields(Sweep)["search_space"]))
    one, *others = kinds["anyOf"]
    values = {**one["properties"]["values"], "items": ref("choice_value")}
    nested: Schema = {"anyOf": [{"type": ["string", "number"]}, {"type": "object", **ref("hyperparameter")}]}
    return {
        "hyperparameter": {
            **kinds,
            "anyOf": [{**one, "properties": {**one["properties"], "values": values}}, *others],
        },
        "choice_value": {
            "description": "Text, a number, or a mapping whose values are varied in turn.",
            "anyOf": [{"type": ["string", "number"]}, {"type": "object", "additionalProperties": nested}],
        },
    }


def _typed(schema: Schema) -> Schema:
    """Several kinds of mappings, each of which has to say its type."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [_typed(branch) for branch in schema["anyOf"]]}
    if "properties" in schema:
        return {**schema, "required": ["type", *schema.get("required", ())]}
    return schema


def _policies(schema: Schema) -> Schema:
    """Early termination, whose numbers may stand there without a value."""
    told = []
    for branch in schema["anyOf"]:
        keys = {
            key: {"anyOf": [each, {"type": "null"}]}
            if key not in branch.get("required", ()) and key != "type"
            else each
            for key, each in branch["properties"].items()
        }
        told.append({**branch, "properties": keys})
    return {**schema, "anyOf": told}


def _object(schema: Schema) -> Schema:
    """The branch of a field that is written as a mapping."""
    branches: list[Schema] = [schema, *schema.get("anyOf", [])]
    return next(branch for branch in branches if "properties" in branch)


def _inner(schema: Schema) -> Schema:
    return dict(schema["additionalProperties"])


def _only(schema: Schema, table: Collection[str], *ignored: str) -> Schema:
    """A model's keys as far as a file has them, those that it skips, and versions written as numbers."""
    made = {key: each for key, each in schema["properties"].items() if key in table}
    if "version" in made:
        made["version"] = {**made["version"], "type": ["string", "number"]}
    made |= {key: TEXT if key == "$schema" else WRITTEN for key in ignored}
    return closed(made, about(schema), required=schema.get("required", ()))


def _environment(job: Schema) -> Schema:
    inline = _object(job)
    unsent = {key: {"description": "Not sent."} for key in ("name", "version")}
    written = _only(inline, environment.KEYS, "id", "$schema", "creation_context")
    written["properties"] |= unsent
    conda = written["properties"]["conda_file"]
    written["properties"]["conda_file"] = {**conda, "not": {"type": "string", "pattern": "^file:"}}
    return {
        "description": "`azureml:NAME:VERSION`, `azureml:NAME@LABEL`, `azureml://registries/…`, `file:PATH`, or one "
        "written inline.",
        "anyOf": [
            {"type": "string", "pattern": "^(azureml:|file:)"},
            {
                **written,
                "oneOf": [{"required": ["image"]}, {"required": ["build"]}],
            },
        ],
    }


def _input(job: Schema) -> Schema:
    asset = _only(_object(_inner(job)), data.DATA_INPUT)
    asset["properties"]["mode"] = {
        **any_case((*data.MODES, *data.EVAL_MODES)),
        "description": about(asset["properties"]["mode"]),
    }
    asset["if"] = {"properties": {"mode": any_case(data.EVAL_MODES)}, "required": ["mode"]}
    asset["then"] = {"properties": {"type": any_case(("mltable",))}, "required": ["type"]}
    literal: Schema = {"type": ["string", "number", "boolean"]}
    value = closed({"value": literal}, "A literal.", required=("value",))
    return {"description": "A literal, or data.", "anyOf": [literal, asset, value]}


def _output(job: Schema) -> Schema:
    told = _only(job, data.OUTPUT, "$schema")
    told["properties"]["name"] = {**told["properties"]["name"], "pattern": f"^{data.ASSET_NAME.pattern}$"}
    return {**told, "dependencies": {"version": ["name"]}}


def _distributions() -> list[Schema]:
    made = []
    for model in (distribution.PyTorch, distribution.Mpi, distribution.TensorFlow, distribution.Ray):
        about = (model.__doc__ or "").replace("``", "`").split("\n")[0]
        made.append(closed(fields(model), about, required=("type",)))
    return made


def _identity(job: Schema) -> Schema:
    made = _only(job, ("type", "client_id", "object_id"))
    made["properties"]["type"] |= any_case(("managed", "user_identity", "aml_token", "managed_identity"))
    managed: Schema = {"properties": {"type": any_case(("managed", "managed_identity"))}}
    return {**made, "dependencies": dict.fromkeys(("client_id", "object_id"), managed)}


def _service(job: Schema) -> Schema:
    made = _only(job, job["properties"], "status", "error_message", "$schema")
    made["properties"]["type"] = {
        "description": about(made["properties"]["type"]),
        "anyOf": [{"enum": ["ssh", "jupyter_lab", "tensor_board", "vs_code"]}, TEXT],
    }
    own = {key: {"properties": {"type": any_case((kind,))}} for key, kind in runtime.OWN_KEY.items()}
    return {**made, "dependencies": own}
