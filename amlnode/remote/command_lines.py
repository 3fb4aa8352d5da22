"""Command lines of ssh, pdsh and DeepSpeed, as far as launchers write them. Pure functions."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlnode.rank import NodeError

# Options of each that take a value.
_SSH = "BbcDEeFIiJLlmOopQRSWw"
_PDSH = "wxfltucRMF"
_PLACE = re.compile(r"%([nh%])")


@dataclass(frozen=True)
class RemoteCommand:
    """A command line of ssh or pdsh.

    Attributes:
        hosts: Where to run it, in the order of the command line.
        command: A shell command; never empty: there is no shell to type into.
        worst: Whether the exit code is the largest of the nodes', as `pdsh -S` and ssh have it; else 0.
        named: Whether lines begin with the node's name, as pdsh's do.
    """

    hosts: tuple[str, ...]
    command: str
    worst: bool
    named: bool

    def on(self, host: str) -> str:
        """The command for one of the hosts: pdsh puts the host's place and name into it."""
        if not self.named:
            return self.command
        known = {"n": str(self.hosts.index(host)), "h": host, "%": "%"}
        return _PLACE.sub(lambda found: known[found[1]], self.command)


def parse(program: str, words: Sequence[str]) -> RemoteCommand:
    """Read a command line.

    Args:
        program: ``ssh`` or ``pdsh``.
        words: What follows its name.

    Raises:
        NodeError: There is no host or no command in it.
    """
    named = program == "pdsh"
    values = _PDSH if named else _SSH
    hosts, worst, left = "", not named, list(words)
    while left and left[0].startswith("-") and left[0] != "-":
        option = left.pop(0)
        if option == "--":
            break
        worst = worst or option == "-S"
        if option[1] in values:
            value = option[2:] or (left.pop(0) if left else "")
            hosts = value if named and option[1] == "w" else hosts
    if not named and left:
        hosts = left.pop(0).rpartition("@")[2]
    found = tuple(host for host in hosts.split(",") if host)
    if not found or not left:
        line = shlex.join([program, *words])
        raise NodeError(
            f"`{line}` names no {'command' if found else 'node'}",
            f"This {program} replaces the real one between a job's nodes, and only runs commands",
            f"Write `{program} {'-w node-0,node-1' if named else 'node-1'} COMMAND`.",
        )
    return RemoteCommand(found, " ".join(left), worst, named)


def pkill_pattern(command: str) -> str | None:
    """The pattern of a ``pkill -f PATTERN``, by which launchers clean up; None for any other command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return " ".join(words[2:]) if words[:2] == ["pkill", "-f"] and len(words) > 2 else None


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own options, which come first, and DeepSpeed's command line."""
    end = 0
    while end < len(words) and words[end].split("=")[0] in ("--nproc", "--wait", "--port", "-h", "--help"):
        end += 1 if "=" in words[end] or words[end].startswith("-h") or words[end] == "--help" else 2
    return list(words[:end]), list(words[end:])


def tuned(words: Sequence[str]) -> tuple[str, list[str]]:
    """DeepSpeed's command line without ``--autotuning``, and what that was: tune or run."""
    left, mode = list(words), "tune"
    for place, word in enumerate(left):
        if word.split("=")[0] == "--autotuning":
            mode = word.partition("=")[2] or left[place + 1]
            del left[place : place + (1 if "=" in word else 2)]
            break
    return mode, left


def configured(words: Sequence[str], config: dict[str, Any]) -> list[str]:
    """A command line with another configuration, which goes along in it: other nodes have no such file."""
    place, _ = _config(words)
    if place is None:
        return list(words)
    text = base64.urlsafe_b64encode(json.dumps(config).encode()).decode()
    option, equals, _ = words[place].partition("=")
    return [*words[:place], f"{option}={text}" if equals else text, *words[place + 1 :]]


def results_folder(words: Sequence[str]) -> Path:
    """The tuner's folder: the configuration names it, else it is DeepSpeed's own."""
    folder = None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        folder = json.loads(Path(_config(words)[1]).read_text()).get("autotuning", {}).get("results_dir")
    return Path(folder or "autotuning_results")


def _config(words: Sequence[str]) -> tuple[int | None, str]:
    """The place of the configuration's file in a command line, and its path."""
    for option in ("--deepspeed_config", "--deepspeed"):
        for place, word in enumerate(words):
            if word.startswith(f"{option}=") and word.endswith(".json"):
                return place, word.partition("=")[2]
            if word == option and place + 1 < len(words) and words[place + 1].endswith(".json"):
                return place + 1, words[place + 1]
    return None, ""
