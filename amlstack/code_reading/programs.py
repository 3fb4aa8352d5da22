"""Programs that a job starts: those that no stand-in brings, and one process for each GPU that the job counts."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from amlstack.code_reading.code_files import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

OF_IMAGES: Final = frozenset(
    (
        *("R", "Rscript", "ant", "azcopy", "bazel", "cmake", "conda", "curl", "dcgmi", "docker", "dotnet", "ffmpeg"),
        *("g++", "gcc", "git", "go", "gradle", "java", "javac", "julia", "make", "mamba", "matlab", "micromamba"),
        *("mvn", "node", "npm", "nsys", "nvcc", "nvidia-smi", "perl", "ruby", "rustc", "sbt", "spark-submit", "tar"),
        *("unzip", "wget", "zip"),
    )
)
"""Programs that images bring and PyPI does not, as far as jobs are known to start them."""
_COMMAND: Final = re.compile(r"nvidia-smi|nproc[_-]per[_-]node[= ](?:gpu|auto)\b")
_COUNTS: Final = re.compile(r"\bdevice_count\s*\(|nvidia-smi")
_STARTS: Final = re.compile(r"\b(?:spawn|start_processes|Process|Popen)\s*\(")
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


def outside_programs(steps: Iterable[Sequence[str]]) -> tuple[Program, ...]:
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


def starts_by_gpu(command: str) -> bool:
    """True where a command asks for as many processes as there are GPUs."""
    return _COMMAND.search(command) is not None


def code_starts_by_gpu(folder: Path, entries: Sequence[str]) -> bool:
    """True where a file of the code counts GPUs and starts processes.

    Args:
        folder: The code folder.
        entries: Scripts that the command starts, relative to it; what they import from it is read, too.
    """
    return any(_COUNTS.search(file.text) and _STARTS.search(file.text) for file in files(folder, entries))
