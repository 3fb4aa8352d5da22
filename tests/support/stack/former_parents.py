"""A stack's state as the program wrote it while a component stood around every single resource."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from infra.components import tokens
from tests.support.stack.older_state import restore

if TYPE_CHECKING:
    from tests.support.harness import Stack

COMPONENTS = {
    tokens.CLUSTERS: tokens.FORMER_CLUSTER,
    tokens.JOBS: tokens.FORMER_JOB,
    tokens.SCHEDULES: tokens.FORMER_SCHEDULE,
}


def put_back(stack: Stack) -> list[str]:
    """Gives each resource its component again; the URNs that the state then has."""
    deployment = stack.state()
    root = next(one["urn"] for one in deployment["resources"] if one["type"] == "pulumi:pulumi:Stack")
    clusters = [one["urn"].split("::")[-1] for one in deployment["resources"] if one["type"] == tokens.COMPUTE]
    start = "::".join(root.split("::")[:2])
    kept: list[dict[str, Any]] = []
    moved: dict[str, str] = {}
    for one in deployment["resources"]:
        if one["type"] in COMPONENTS:
            continue
        name = one["urn"].split("::")[-1]
        around = COMPONENTS.get(str(one.get("parent", "")).split("::")[2:3][0] if one.get("parent") else "")
        if one["type"] == tokens.ENVIRONMENT:
            around = tokens.FORMER_ENVIRONMENT
        if around:
            # Roles are named after their cluster, component versions after their run.
            label = next((each for each in clusters if name.startswith(f"{each}-")), name)
            label = name.split(".")[0] if one["type"] == tokens.COMPONENT else label
            component = f"{start}::{around}::{label}"
            if not any(each["urn"] == component for each in kept):
                kept.append({"urn": component, "custom": False, "type": around, "parent": root})
            moved[one["urn"]] = f"{start}::{around}${one['type']}::{name}"
            one["parent"] = component
        kept.append(one)
    text = json.dumps({**deployment, "resources": kept})
    for now, formerly in moved.items():
        text = text.replace(f'"{now}"', f'"{formerly}"')
    restore(stack, json.loads(text))
    return [str(one["urn"]) for one in json.loads(text)["resources"]]
