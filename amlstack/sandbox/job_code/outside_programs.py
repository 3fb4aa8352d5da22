"""Programs that a job's command starts and that no stand-in brings: a stand-in holds Python packages."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OF_IMAGES: Final = frozenset(
    (
        *("R", "Rscript", "ant", "azcopy", "bazel", "cmake", "conda", "curl", "dcgmi", "docker", "dotnet", "ffmpeg"),
        *("g++", "gcc", "git", "go", "gradle", "java", "javac", "julia", "make", "mamba", "matlab", "micromamba"),
        *("mvn", "node", "npm", "nsys", "nvcc", "nvidia-smi", "perl", "ruby", "rustc", "sbt", "spark-submit", "tar"),
        *("unzip", "wget", "zip"),
    )
)
"""Programs that images bring and PyPI does not, as far as jobs are known to start them."""
AS_ROOT: Final = frozenset(("sudo", "apt", "apt-get", "yum", "dnf"))
"""Programs that change the machine they run on, which in a rehearsal is this one."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that stops the command.

    Attributes:
        name: Its name.
        changes: It would change this machine; else it is not here.
    """

    name: str
    changes: bool


def programs(steps: Iterable[Sequence[str]]) -> tuple[Program, ...]:
    """The programs of a command that this machine lacks, and those that a rehearsal must not run, each once.

    Args:
        steps: The words of each simple command.
    """
    found: dict[str, Program] = {}
    for words in steps:
        program = next((word for word in words if not re.fullmatch(r"\w+=\S*", word)), "")
        name = program.rsplit("/", 1)[-1]
        if name in AS_ROOT:
            found[name] = Program(name, changes=True)
        elif name in OF_IMAGES and shutil.which(program) is None:
            found[name] = Program(name, changes=False)
    return tuple(found.values())
