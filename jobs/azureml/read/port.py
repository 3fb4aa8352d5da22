"""Inputs and outputs that an Azure ML component file declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.containers import keys, listed, named
from jobs.azureml.cursor import Bad, Cursor, shown
from jobs.azureml.fields import anything, same, text, truth, word
from jobs.azureml.read.data import DATA_TYPES, MODEL_TYPES, MODES
from jobs.model.component import PRIMITIVES, Port

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPES = (*DATA_TYPES, *MODEL_TYPES, "mltable", "path", *PRIMITIVES)


def _plain(cursor: Cursor) -> Any:
    if not isinstance(cursor.value, (str, int, float, bool)):
        return cursor.wrong("text, a number, true or false")
    return anything(cursor)  # which finds a number that JSON cannot say


_PORT = {"type": word(same(*TYPES), str), "description": text}
INPUT = {
    **_PORT,
    "optional": truth,
    "default": _plain,
    "min": _plain,
    "max": _plain,
    "enum": listed(text),
    "mode": word(same(*MODES, "eval_mount", "eval_download", "rw_mount", "mount", "link"), str),
}
OUTPUT = {**_PORT, "mode": word(same("rw_mount", "mount", "upload", "direct", "link"), str)}


def _port(table: Any) -> Any:
    def read(cursor: Cursor) -> Any:
        fields = dict(keys(cursor, table, what="an input or output of a component"))
        if "type" not in fields:
            if isinstance(cursor.value, dict) and "type" not in cursor.value:
                cursor.bad(
                    "key-missing",
                    "There is no `type`",
                    "An input or output of a component has a `type`",
                    "Write `type: uri_folder`, or `string`, `integer`, `number`, `boolean`.",
                )
            return Bad
        return Port(**_fitting(cursor, fields))

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
            cursor.bad(
                "port-bounds", f"`{key}` with type `{kind}`", f"An input of type `{kind}` has no `{key}`", key=key
            )
        elif key != "enum" and not _parses(kind, fields[key], bound=key != "default"):
            del kept[key]
            cursor.bad("port-bounds", f"`{key}` must be of type `{kind}`, got {shown(fields[key])}", "", key=key)
    return kept


def _parses(kind: str, value: Any, *, bound: bool) -> bool:
    """Whether a value is one of a primitive type, or text of one."""
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


inputs = named(_port(INPUT))
outputs = named(_port(OUTPUT))
