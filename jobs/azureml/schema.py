"""The JSON Schema of Azure ML job files, for editors: made from the job's models, with the words of the real loader.

It is a help while writing and no judge: `amlstack check` knows what a schema cannot say (near misses, files that are
not there, names that bind nothing), and takes some spellings that the schema marks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jobs import distribution
from jobs.azureml import command, data, environment, sweep
from jobs.spec import Job
from jobs.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic import BaseModel

Schema = dict[str, Any]

DIGITS = r"^\s*[+-]?\d+\s*$"
COUNT = rf"{DIGITS}|^\$\{{\{{.*\}}\}}$"
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_TEXT: Schema = {"type": "string"}
_WRITTEN: Schema = {"description": "Written by Azure ML; ignored when a job is submitted."}
_VALUES: Schema = {"type": "object"}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}
_NAMES = "^[A-Za-z_][A-Za-z0-9_]*$"


def job_files() -> Schema:
    """The schema of a job file: command jobs and sweeps in full, pipelines by their outline."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Azure ML job file",
        "description": "What `az ml job create -f` and `amlstack` take.",
        "type": "object",
        "if": _of_type("sweep"),
        "then": {"$ref": "#/definitions/sweep"},
        "else": {
            "if": _of_type("pipeline"),
            "then": {"$ref": "#/definitions/pipeline"},
            "else": {"$ref": "#/definitions/command"},
        },
        "definitions": {
            "command": _closed(command_keys(), required=("command", "environment")),
            "sweep": _closed(sweep_keys(), required=("type", "trial", "search_space", "objective", "limits")),
            "pipeline": {"required": ["type"], "properties": {"jobs": {"type": "object"}}},
        },
    }


def command_keys() -> Schema:
    """Key to schema of a command job."""
    job = fields(Job)
    resources = {
        path[1]: job[field] for field, path in command.PLACES.items() if path[0] == "resources" and len(path) == 2
    }
    made = {key: job[key] for key in command.KEYS if key in job}
    made |= {
        "type": {"const": "command", "description": "Kind of job; unset: command."},
        "code": {"type": "string", "description": _about(job["code"])},
        "environment": _environment(job["environment"]),
        "inputs": {
            "type": "object",
            "description": _about(job["inputs"]),
            "patternProperties": {_NAMES: _input(job["inputs"])},
            "additionalProperties": False,
        },
        "outputs": {
            "type": "object",
            "description": _about(job["outputs"]),
            "patternProperties": {
                _NAMES: {"anyOf": [{"type": "null"}, _only(_inner(job["outputs"]), data.OUTPUT, "$schema")]}
            },
            "additionalProperties": False,
        },
        "distribution": {"description": "How Azure ML starts the processes.", "anyOf": _distributions()},
        "resources": _closed(resources, "Nodes, their size, and their container."),
        "identity": _identity(job["identity"]),
        "services": {
            "type": "object",
            "description": _about(job["services"]),
            "additionalProperties": _service(_inner(job["services"])),
        },
        "tags": {**_TEXTS, "description": _about(job["tags"])},
        "properties": {**_TEXTS, "description": _about(job["properties"])},
    }
    return {"$schema": _TEXT, **made, **{key: _WRITTEN for key in command.READ_ONLY if key != "$schema"}}


def sweep_keys() -> Schema:
    """Key to schema of a sweep job."""
    job, own = command_keys(), fields(Sweep)
    made = {key: own[key] if key in sweep.PARTS and key in own else job.get(key, _VALUES) for key in sweep.KEYS}
    made["type"] = {"const": "sweep", "description": "Kind of job."}
    made["resources"] = job["resources"]
    made["early_termination"] = _policies(own["early_termination"])
    made["search_space"] = {
        **_VALUES,
        "description": _about(own["search_space"]),
        "patternProperties": {"^[A-Za-z0-9_]+$": _inner(own["search_space"])},
        "additionalProperties": False,
    }
    made["trial"] = _closed(
        {key: job[key] for key in (*sweep.TRIAL, "queue_settings")},
        "What is tried: the command binds what is varied as `${{search_space.NAME}}`.",
        required=("command", "environment"),
    )
    return {"$schema": _TEXT, **made, **{key: _WRITTEN for key in command.READ_ONLY if key != "$schema"}}


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


def fields(model: type[BaseModel]) -> Schema:
    """Field to schema of a model, as a file writes it: without null, references written out, words in any case."""
    made = model.model_json_schema()
    return {name: _plain(each, made.get("$defs", {})) for name, each in made["properties"].items()}


def any_case(words: Collection[str]) -> Schema:
    """Words for completion, and the same in any letter case, with or without underscores."""
    spelt = "|".join(
        "".join(
            f"[{letter.upper()}{letter}]" if letter.isalpha() else "_?" if letter == "_" else re.escape(letter)
            for letter in word
        )
        for word in words
    )
    return {"anyOf": [{"enum": list(words)}, {"type": "string", "pattern": f"^({spelt})$"}]}


def _plain(schema: Schema, defs: Mapping[str, Schema]) -> Schema:
    if "$ref" in schema:
        inner = _plain(defs[schema["$ref"].rpartition("/")[2]], defs)
        return {**inner, **{key: value for key, value in schema.items() if key == "description"}}
    told = {
        key: value for key, value in schema.items() if key not in ("title", "default", "discriminator", "prefixItems")
    }
    branches = [branch for branch in told.pop("anyOf", told.pop("oneOf", [])) if branch != {"type": "null"}]
    if branches and {branch.get("type") for branch in branches} == {"integer", "string"}:
        whole = next(branch for branch in branches if branch["type"] == "integer")
        return {**told, **whole, "type": ["integer", "string"], "pattern": COUNT}
    if len(branches) == 1:
        return {**_plain(branches[0], defs), **told}
    if branches:
        return {**told, "anyOf": [_plain(branch, defs) for branch in branches]}
    if "properties" in told:
        told["properties"] = {name: _plain(each, defs) for name, each in told["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(told.get(key), dict):
            told[key] = _plain(told[key], defs)
    match told.get("type"), told.get("enum") or ([told["const"]] if "const" in told else None):
        case "string", [*words]:
            rest = {key: value for key, value in told.items() if key not in ("type", "enum", "const")}
            return rest | any_case(words)
        case "integer", None:
            return {**told, "type": ["integer", "string"], "pattern": DIGITS}
        case "number", None:
            return {**told, "type": ["number", "string"], "pattern": NUMBER}
        case _:
            return told


def _closed(keys: Schema, description: str = "", *, required: Collection[str] = ()) -> Schema:
    told: Schema = {"type": "object", "properties": keys, "additionalProperties": False}
    if description:
        told["description"] = description
    return {**told, "required": list(required)} if required else told


def _of_type(kind: str) -> Schema:
    return {"properties": {"type": {"const": kind}}, "required": ["type"]}


def _about(schema: Schema) -> str:
    return str(schema.get("description", ""))


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
    made |= {key: _TEXT if key == "$schema" else _WRITTEN for key in ignored}
    return _closed(made, _about(schema), required=schema.get("required", ()))


def _environment(job: Schema) -> Schema:
    inline = _object(job)
    unsent = {key: {"description": "Not sent."} for key in ("name", "version")}
    written = _only(inline, environment.KEYS, "id", "$schema", "creation_context")
    written["properties"] |= unsent
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
        "description": _about(asset["properties"]["mode"]),
    }
    literal: Schema = {"type": ["string", "number", "boolean"]}
    value = _closed({"value": literal}, "A literal.", required=("value",))
    return {"description": "A literal, or data.", "anyOf": [literal, asset, value]}


def _distributions() -> list[Schema]:
    made = []
    for model in (distribution.PyTorch, distribution.Mpi, distribution.TensorFlow, distribution.Ray):
        about = (model.__doc__ or "").replace("``", "`").split("\n")[0]
        made.append(_closed(fields(model), about, required=("type",)))
    return made


def _identity(job: Schema) -> Schema:
    made = _only(job, ("type", "client_id", "object_id"))
    made["properties"]["type"] |= any_case(("managed", "user_identity", "aml_token", "managed_identity"))
    return made


def _service(job: Schema) -> Schema:
    made = _only(job, job["properties"], "status", "error_message", "$schema")
    made["properties"]["type"] = {
        "description": _about(made["properties"]["type"]),
        "anyOf": [{"enum": ["ssh", "jupyter_lab", "tensor_board", "vs_code"]}, _TEXT],
    }
    return made
