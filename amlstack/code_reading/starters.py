"""Programs that start ranks (torchrun, accelerate, deepspeed, mpirun): their words, and the counts in them scaled down.

``python -I -S starters.py NODESxRANKS DECLARED_NODES PROGRAM WORDS…`` becomes PROGRAM, its counts scaled down.
It names each change on standard error, and needs nothing but the standard library. A job's own scripts may call a
launcher with counts out of variables: the words are looked at where they are final, in the process that they start.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Starter(NamedTuple):
    """The words of one program that starts ranks. Options are written without dashes, with `-` for `_`.

    Attributes:
        modules: Modules by which `python -m` starts it.
        nodes: Options for the number of nodes.
        ranks: Options for the processes of one node.
        total: Options for the processes of all nodes.
        port: The port that it takes when none is given; 0 where it finds a free one.
        verb: The word before its options; empty for none.
    """

    modules: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    total: tuple[str, ...] = ()
    port: int = 0
    verb: str = ""


_MPIRUN = Starter(ranks=("npernode", "N", "ppn", "perhost"), total=("n", "np", "c"))
STARTERS = {
    "torchrun": Starter(("torch.distributed.run", "torch.distributed.launch"), ("nnodes",), ("nproc-per-node",)),
    "accelerate": Starter(
        ("accelerate.commands.launch",), ("num-machines",), total=("num-processes",), port=29500, verb="launch"
    ),
    "deepspeed": Starter(("deepspeed.launcher.runner",), ("num-nodes",), ("num-gpus",), port=29500),
    "mpirun": _MPIRUN,
    "mpiexec": _MPIRUN,
    "horovodrun": Starter(total=("np", "num-proc")),
    "amlnode": Starter(("amlnode",), ("nnodes",), ("nproc", "nproc-per-node")),
}
"""Programs that start ranks: all that reads or scales their words asks this table."""
MODULES = {module: name for name, starter in STARTERS.items() for module in starter.modules}
"""Starters by the modules that `python -m` runs."""
PROGRAMS = (*(name for name in STARTERS if name not in MODULES), "python", "python3")
"""Programs whose words may start ranks."""

_FLAGS = frozenset(
    {
        *("standalone", "m", "module", "no-python", "use-env", "run-path", "virtual-local-rank"),  # torchrun
        *("multi-gpu", "cpu", "use-cpu", "use-deepspeed", "use-fsdp", "use-megatron-lm", "debug", "quiet", "q", "tpu"),
        *("no-local-rank", "force-multi", "enable-each-rank-log", "save-pid", "bind-cores-to-rank"),  # deepspeed
        *("allow-run-as-root", "oversubscribe", "report-bindings", "tag-output", "display-map", "v", "verbose"),
        *("leave-session-attached", "display-allocation", "timestamp-output", "no-python", "same-network"),
        *("no-ssh", "no-ssh-check", "disable-cache", "gloo", "mpi", "enable-cpu-affinity", "downcast-bf16"),
        *("dynamo-use-fullgraph", "dynamo-use-dynamic", "dynamo-use-regional-compilation", "use-parallelism-config"),
    }
)
"""Options without a value; after any other the next word is its value."""
MODES = frozenset({"multi-gpu", "cpu", "use-cpu", "tpu", "use-deepspeed", "use-fsdp", "use-megatron-lm"})
"""Flags by which accelerate is told how to start processes."""
_BY_DEVICES = frozenset({"gpu", "auto", "cpu"})
"""Values of torchrun that count devices."""
_OF_TWO_VALUES = frozenset({"mca", "gmca", "prtemca", "pmixmca", "genv"})


MAY_START = re.compile(
    r"torchrun|torch\.distributed|accelerate|deepspeed|mpirun|mpiexec|horovodrun|MASTER_ADDR=|num[-_]nodes|devices|\.sh\b"
)
"""Words of a command or script without which it starts no ranks, in a script of its own either."""


class ScaledCount(NamedTuple):
    """A count that was changed: the option, the value in the command, the value that is used."""

    option: str
    written: str
    used: str

    def __str__(self) -> str:
        """As it is logged."""
        return f"{self.option} {self.written} → {self.used}"


class Counts(NamedTuple):
    """The most nodes and processes per node, and the nodes that the job declares."""

    nodes: int
    ranks: int
    declared: int


def scaled(program: str, words: list[str], counts: Counts) -> tuple[list[str], list[ScaledCount]]:
    """The words that follow a program, their counts no higher than the scale, with what was changed.

    Args:
        program: Its name, without a folder.
        words: What follows it.
        counts: The scale.
    """
    launcher, at = launch_of(program, words)
    if launcher in STARTERS:
        done, changes = _launcher(words[at:], STARTERS[launcher], counts)
        return [*words[:at], *done], changes
    return _lightning(words, counts) if program.startswith("python") and not at else (words, [])


def per_node(program: str, words: list[str], nodes: int) -> int | None:
    """Processes that a starter starts on each of a job's nodes by its own words; None where they name no number."""
    launcher, at = launch_of(program, words)
    return counted_per_node(launcher, given_options(words[at:]), nodes)


def counted_per_node(launcher: str, given: Mapping[str, str], nodes: int | None) -> int | None:
    """Processes that a launcher starts on each of a number of nodes by its options; None where it is not known."""
    starter = STARTERS.get(launcher, Starter())
    if found := re.search(r"\bppr:(\d+):node\b", given.get("map-by", "")):
        return int(found[1])
    for name in (*starter.ranks, *starter.total):
        if given.get(name, "").isdigit():
            count = int(given[name])
            return count if name in starter.ranks else math.ceil(count / nodes) if nodes else None
    return None


def _launcher(words: list[str], starter: Starter, counts: Counts) -> tuple[list[str], list[ScaledCount]]:
    """Changes the launcher's own options alone: what follows the script is the script's."""
    given = given_options(words)
    result, changes = list(words), list[ScaledCount]()
    for name, word, at in _options(words):
        option, equals, value = word.partition("=")
        before = value if equals else words[at]
        after = _used(starter, name, before, counts, given)
        if after != before:
            result[at] = f"{option}={after}" if equals else after
            changes.append(ScaledCount(option, before, after))
    return result, changes


def walked(words: list[str]) -> tuple[list[tuple[str, str, int]], int]:
    """Each option before the first positional word: its name, its word, where its value stands (-1 for a flag).

    And where the positional words begin.
    """
    found = []
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name = words[at].partition("=")[0].lstrip("-").replace("_", "-")
        if "=" in words[at]:
            found.append((name, words[at], at))
        elif name in _OF_TWO_VALUES:
            at += 2
        elif name in _FLAGS:
            found.append((name, words[at], -1))
        else:
            at += 1
            if at < len(words):
                found.append((name, words[at - 1], at))
        at += 1
    return found, at


def _options(words: list[str]) -> list[tuple[str, str, int]]:
    return [option for option in walked(words)[0] if option[2] >= 0]


def _least(value: str, most: int) -> str:
    """A number no higher than ``most``; of a range (``4:16``) both ends; other text as it is."""
    if not re.fullmatch(r"\d+(?::\d+)?", value):
        return value
    return ":".join(str(min(int(part), most)) for part in value.split(":"))


def _used(starter: Starter, option: str, value: str, counts: Counts, given: Mapping[str, str]) -> str:
    """The value that an option gets; ``gpu`` and ``auto`` count devices, and this machine's are not the cluster's."""
    if option in starter.nodes:
        return _least(value, counts.nodes)
    if option in starter.ranks:
        return str(counts.ranks) if value in _BY_DEVICES else _least(value, counts.ranks)
    if option in starter.total and starter.nodes:
        return _total_of_machines(value, counts, given)
    if option in starter.total:
        return _least(value, min(counts.nodes, counts.declared) * counts.ranks)
    if option == "map-by":
        return re.sub(r"\bppr:(\d+):node\b", lambda found: f"ppr:{_least(found[1], counts.ranks)}:node", value)
    return value


def _total_of_machines(value: str, counts: Counts, given: Mapping[str, str]) -> str:
    machines = given.get("num-machines", "1")
    if not value.isdigit() or not machines.isdigit() or int(machines) < 1:
        return value
    per_machine = min(math.ceil(int(value) / int(machines)), counts.ranks)
    return str(min(int(value), min(int(machines), counts.nodes) * per_machine))


_TRAINER = r"--(?:trainer\.)?(?P<name>num[_-]nodes|devices)(?:=(?P<value>\d+))?"


def _lightning(words: list[str], counts: Counts) -> tuple[list[str], list[ScaledCount]]:
    """The Trainer's ``num_nodes`` and ``devices``, where the first of them is the job's own count of nodes.

    They are arguments of the author's script, and any other script's may have such a name: only a pair is taken.
    """
    found: dict[str, tuple[int, str, str]] = {}
    for at, word in enumerate(words):
        if match := re.fullmatch(_TRAINER, word):
            follows = words[at + 1] if at + 1 < len(words) else ""
            value, place = (match["value"], at) if match["value"] else (follows, at + 1)
            if value.isdigit():
                found[match["name"].replace("-", "_")] = (place, word.partition("=")[0], value)
    if found.keys() != {"num_nodes", "devices"} or int(found["num_nodes"][2]) != counts.declared:
        return words, []
    result, changes = list(words), list[ScaledCount]()
    for name, most in (("num_nodes", counts.nodes), ("devices", counts.ranks)):
        at, option, before = found[name]
        after = _least(before, most)
        if after != before:
            result[at] = after if words[at] == before else f"{option}={after}"
            changes.append(ScaledCount(option, before, after))
    return result, changes


def trainer_options(words: list[str]) -> dict[str, str]:
    """The Trainer's ``devices`` and ``num-nodes`` among a script's arguments; empty where they may be another's."""
    found: dict[str, str] = {}
    named = False
    for at, word in enumerate(words):
        if match := re.fullmatch(_TRAINER, word.partition("=")[0]):
            name, equals, value = word.partition("=")
            named |= name.startswith("--trainer.")
            found[match["name"].replace("_", "-")] = value if equals else "".join(words[at + 1 : at + 2])
    return found if named or found.keys() == {"devices", "num-nodes"} else {}


def launch_of(program: str, words: list[str]) -> tuple[str, int]:
    """The launcher that a program is by its words (empty for none), and where its own options begin."""
    if not program.startswith("python"):
        verb = STARTERS.get(program, Starter()).verb
        return (program, 1 if verb else 0) if words[:1] == [verb] or not verb else ("", 0)
    at = words.index("-m") if "-m" in words[:-1] and all(w.startswith("-") for w in words[: words.index("-m")]) else -1
    return (MODULES.get(words[at + 1], ""), at + 2) if at >= 0 else ("", 0)


def given_options(words: list[str]) -> dict[str, str]:
    """Options before the first positional word without their dashes, and their values; a flag's is empty."""
    found = walked(words)[0]
    return {name: "" if at < 0 else word.partition("=")[2] if "=" in word else words[at] for name, word, at in found}


_COUNT = r"^{name}:\s*['\"]?(?P<count>\d+)['\"]?\s*(?:#.*)?$"
_OWN_NODES = frozenset({"hostfile", "H", "include", "i", "num-gpus"})


class CountsElsewhere(NamedTuple):
    """The options and variables that a launcher is given besides its words.

    Attributes:
        options: Further options, in front of the others: these win over a file and over a default.
        variables: Variables with other values.
        changes: A line for each count that was changed: where it stood, what it was, what it is.
    """

    options: list[str]
    variables: dict[str, str]
    changes: list[str]


def counts_elsewhere(
    launcher: str, given: Mapping[str, str], counts: Counts, environ: Mapping[str, str], read: Callable[[str], str]
) -> CountsElsewhere:
    """Return what a launcher gets, so that no count from elsewhere is higher than a scale.

    Args:
        launcher: Its program's name.
        given: Options among its words, without their dashes, and their values.
        counts: The scale.
        environ: Variables of its process.
        read: The text of a file; empty where there is none.
    """
    if launcher == "torchrun":
        return _variables(given, counts, environ)
    if launcher == "accelerate":
        return _configured(given, counts, read)
    if launcher == "deepspeed" and not _OWN_NODES & given.keys():
        return CountsElsewhere(["--num_gpus", str(counts.ranks)], {}, [f"--num_gpus: all of a node → {counts.ranks}"])
    return CountsElsewhere([], {}, [])


def _variables(given: Mapping[str, str], counts: Counts, environ: Mapping[str, str]) -> CountsElsewhere:
    """Of torchrun, which takes the default of each of its options from a variable."""
    found: dict[str, str] = {}
    changes: list[str] = []
    for name, option, most in (
        ("PET_NNODES", "nnodes", counts.nodes),
        ("PET_NPROC_PER_NODE", "nproc-per-node", counts.ranks),
    ):
        value = environ.get(name, "")
        if option in given or not value:
            continue
        used = str(most) if value in _BY_DEVICES else _least(value, most)
        if used != value:
            found[name] = used
            changes.append(f"{name} {value} → {used}")
    return CountsElsewhere([], found, changes)


def _configured(given: Mapping[str, str], counts: Counts, read: Callable[[str], str]) -> CountsElsewhere:
    """Accelerate's options win over its file; without a count it starts a process for each GPU."""
    text = read(given["config-file"]) if "config-file" in given else ""
    written = {name: _written(text, name) for name in ("num_machines", "num_processes")}
    options: list[str] = []
    changes: list[str] = []
    nodes = int(given["num-machines"]) if given.get("num-machines", "").isdigit() else written["num_machines"] or 1
    used_nodes = min(nodes, counts.nodes)
    if "num-machines" not in given and used_nodes != nodes:
        options += ["--num_machines", str(used_nodes)]
        changes.append(f"num_machines of {given['config-file']} {nodes} → {used_nodes}")
    processes = written["num_processes"]
    total = given.get("num-processes", "")
    if total or "cpu" in given:
        used = int(text_used) if (text_used := _total_of_machines(total, counts, given)).isdigit() else 0
    else:
        used = used_nodes * (counts.ranks if processes is None else min(-(-processes // nodes), counts.ranks))
        if used != processes:
            options += ["--num_processes", str(used)]
            where = f"num_processes of {given['config-file']} {processes}" if processes else "--num_processes: all GPUs"
            changes.append(f"{where} → {used}")
    if used > 1 and not text and not MODES & given.keys():
        options.append("--multi_gpu")
        changes.append("without --multi_gpu → --multi_gpu, which accelerate takes by itself where it sees several GPUs")
    return CountsElsewhere(options, {}, changes)


def _written(text: str, name: str) -> int | None:
    """A count at the top level of a YAML file."""
    found = re.search(_COUNT.format(name=name), text, re.MULTILINE)
    return int(found["count"]) if found is not None and int(found["count"]) > 0 else None


def main(scale: str, declared: str, program: str, rest: list[str]) -> None:
    """Becomes the program."""
    nodes, ranks = (int(part) for part in scale.split("x"))
    counts = Counts(nodes, ranks, int(declared))
    name = os.path.basename(program)  # noqa: PTH119 - this process starts with every Python of a rank: no pathlib
    launcher, at = launch_of(name, rest)
    beside = counts_elsewhere(launcher, given_options(rest[at:]), counts, os.environ, _text_of)
    result, changes = scaled(name, rest, counts)
    result[at:at] = beside.options
    for change in (*changes, *beside.changes):
        sys.stderr.write(f"amlstack: rehearsed as {scale}: {name} {change}\n")
    sys.stderr.flush()
    os.execve(program, [program, *result], {**os.environ, **beside.variables})  # noqa: S606 - words are handed on as they are


def _text_of(path: str) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
            return file.read()
    except (OSError, ValueError):
        return ""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
