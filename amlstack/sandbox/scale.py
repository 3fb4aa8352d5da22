"""The scale of a rehearsal: fewer nodes and ranks, and the wrappers that start them."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amlstack.code_reading import starters

__all__ = ["QUERY", "RehearsalScale"]

QUERY: Final = "amlstack-scale"
"""Query parameter of a job's PUT by which `amlstack rehearse` hands the scale over, and header of the answer."""

_TEXT = re.compile(r"(?P<nodes>[1-9]\d{0,3})x(?P<ranks>[1-9]\d{0,3})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RehearsalScale:
    """A limit, never a demand: a job that declares fewer nodes or processes keeps its own counts.

    Attributes:
        nodes: The most nodes.
        ranks: The most processes on each.
    """

    nodes: int
    ranks: int

    @classmethod
    def read(cls, text: str) -> RehearsalScale | None:
        """The scale that is written as ``NODESxRANKS``; None for any other text."""
        found = _TEXT.fullmatch(text.strip())
        return None if found is None else cls(int(found["nodes"]), int(found["ranks"]))

    def __str__(self) -> str:
        """``NODESxRANKS``."""
        return f"{self.nodes}x{self.ranks}"

    def workers(self, count: int, nodes: int) -> int:
        """The number of TensorFlow's workers, declared for so many nodes, that are started."""
        return min(count, min(nodes, self.nodes) * min(math.ceil(count / nodes), self.ranks))


FOLDER = "scaled-launchers"
_PYTHON = """\
#!/bin/sh
case " $* " in {modules}|*num[-_]nodes*devices*|*devices*num[-_]nodes*) exec {scaling} {program} "$@";; esac
exec {program} "$@"
"""
_LAUNCHER = '#!/bin/sh\nexec {scaling} {program} "$@"\n'


def write(folder: Path, path: str, scale: RehearsalScale, declared: int) -> str:
    """Writes a wrapper for each launcher that is on a PATH.

    Args:
        folder: The job's temporary folder.
        path: PATH of the job's processes.
        scale: What the counts are scaled to.
        declared: Nodes that the job declares.

    Returns:
        PATH with the wrappers first.
    """
    made = folder / FOLDER
    made.mkdir(exist_ok=True)
    scaling = shlex.join([sys.executable, "-I", "-S", starters.__file__, str(scale), str(declared)])
    modules = "|".join(f'*" -m {module} "*' for module in starters.MODULES)
    for name in starters.PROGRAMS:
        found = shutil.which(name, path=path)
        if found is None:
            continue
        text = _PYTHON if name.startswith("python") else _LAUNCHER
        wrapper = made / name
        # Most calls of Python start no launcher, and go on at once; what looks like one is read exactly by `starters`.
        wrapper.write_text(text.format(scaling=scaling, program=shlex.quote(found), modules=modules))
        wrapper.chmod(0o700)
    return f"{made}:{path}"
