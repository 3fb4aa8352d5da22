"""The JSON Schema of stack files, for editors: pydantic's of the models, under the keys that a stack file has."""

from __future__ import annotations

import json
from typing import Any

from infra.settings.includes import INCLUDE, LISTS
from infra.settings.model import Include, Settings
from infra.settings.stackfile import NAMESPACE


def stack_file() -> dict[str, Any]:
    """The schema of ``Pulumi.<stack>.yaml``: unknown keys of ours are marked, those of other namespaces are left."""
    # Python's end of text; the expressions of JSON Schema have another.
    settings = json.loads(json.dumps(Settings.model_json_schema()).replace(r"\\Z", "$"))
    for name in LISTS:
        entry = settings["properties"][name]["items"]
        files = {"type": "object", "required": [INCLUDE]}
        settings["properties"][name]["items"] = {"if": files, "then": {"$ref": "#/$defs/Include"}, "else": entry}
    # A key that an entry leaves out may be among the defaults, which no schema can look up.
    settings["$defs"]["Cluster"]["required"] = ["name"]
    for name in ("Nodes", "Ssh"):
        settings["$defs"][name].pop("required", None)
    settings["$defs"]["Include"] = Include.model_json_schema()
    properties = {f"{NAMESPACE}:{name}": schema for name, schema in settings["properties"].items()}
    others = f"^{NAMESPACE}:(?!({'|'.join(settings['properties'])})$)"
    config = {"type": "object", "properties": properties, "patternProperties": {others: False}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Stack settings of amlstack",
        "type": "object",
        "properties": {"config": config},
        "$defs": settings["$defs"],
    }
