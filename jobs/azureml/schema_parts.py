"""Pieces that the JSON Schema of Azure ML files is put together from: a model's fields, words, numbers, mappings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic import BaseModel

Schema = dict[str, Any]

DIGITS = r"^\s*[+-]?\d+\s*$"
COUNT = rf"{DIGITS}|^\$\{{\{{.*\}}\}}$"
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
TEXT: Schema = {"type": "string"}
WRITTEN: Schema = {"description": "Written by Azure ML; ignored when a job is submitted."}
VALUES: Schema = {"type": "object"}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}
NAMES = "^[A-Za-z_][A-Za-z0-9_]*$"


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


def closed(keys: Schema, description: str = "", *, required: Collection[str] = (), more: bool = False) -> Schema:
    """A mapping of these keys; of ``more`` when further ones are taken."""
    told: Schema = {"type": "object", "properties": keys, "additionalProperties": more}
    if description:
        told["description"] = description
    return {**told, "required": list(required)} if required else told


def about(schema: Schema) -> str:
    """Its description."""
    return str(schema.get("description", ""))


def ref(name: str) -> Schema:
    """What stands under that name in the definitions."""
    return {"$ref": f"#/definitions/{name}"}


def of_type(*words: str) -> Schema:
    """The condition that a mapping is of one of these types, in any letter case."""
    return {"properties": {"type": any_case(words)}, "required": ["type"]}


def chosen(*cases: tuple[Schema, Schema], otherwise: Schema) -> Schema:
    """The schema of the first condition that holds."""
    for condition, then in reversed(cases):
        otherwise = {"if": condition, "then": then, "else": otherwise}
    return otherwise
