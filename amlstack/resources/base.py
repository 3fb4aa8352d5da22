"""What all resources of the provider have in common: attributes in Python's words, properties in the schema's."""

from __future__ import annotations

from typing import Any, Literal

import pulumi

OnEdit = Literal["refuse", "cancel", "keep"]
Wait = Literal["none", "started", "completed"]


class ProviderResource(pulumi.CustomResource):
    """Attributes in Python's words, properties in the schema's.

    The SDK's own translation of property names goes all the way down and would rename keys inside a body or a
    declaration, which are the person's; so properties have their wire names and only attributes are translated.
    Annotations of attributes are for type checkers alone: the SDK would resolve them anew for each resource, a fourth
    of what a program of many jobs does.
    """

    def __getattr__(self, name: str) -> Any:
        wire = _WIRE.get(name)
        if wire is None or wire not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.__dict__[wire]


_WIRE = {
    "code_id": "codeId",
    "data_id": "dataId",
    "environment_id": "environmentId",
    "component_id": "componentId",
    "job_id": "jobId",
    "code_hash": "codeHash",
    "code_files": "codeFiles",
    "on_edit": "onEdit",
    "delete_history": "deleteHistory",
    "awaited_by": "awaitedBy",
    "placed_on": "placedOn",
    "reached_by": "reachedBy",
    "stack_id": "stackId",
    "schedule_id": "scheduleId",
}


def with_outputs(inputs: dict[str, Any], *outputs: str) -> dict[str, Any]:
    """Inputs as properties, beside outputs without a value: the SDK makes an output of each, and sends none of them."""
    return {_WIRE.get(name, name): value for name, value in {**inputs, **dict.fromkeys(outputs)}.items()}
