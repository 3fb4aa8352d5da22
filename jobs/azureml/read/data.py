"""Inputs, outputs and variables of a job in an Azure ML file, and the inputs and outputs that a component declares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from amlstack.base.findings import Level
from jobs.azureml.fields import (
    Bad,
    Cursor,
    Nullable,
    anything,
    has_keys,
    keys,
    listed,
    named,
    same,
    shown,
    text,
    truth,
    version,
    word,
)
from jobs.model.job import PRIMITIVES, Port
from jobs.values import Input, Output

DATA_TYPES = ("uri_file", "uri_folder")
MODEL_TYPES = ("mlflow_model", "custom_model", "triton_model")
ASSET_NAME = re.compile(r"[A-Za-z0-9_-]{0,255}")
MODES = ("ro_mount", "download", "direct")
EVAL_MODES = ("eval_mount", "eval_download")

DATA_INPUT = {
    "type": word(same(*DATA_TYPES, *MODEL_TYPES, "mltable")),
    "path": text,
    "mode": word(same(*MODES, *EVAL_MODES)),
    "datastore": text,
    "path_on_compute": text,
}


def literal(cursor: Cursor) -> Any:
    """A literal input: text, a number, a truth value."""
    value = cursor.value
    if isinstance(value, (str, bool, int, float)):
        return anything(cursor)
    if value is None:
        return cursor.stated("value-missing/literal", path=cursor.path[-1])
    return cursor.wrong("text, a number, true or false, or a mapping with `path`", f'Put it in quotes: "{value}".')


def input_(cursor: Cursor) -> Any:
    """One input; a broken one stands in as an empty one, so that its name is still known to the command."""
    value = _input(cursor)
    return Input() if value is Bad else value


def _input(cursor: Cursor) -> Any:
    """A literal, ``{value: …}``, or data with a path."""
    if not isinstance(cursor.value, dict):
        return literal(cursor)
    if set(cursor.value) == {"value"}:
        return literal(cursor.at("value"))
    fields = dict(keys(cursor, DATA_INPUT, what="an input"))
    kind, mode = fields.get("type", "uri_folder"), fields.get("mode")
    if mode in EVAL_MODES and kind != "mltable":
        seen = f"`{mode}` with type `{kind}`"
        remedy = f"Write {', '.join(f'`{name}`' for name in MODES)}, or `type: mltable`."
        return cursor.bad("input-mode", seen, "Only an mltable is evaluated while mounting", remedy, key="mode")
    if "path_on_compute" in fields and kind in MODEL_TYPES:
        return cursor.stated("key-unknown/input", Level.ERROR, "path_on_compute", kind=kind)
    return Input(**fields)


OUTPUT = {
    "type": word(same(*DATA_TYPES, *MODEL_TYPES, "mltable")),
    "mode": word(same("rw_mount", "mount", "upload", "direct")),
    "path": text,
    "name": text,
    "version": version,
}


def output(cursor: Cursor) -> Any:
    """One output; nothing at all is a folder on the default datastore."""
    if cursor.value is None:
        return Output()
    fields = dict(keys(cursor, OUTPUT, ignored=("$schema",), what="an output"))
    if "name" in fields and not ASSET_NAME.fullmatch(fields["name"]):
        cursor.stated("output-name", Level.ERROR, "name", fields=fields["name"])
    if fields.get("version") and "name" not in cursor.value:
        cursor.stated("output-name/output", Level.ERROR, "version")
    return Output(**fields)


def variables(cursor: Cursor) -> Any:
    """Environment variables: any values, sent as they are."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping of names to values")
    values = anything(cursor)
    return values if values is Bad else {str(key): value for key, value in values.items()}


inputs = named(input_)
outputs = named(output)
tags = named(Nullable(text))


PORT_TYPES = (*DATA_TYPES, *MODEL_TYPES, "mltable", "path", *PRIMITIVES)


def _plain(cursor: Cursor) -> Any:
    if not isinstance(cursor.value, (str, int, float, bool)):
        return cursor.wrong("text, a number, true or false")
    return anything(cursor)  # which finds a number that JSON cannot say


_PORT = {"type": word(same(*PORT_TYPES), str), "description": text}
INPUT_PORT = {
    **_PORT,
    "optional": truth,
    "default": _plain,
    "min": _plain,
    "max": _plain,
    "enum": listed(text),
    "mode": word(same(*MODES, "eval_mount", "eval_download", "rw_mount", "mount", "link"), str),
}
OUTPUT_PORT = {**_PORT, "mode": word(same("rw_mount", "mount", "upload", "direct", "link"), str)}


def _port(table: Any) -> Any:
    def read(cursor: Cursor) -> Any:
        fields = dict(keys(cursor, table, what="an input or output of a component"))
        rule = "An input or output of a component has a `{}`"
        remedy = "Write `type: uri_folder`, or `string`, `integer`, `number`, `boolean`."
        complete = has_keys(cursor, fields, ("type",), rule=rule, remedy=remedy)
        return Port(**_fitting(cursor, fields)) if complete else Bad

    return read


def _fitting(cursor: Cursor, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The keys whose values are of the port's type, as azure-ai-ml wants them; the others are reported."""
    kind = fields["type"]
    kept = dict(fields)
    for key in ("default", "min", "max", "enum"):
        if key not in fields:
            continue
        if kind not in PRIMITIVES or (key in ("min", "max") and kind not in ("number", "integer")):
            del kept[key]
            cursor.stated("port-bounds", Level.ERROR, key, key=key, kind=kind)
        elif key != "enum" and not _parses(kind, fields[key], bound=key != "default"):
            del kept[key]
            cursor.bad("port-bounds", f"`{key}` must be of type `{kind}`, got {shown(fields[key])}", "", key=key)
    return kept


def _parses(kind: str, value: Any, *, bound: bool) -> bool:
    """True where a value is one of a primitive type, or text of one."""
    if isinstance(value, bool):
        return not bound
    if kind == "boolean":
        return isinstance(value, str) and value.lower() in ("true", "false")
    if kind == "string":
        return True
    try:
        float(value) if kind == "number" else int(value)
    except (ValueError, OverflowError):
        return False
    return True


input_ports = named(_port(INPUT_PORT))
output_ports = named(_port(OUTPUT_PORT))
