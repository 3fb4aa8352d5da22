"""The counts in the words of torchrun, accelerate, deepspeed, mpirun and Lightning, each brought down to a scale.

It needs nothing but the standard library: `starting` loads it by its path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
ACCELERATE_MODULES = ("accelerate.commands.launch",)
MODULES = {
    **dict.fromkeys(TORCHRUN_MODULES, "torchrun"),
    **dict.fromkeys(ACCELERATE_MODULES, "accelerate"),
    "deepspeed.launcher.runner": "deepspeed",
    "amlnode": "amlnode",
}
"""Launchers that `python -m` starts."""

PROGRAMS = ("torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun", "python", "python3")
"""Programs before whose words this one is put."""

_FLAGS = frozenset(
    {
        *("standalone", "m", "module", "no-python", "use-env", "run-path", "virtual-local-rank"),  # torchrun
        *("multi-gpu", "cpu", "use-cpu", "use-deepspeed", "use-fsdp", "use-megatron-lm", "debug", "quiet", "q", "tpu"),
        *("no-local-rank", "force-multi", "enable-each-rank-log", "save-pid", "bind-cores-to-rank"),  # deepspeed
        *("allow-run-as-root", "oversubscribe", "report-bindings", "tag-output", "display-map", "v", "verbose"),
        *("leave-session-attached", "display-allocation", "timestamp-output", "no-python", "same-network"),
    }
)
"""Options without a value; after any other the next word is its value."""
_OF_TWO_VALUES = frozenset({"mca", "gmca", "prtemca", "pmixmca"})


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


Rule = Callable[[str, Counts, "dict[str, str]"], str]


def scaled(program: str, words: list[str], counts: Counts) -> tuple[list[str], list[ScaledCount]]:
    """The words that follow a program, their counts no higher than the scale, with what was changed.

    Args:
        program: Its name, without a folder.
        words: What follows it.
        counts: The scale.
    """
    if program.startswith("python"):
        return _python(words, counts)
    if program == "accelerate":
        if words[:1] != ["launch"]:
            return words, []
        rest, changes = _launcher(words[1:], _RULES["accelerate"], counts)
        return ["launch", *rest], changes
    return _launcher(words, _RULES.get(program, {}), counts)


def per_node(program: str, words: list[str], nodes: int) -> int | None:
    """Processes that a launcher starts on each of a job's nodes by its own words; None where they name no number."""
    if program.startswith("python"):
        if words[:1] == ["-u"]:
            words = words[1:]
        if len(words) < 2 or words[0] != "-m" or words[1] not in MODULES:
            return None
        program, words = MODULES[words[1]], words[2:]
    elif program == "accelerate":
        words = words[1:]
    given = given_options(words)
    found = next((given[name] for name in _PER_NODE.get(program, ()) if name in given), "")
    if not found.isdigit():
        return None
    return math.ceil(int(found) / nodes) if program in _IN_ALL else int(found)


def _python(words: list[str], counts: Counts) -> tuple[list[str], list[ScaledCount]]:
    if "-m" in words and (at := words.index("-m")) + 1 < len(words) and all(w.startswith("-") for w in words[:at]):
        head, name, rest = words[: at + 2], words[at + 1], words[at + 2 :]
        launcher = MODULES.get(name)
        if launcher is None:
            return words, []
        done, changes = _launcher(rest, _RULES[launcher], counts)
        return [*head, *done], changes
    return _lightning(words, counts)


def _launcher(words: list[str], rules: dict[str, Rule], counts: Counts) -> tuple[list[str], list[ScaledCount]]:
    """Changes the launcher's own options alone: what follows the script is the script's."""
    given = given_options(words)
    result, changes = list(words), list[ScaledCount]()
    for name, word, at in _options(words):
        rule = rules.get(name)
        if rule is None:
            continue
        option, equals, value = word.partition("=")
        before = value if equals else words[at]
        after = rule(before, counts, given)
        if after != before:
            result[at] = f"{option}={after}" if equals else after
            changes.append(ScaledCount(option, before, after))
    return result, changes


def _options(words: list[str]) -> list[tuple[str, str, int]]:
    """Each option with a value before the first positional word: its name, its word, where the value stands."""
    found = []
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name = words[at].partition("=")[0].lstrip("-").replace("_", "-")
        if "=" in words[at]:
            found.append((name, words[at], at))
        elif name in _OF_TWO_VALUES:
            at += 2
        elif name not in _FLAGS:
            at += 1
            if at < len(words):
                found.append((name, words[at - 1], at))
        at += 1
    return found


def _least(value: str, most: int) -> str:
    """A number no higher than ``most``; of a range (``4:16``) both ends; other text as it is."""
    if not re.fullmatch(r"\d+(?::\d+)?", value):
        return value
    return ":".join(str(min(int(part), most)) for part in value.split(":"))


def _nodes(value: str, counts: Counts, given: dict[str, str]) -> str:
    del given
    return _least(value, counts.nodes)


def _ranks(value: str, counts: Counts, given: dict[str, str]) -> str:
    """Ranks per node; ``gpu`` and ``auto`` count devices, and this machine's are not the cluster's."""
    del given
    return str(counts.ranks) if value in {"gpu", "auto", "cpu"} else _least(value, counts.ranks)


def _total(value: str, counts: Counts, given: dict[str, str]) -> str:
    del given
    return _least(value, min(counts.nodes, counts.declared) * counts.ranks)


def _accelerate_total(value: str, counts: Counts, given: dict[str, str]) -> str:
    machines = given.get("num-machines", "1")
    if not value.isdigit() or not machines.isdigit() or int(machines) < 1:
        return value
    per_machine = min(math.ceil(int(value) / int(machines)), counts.ranks)
    return str(min(int(value), min(int(machines), counts.nodes) * per_machine))


def _mapped(value: str, counts: Counts, given: dict[str, str]) -> str:
    del given
    return re.sub(r"\bppr:(\d+):node\b", lambda found: f"ppr:{_least(found[1], counts.ranks)}:node", value)


_MPIRUN: dict[str, Rule] = {
    **dict.fromkeys(("n", "np", "c"), _total),
    **dict.fromkeys(("npernode", "N"), _ranks),
    "map-by": _mapped,
}
_RULES: dict[str, dict[str, Rule]] = {
    "torchrun": {"nnodes": _nodes, "nproc-per-node": _ranks},
    "accelerate": {"num-machines": _nodes, "num-processes": _accelerate_total},
    "deepspeed": {"num-nodes": _nodes, "num-gpus": _ranks},
    "mpirun": _MPIRUN,
    "mpiexec": _MPIRUN,
    "horovodrun": {"np": _total, "num-proc": _total},
    "amlnode": {"nproc": _ranks, "nproc-per-node": _ranks, "nnodes": _nodes},
}

_PER_NODE = {
    "torchrun": ("nproc-per-node",),
    "accelerate": ("num-processes",),
    "deepspeed": ("num-gpus",),
    "mpirun": ("n", "np", "c"),
    "mpiexec": ("n", "np", "c"),
    "horovodrun": ("np", "num-proc"),
    "amlnode": ("nproc", "nproc-per-node"),
}
_IN_ALL = frozenset({"accelerate", "mpirun", "mpiexec", "horovodrun"})
"""Launchers whose count is that of all nodes."""

_TRAINER = re.compile(r"--(?:trainer\.)?(?P<name>num[_-]nodes|devices)(?:=(?P<value>\d+))?")


def _lightning(words: list[str], counts: Counts) -> tuple[list[str], list[ScaledCount]]:
    """The Trainer's ``num_nodes`` and ``devices``, where the first of them is the job's own count of nodes.

    They are arguments of the author's script, and any other script's may have such a name: only a pair is taken.
    """
    found: dict[str, tuple[int, str, str]] = {}
    for at, word in enumerate(words):
        if match := _TRAINER.fullmatch(word):
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


def launch_of(program: str, words: list[str]) -> tuple[str, int]:
    """The launcher that a program is by its words (empty for none), and where its own options begin."""
    if program == "accelerate":
        return ("accelerate", 1) if words[:1] == ["launch"] else ("", 0)
    if not program.startswith("python"):
        return program, 0
    at = words.index("-m") if "-m" in words[:-1] and all(w.startswith("-") for w in words[: words.index("-m")]) else -1
    return (MODULES.get(words[at + 1], ""), at + 2) if at >= 0 else ("", 0)


def given_options(words: list[str]) -> dict[str, str]:
    """Options with a value before the first positional word, without their dashes."""
    return {name: words[at] if "=" not in word else word.partition("=")[2] for name, word, at in _options(words)}
