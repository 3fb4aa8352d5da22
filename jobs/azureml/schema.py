"""The JSON Schema of Azure ML files, for editors: pydantic's schema of the models, laid out by the table of keys.

It marks unknown keys, wrong words and wrong types, and some spellings that Azure ML's loader takes (`type: PyTorch`).
What depends on another key, on another file or on a binding is found by `amlstack check`.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import models_json_schema

from amlstack.base.models import described, reached
from jobs.azureml.read.command import READ_ONLY
from jobs.model import pipeline
from jobs.model.job import Component, Job, Sweep
from jobs.model.pipeline import Pipeline, Schedule
from jobs.wire.keys import PLACES, blocks

Schema = dict[str, Any]
NOT_IN_FILES = {"rerun", "on_edit", "wait", "after", "delete_history", "enrich", "fabric", "extra", "schema_uri",
                "file", "source", "source_job", "inline", "resource_id"}  # fmt: skip
KINDS = {"Job": "command", "InlineStep": "command", "Step": "command", "Component": "command",
         "Sweep": "sweep", "SweepStep": "sweep", "Pipeline": "pipeline"}  # fmt: skip
TEXTS: Schema = {"description": "Text by name.", "type": "object", "additionalProperties": {"type": ["string", "null"]}}
WRITTEN: Schema = {key: {"description": "Written by Azure ML."} for key in READ_ONLY}
_OUTPUT = [{"type": "null"}, {"$ref": "#/definitions/Output"}]
OUTPUTS: Schema = {"description": "What is written.", "type": "object", "additionalProperties": {"anyOf": _OUTPUT}}
STEP_OUTPUTS: Schema = {**OUTPUTS, "additionalProperties": {"anyOf": [*_OUTPUT, {"type": "string"}]}}
# Text that is taken for a number: digits, or a binding.
NUMBER = r"^\s*[+-]?[\d.]+(e[+-]?\d+)?\s*$|^\$\{\{.*\}\}$"


def job_files() -> Schema:
    """The schema of a job file: command jobs, sweeps, pipelines, schedules and components."""
    schedule = {"not": {"required": ["type"]}, "anyOf": [{"required": ["trigger"]}, {"required": ["create_job"]}]}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "description": "What `az ml job create -f` and `amlstack` take.",
        "type": "object",
        **_chosen(
            (schedule, "Schedule"),
            (_typed("sweep"), "Sweep"),
            (_typed("parallel", "spark", "DistributedComponent", "CommandComponent"), "Anything"),
            ({"required": ["launcher"]}, "Anything"),
            ({"anyOf": [{"required": ["is_deterministic"]}, {"required": ["name", "version"]}]}, "Component"),
            (_typed("pipeline"), "Pipeline"),
            otherwise="Job",
        ),
        "definitions": definitions(),
    }


def definitions() -> Schema:
    """Every block of a file, by the name of its model."""
    declared = (Job, Sweep, Pipeline, Schedule, Component)
    _, made = models_json_schema([(each, "validation") for each in declared], ref_template="#/definitions/{model}")
    for model in reached(declared):
        for name, text in described(model).items():
            made["$defs"][model.__name__]["properties"][name]["description"] = text
    found: Schema = {
        "Anything": {"type": "object", "description": "Passed through to Azure ML."},
        **{name: _plain(each) for name, each in made["$defs"].items()},
    }
    distribution = found["Custom"]["properties"]["distribution"]
    for name in ("Job", "Step", "Component", "SweepResources"):
        found[name]["properties"] = _laid_out(found[name]["properties"], distribution)
    found["SweepResources"]["properties"] = found["SweepResources"]["properties"]["resources"]["properties"]
    job = found["Job"]["properties"]
    trial = _closed({key: job[key] for key in (*blocks("trial"), "queue_settings")}, "command", "environment")
    found["Sweep"]["properties"] |= {
        "trial": {**trial, "description": "What is tried."},
        **{key: job[key] for key in (*blocks("sweep"), "services")},
    }
    found["Sweep"]["required"].append("type")
    found["Component"]["properties"]["resources"].pop("additionalProperties")
    found["InlineStep"] = _closed(dict(job), "command")
    found["Pipeline"]["properties"]["jobs"]["additionalProperties"] = {"type": "object", **_chosen(
        (_typed(*pipeline.PASSED_THROUGH), "Anything"),
        (_typed("sweep"), "SweepStep"), ({"required": ["component"]}, "Step"), otherwise="InlineStep",
    )}  # fmt: skip
    found["Schedule"]["properties"]["create_job"] = {"type": ["string", "object"], "description": "What it starts."}
    found["Input"]["properties"]["value"] = {"description": "A literal."}
    for key, each in found["Pattern"]["properties"].items():  # a list, or a single one
        found["Pattern"]["properties"][key] = {"anyOf": [each, each.get("anyOf", [each])[0]["items"]]}
    for name in ("Component", "Environment", "Output"):
        found[name]["properties"]["version"]["type"] = ["string", "number"]
    for name, kind in KINDS.items():
        found[name]["properties"]["type"] = {"const": kind, "description": "Kind of the block."}
        if name != "Component":
            found[name]["properties"]["outputs"] = STEP_OUTPUTS if "Step" in name else OUTPUTS
    for name in (*KINDS, "Schedule"):
        found[name]["properties"] |= {**WRITTEN, "tags": TEXTS, "properties": TEXTS}
    for name in ("Component", "Step", "SweepStep", "PipelineSettings"):  # unknown keys are passed through
        found[name].pop("additionalProperties")
    return {name: found[name] for name in sorted(_used(found, "Schedule", "Sweep", "Pipeline", "Job", "Anything"))}


def _plain(schema: Any) -> Any:
    """A schema of pydantic as files have it: without titles and null, numbers also as text, code as its path."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema if each != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    if schema.get("$ref", "").endswith("/Code"):
        return {"type": "string"}
    result = {key: _plain(each) for key, each in schema.items() if key not in ("title", "default", "discriminator")}
    if schema.get("type") in ("integer", "number"):
        return {"anyOf": [result, {"type": "string", "pattern": NUMBER}]}
    if isinstance(fields := schema.get("properties"), dict):
        result["properties"] = {key: _plain(each) for key, each in fields.items() if key not in NOT_IN_FILES}
        if "const" in fields.get("type", {}):
            result["required"] = ["type", *result.get("required", ())]
    return result | result.pop("anyOf")[0] if len(result.get("anyOf", ())) == 1 else result


def _laid_out(fields: Schema, distribution: Schema) -> Schema:
    """Fields of a job, a step or a component at their keys in a file."""
    result: Schema = {}
    for field, schema in fields.items():
        block, *inner = PLACES.get(field, (field,))
        if inner:
            result.setdefault(block, {**_closed({}), "description": "Nodes, their size, and their container."})
            result[block]["properties"][inner[0]] = schema
        else:
            result[block] = distribution if field == "launcher" else schema
    return result


def _closed(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _typed(*words: str) -> Schema:
    return {"properties": {"type": {"enum": list(words)}}, "required": ["type"]}


def _chosen(*cases: tuple[Schema, str], otherwise: str) -> Schema:
    """The definition of the first condition that holds."""
    if not cases:
        return {"$ref": f"#/definitions/{otherwise}"}
    (condition, name), *others = cases
    return {"if": condition, "then": {"$ref": f"#/definitions/{name}"}, "else": _chosen(*others, otherwise=otherwise)}


def _used(found: Schema, *names: str) -> set[str]:
    """Definitions that are referred to from the given ones, those included."""
    seen = set(names)
    while more := {each for each in found.keys() - seen if any(f'/{each}"' in json.dumps(found[one]) for one in seen)}:
        seen |= more
    return seen
