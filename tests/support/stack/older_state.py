"""A stack's state as an earlier version of the program wrote it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amlstack.run_identity import STACK
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.harness import Stack

NEW_KINDS = (
    "amlstack:stack:Record",
    "amlstack:stack:Keeper",
    "amlstack:runs:Guard",
    "amlstack:network:Isolation",
    "amlstack:network:Managed",
)
"""Resources that a stack did not have before active runs were guarded."""
_NEW_INPUTS = ("placedOn", "stackId")


def forget_what_is_new(stack: Stack) -> None:
    """The state as it was before there were guards: no such resources and inputs, no order among properties."""
    deployment = stack.state()
    kept = [one for one in deployment["resources"] if one["type"] not in NEW_KINDS]
    new = {one["urn"] for one in deployment["resources"] if one["type"] in NEW_KINDS}
    for one in kept:
        one["dependencies"] = [urn for urn in one.get("dependencies", ()) if urn not in new]
        one["propertyDependencies"] = {name: [] for name in one.get("inputs", {})}
        for name in _NEW_INPUTS:
            one.get("inputs", {}).pop(name, None)
            one.get("outputs", {}).pop(name, None)
        if one["type"].endswith(":ResourceGroup"):
            one["protect"] = False
    restore(stack, {**deployment, "resources": kept})


def forget_stack_ids(home: Path) -> None:
    """Runs as an earlier version submitted them: without the id of their stack."""
    with store_of(home) as store, store.transaction():
        for row in store.jobs.list():
            labels = {name: value for name, value in row.properties["properties"].items() if name != STACK}
            store.jobs.set_body(row.id, {"properties": {**row.properties, "properties": labels}})


def restore(stack: Stack, deployment: object) -> None:
    """Puts a deployment in the place of the stack's state."""
    exported = stack.folder / "state.json"
    exported.write_text(json.dumps({"version": 3, "deployment": deployment}), "utf-8")
    stack.pulumi("stack", "import", "--file", str(exported), "--stack", stack.name).ok()


def urn_of(stack: Stack, kind: str, name: str) -> str:
    """URN of the one resource whose type ends so."""
    found = [one["urn"] for one in stack.state()["resources"] if one["type"].endswith(kind)]
    (urn,) = (urn for urn in found if urn.endswith(f"::{name}"))
    return str(urn)
