"""Stack settings out of the clusters and workspaces that a program of SDK v1 makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from amlstack.base.text import iso
from amlstack.migrate.data import text
from amlstack.migrate.values import Made, known

_CLUSTER = "AmlCompute.provisioning_configuration"
_BY_HAND = {
    "subnet_name": ("vnet_resourcegroup_name", "vnet_name", "subnet_name"),
    "admin_username": ("admin_username", "admin_user_password", "admin_user_ssh_key"),
    "identity_type": ("identity_type",),
}
"""Note → the arguments of a cluster, any of which a person has to carry over."""


def settings_of(made: Sequence[Made], told: Callable[..., None]) -> dict[str, Any]:
    """The configuration of a stack; empty where the programs make no cluster and no workspace."""
    clusters: dict[str, dict[str, Any]] = {}
    creates = [each for each in made if each.fields.get("_row") in ("ComputeTarget.create", "AmlCompute.create")]
    created = [(each, each.part("provisioning_configuration")) for each in creates]
    configs = [each for each in made if each.kind == _CLUSTER]
    alone = [(each, each) for each in configs if not any(each is config for _, config in created)]
    for place, config in [*created, *alone]:
        if config.kind == _CLUSTER:
            cluster = _cluster(text(place.get("name") or place.open("name")), config, told)
            if clusters.setdefault(cluster["name"], cluster) != cluster:
                told(place, "cluster-twice", name=cluster["name"])
    workspaces = [each for each in made if each.kind == "Workspace.create"]
    if not clusters and not workspaces:
        return {}
    workspace, first = [*workspaces, Made("")][0], [*configs, *workspaces][0]
    found = {
        "amlstack:location": text(workspace.get("location") or first.open("location")),
        "amlstack:workspace": text(workspace.get("name") or first.open("workspace")),
        "amlstack:clusters": [*clusters.values()],
    }
    return {"config": {key: value for key, value in found.items() if value}}


def _cluster(name: str, config: Made, told: Callable[..., None]) -> dict[str, Any]:
    from amlstack.catalog import clock, sizes  # noqa: PLC0415 - most programs make no cluster

    size = text(config.get("vm_size") or config.open("vm_size"))
    if (listed := sizes.get(size)) is not None:
        size = listed.name
        if listed.retired_on(clock.today()):
            other = sizes.nearest_open(listed, clock.today())
            told(config, "size-retired", size=size, instead=f"; the nearest is {other.name}" if other else "")
    elif known(config.get("vm_size") or "") and "_" not in size:
        size = f"Standard_{size}"
    most, least, idle = config.get("max_nodes"), config.get("min_nodes"), config.get("idle_seconds_before_scaledown")
    nodes = {"min": least if isinstance(least, int) else text(least) if least is not None else 0,
             "max": most if isinstance(most, int) else text(most) if most is not None else 4,
             "idle": iso(idle) if isinstance(idle, int) else text(idle) if idle is not None else "PT30M"}  # fmt: skip
    found: dict[str, Any] = {"name": re.sub(r"_", "-", name) if known(name) else name, "size": size, "nodes": nodes}
    if found["name"] != name:
        told(config, "cluster-name", name=name, new=found["name"])
    if text(config.get("vm_priority") or "").lower() == "lowpriority":
        found["priority"] = "LowPriority"
    if isinstance(tags := config.get("tags"), dict):
        found["tags"] = {text(key): text(value) for key, value in tags.items()}
    for note, arguments in _BY_HAND.items():
        if any(config.get(each) for each in arguments):
            told(config, note)
    return found
