"""Stack settings out of the clusters and workspaces that a program of SDK v1 makes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.base.text import iso
from amlstack.migrate.data import text
from amlstack.migrate.values import Made, Unread, known

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NETWORK = ("vnet_resourcegroup_name", "vnet_name", "subnet_name")
_LOGIN = ("admin_username", "admin_user_password", "admin_user_ssh_key")


def settings_of(made: Sequence[Made], told: Callable[..., None]) -> dict[str, Any]:
    """The configuration of a stack; empty where the programs make no cluster and no workspace."""
    clusters: dict[str, dict[str, Any]] = {}
    used: list[Made] = []
    for each in made:
        if each.fields.get("_row") in ("ComputeTarget.create", "AmlCompute.create"):
            config = each.get("provisioning_configuration")
            if isinstance(config, Made) and config.kind == "AmlCompute.provisioning_configuration":
                used.append(config)
                cluster = _cluster(text(each.get("name") or Unread("name", each.file, each.line)), config, told)
                if clusters.setdefault(cluster["name"], cluster) != cluster:
                    said = f"`{cluster['name']}` is made in several ways; the first counts"
                    told(each, "ComputeTarget.create", "hand", said, "Mend the cluster in the settings.")
    for each in made:
        if each.kind == "AmlCompute.provisioning_configuration" and not any(each is config for config in used):
            name = str(Unread("name", each.file, each.line))
            clusters.setdefault(name, _cluster(name, each, told))
    workspace = next((each for each in made if each.kind == "Workspace.create"), None)
    if not clusters and workspace is None:
        return {}
    place = workspace or Made("")
    first = next((each for each in made if each.kind == "AmlCompute.provisioning_configuration"), place)
    found = {
        "amlstack:location": text(place.get("location") or Unread("location", first.file, first.line)),
        "amlstack:workspace": text(place.get("name") or Unread("workspace", first.file, first.line)),
        "amlstack:clusters": [*clusters.values()],
    }
    return {"config": {key: value for key, value in found.items() if value}}


def _cluster(name: str, config: Made, told: Callable[..., None]) -> dict[str, Any]:
    from amlstack.catalog import clock, sizes  # noqa: PLC0415 - most programs make no cluster

    size = config.get("vm_size")
    if not size or not known(size):
        size = text(size or Unread("vm_size", config.file, config.line))
    else:
        listed = sizes.get(size)
        spelled = size if "_" in size else f"Standard_{size}"
        size = listed.name if listed is not None else spelled
        if listed is not None and listed.retired_on(clock.today()):
            other = sizes.nearest_open(listed, clock.today())
            said = "this size is retired" + (f"; the nearest is {other.name}" if other else "")
            told(config, size, "hand", said, "Name a size of today in the settings: `amlstack sizes`.")
    most, least, idle = config.get("max_nodes"), config.get("min_nodes"), config.get("idle_seconds_before_scaledown")
    nodes = {"min": least if isinstance(least, int) else text(least) if least is not None else 0,
             "max": most if isinstance(most, int) else text(most) if most is not None else 4,
             "idle": iso(idle) if isinstance(idle, int) else text(idle) if idle is not None else "PT30M"}  # fmt: skip
    found: dict[str, Any] = {"name": re.sub(r"_", "-", name) if known(name) else name, "size": size, "nodes": nodes}
    if found["name"] != name:
        told(config, name, "hand", f"a cluster's name has no `_`: `{found['name']}`", "Name it so in the jobs, too.")
    if text(config.get("vm_priority") or "").lower() == "lowpriority":
        found["priority"] = "LowPriority"
    if isinstance(tags := config.get("tags"), dict):
        found["tags"] = {text(key): text(value) for key, value in tags.items()}
    if any(config.get(each) for each in _NETWORK):
        told(config, "subnet_name", "hand", "the cluster lies in a network of one's own",
             "Write `subnet: /subscriptions/…/virtualNetworks/VNET/subnets/SUBNET`.")  # fmt: skip
    if any(config.get(each) for each in _LOGIN):
        told(
            config, "admin_username", "hand", "people log in to the nodes", "Write `ssh: {user: NAME, public_key: …}`."
        )
    if config.get("identity_type"):
        told(
            config,
            "identity_type",
            "hand",
            "the cluster has an identity of its own",
            "Write `identity:` (docs/explanation/identities.md).",
        )
    return found
