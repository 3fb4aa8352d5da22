"""Counts that a launcher takes from elsewhere than its words: variables, a configuration file, a node's GPUs.

As `words`, it needs nothing but the standard library: `starting` loads it by its path.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_COUNT = r"^{name}:\s*['\"]?(?P<count>\d+)['\"]?\s*(?:#.*)?$"
_OWN_NODES = frozenset({"hostfile", "H", "include", "i", "num-gpus"})


class CountsElsewhere(NamedTuple):
    """What a launcher is given besides its words.

    Attributes:
        options: Further options, in front of the others: these win over a file and over a default.
        variables: Variables with other values.
        changes: A line for each count that was changed: where it stood, what it was, what it is.
    """

    options: list[str]
    variables: dict[str, str]
    changes: list[str]


def added(
    launcher: str,
    given: Mapping[str, str],
    scale: tuple[int, int],
    environ: Mapping[str, str],
    read: Callable[[str], str],
) -> CountsElsewhere:
    """What a launcher gets, so that no count from elsewhere is higher than a scale.

    Args:
        launcher: Its program's name.
        given: Options among its words, without their dashes, and their values.
        scale: The most nodes, and processes on each.
        environ: Variables of its process.
        read: The text of a file; empty where there is none.
    """
    if launcher == "torchrun":
        return _variables(given, scale, environ)
    if launcher == "accelerate":
        return _configured(given, scale, read)
    if launcher == "deepspeed" and not _OWN_NODES & given.keys():
        return CountsElsewhere(["--num_gpus", str(scale[1])], {}, [f"--num_gpus: all of a node → {scale[1]}"])
    return CountsElsewhere([], {}, [])


def _variables(given: Mapping[str, str], scale: tuple[int, int], environ: Mapping[str, str]) -> CountsElsewhere:
    """Of torchrun, which takes the default of each of its options from a variable."""
    found: dict[str, str] = {}
    changes: list[str] = []
    for name, option, most in (
        ("PET_NNODES", "nnodes", scale[0]),
        ("PET_NPROC_PER_NODE", "nproc-per-node", scale[1]),
    ):
        value = environ.get(name, "")
        if option in given or not value:
            continue
        if value in {"gpu", "auto", "cpu"}:
            used = str(most)
        elif re.fullmatch(r"\d+(?::\d+)?", value):
            used = ":".join(str(min(int(part), most)) for part in value.split(":"))
        else:
            continue
        if used != value:
            found[name] = used
            changes.append(f"{name} {value} → {used}")
    return CountsElsewhere([], found, changes)


def _configured(given: Mapping[str, str], scale: tuple[int, int], read: Callable[[str], str]) -> CountsElsewhere:
    """Accelerate's options win over its file; without a count it starts a process for each GPU."""
    text = read(given["config-file"]) if "config-file" in given else ""
    written = {name: _written(text, name) for name in ("num_machines", "num_processes")}
    options: list[str] = []
    changes: list[str] = []
    nodes = int(given["num-machines"]) if given.get("num-machines", "").isdigit() else written["num_machines"] or 1
    used_nodes = min(nodes, scale[0])
    if "num-machines" not in given and used_nodes != nodes:
        options += ["--num_machines", str(used_nodes)]
        changes.append(f"num_machines of {given['config-file']} {nodes} → {used_nodes}")
    processes = written["num_processes"]
    if "num-processes" in given or "cpu" in given:
        return CountsElsewhere(options, {}, changes)
    per_node = scale[1] if processes is None else min(-(-processes // nodes), scale[1])
    used = used_nodes * per_node
    if used != processes:
        options += ["--num_processes", str(used)]
        where = f"num_processes of {given['config-file']} {processes}" if processes else "--num_processes: all GPUs"
        changes.append(f"{where} → {used}")
    return CountsElsewhere(options, {}, changes)


def _written(text: str, name: str) -> int | None:
    """A count at the top level of a YAML file."""
    found = re.search(_COUNT.format(name=name), text, re.MULTILINE)
    return int(found["count"]) if found is not None and int(found["count"]) > 0 else None
