"""Inputs, outputs and variables of an Azure ML file."""

from __future__ import annotations

import math
import re
from typing import Any

from jobs.azureml.containers import keys, named
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import anything, nullable, same, text, version, word
from jobs.model.values import Input, Output

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
    if isinstance(value, float) and not math.isfinite(value):
        return cursor.wrong("a finite number, or text in quotes")
    if isinstance(value, (str, bool, int, float)):
        return value
    if value is None:
        return cursor.bad(
            "value-missing",
            f"`{cursor.path[-1]}` has no value",
            "An input has a value or a path",
            'Write "" for empty text.',
        )
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
        return cursor.bad(
            "input-mode",
            f"`{mode}` with type `{kind}`",
            "Only an mltable is evaluated while mounting",
            f"Write {', '.join(f'`{name}`' for name in MODES)}, or `type: mltable`.",
            key="mode",
        )
    if "path_on_compute" in fields and kind in MODEL_TYPES:
        return cursor.bad(
            "key-unknown",
            f"`path_on_compute` with type `{kind}`",
            "A model has no path on the compute",
            key="path_on_compute",
        )
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
        cursor.bad(
            "output-name",
            f"The output is to be registered as `{fields['name']}`",
            "The name of an output is up to 255 letters, digits, dashes and underscores",
            key="name",
        )
    if fields.get("version") and "name" not in cursor.value:
        cursor.bad(
            "output-name",
            "The output has a `version` and no `name`",
            "A version belongs to the name that the output is registered under",
            "Add `name`, or remove `version`.",
            key="version",
        )
    return Output(**fields)


def variables(cursor: Cursor) -> Any:
    """Environment variables: any values, sent as they are."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping of names to values")
    values = anything(cursor)
    return values if values is Bad else {str(key): value for key, value in values.items()}


inputs = named(input_)
outputs = named(output)
tags = named(nullable(text))
