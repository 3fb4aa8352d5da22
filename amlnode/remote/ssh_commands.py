"""The command lines of ssh and pdsh, as far as launchers write them; pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlnode.errors import NodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
