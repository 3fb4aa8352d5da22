"""The environment in which a job's GPU calls run on the CPU, on a machine without a GPU for them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.base import paths
from amlstack.code_reading.code_files import texts
from amlstack.sandbox.store.places import job_folder, private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.store.store import JobRow, Store

LINE: Final = "GPU calls run on the CPU: nccl → gloo; fp16/bf16, memory and speed stay unproven"
"""What is printed once for a job whose code or command speaks of GPUs."""
LIBRARIES: Final = {"DS_ACCELERATOR": "cpu", "ACCELERATE_USE_CPU": "true"}
"""How DeepSpeed and Accelerate are asked for the CPU; a job's own variables win."""
WHERE: Final = "AMLSTACK_SANDBOX_ON_CPU"
"""Variable with the folder from which a Python that was built here imports `amlcpu` at its start."""
GPUS: Final = "AMLSTACK_SANDBOX_GPUS"
"""Variable with the number of GPUs that a node is taken to have."""
_ROOT: Final = paths.PROJECT
_OFF: Final = "no-shim"
_START: Final = "amlcpu.pth"
# One line, as such files have it; without the variable it costs a look into a dictionary.
_PTH: Final = (
    f'import os, sys; p = os.environ.get("{WHERE}"); p and sys.path.insert(0, p); p and __import__("amlcpu"); '
    "p and sys.path.remove(p)\n"
)
_WORDS: Final = re.compile(r"cuda|nccl|\bgpus?\b|\bfp16\b|\bbf16\b|float16|autocast", re.IGNORECASE)
_SUFFIXES: Final = frozenset({".py", ".sh", ".json", ".yaml", ".yml", ".toml"})


@dataclass(frozen=True, slots=True)
class Carrying:
    """The way in which GPU calls are carried to the CPU in one job.

    Attributes:
        defaults: Variables that the job may override.
        fixed: Variables that it may not.
        python: Folder that must be first on PYTHONPATH; empty where the job's Python starts the shim by itself.
    """

    defaults: dict[str, str]
    fixed: dict[str, str]
    python: str = ""

    def apply(self, declared: Mapping[str, str]) -> dict[str, str]:
        """The variables that come on top of the job's own."""
        path = os.pathsep.join(part for part in (self.python, declared.get("PYTHONPATH", "")) if part)
        given = {name: value for name, value in self.defaults.items() if name not in declared}
        return {**given, **({"PYTHONPATH": path} if self.python else {}), **self.fixed}

    def line(self, declared: Mapping[str, str]) -> str:
        """The text that is printed once for a job, with the variables that it is given."""
        given = [f"{name}={value}" for name, value in self.defaults.items() if name not in declared]
        return f"{LINE} ({', '.join(given)})" if given else LINE


def carrying(built: Path, gpus: int) -> Carrying:
    """For the Python of an environment.

    Args:
        built: Folder of the environment. One that was built here gets a file by which its Python starts the shim,
            whatever a command does to PYTHONPATH; any other is left as it is.
        gpus: GPUs that a node is taken to have.
    """
    python = "" if _starts(built) else str(_ROOT / "amlcpu" / "start")
    return Carrying(dict(LIBRARIES), {GPUS: str(gpus), WHERE: str(_ROOT)}, python)


def programs(folder: Path, path: str) -> str:
    """Writes a stand-in for nvidia-smi, unless the machine has one; PATH with it.

    Args:
        folder: The job's temporary folder.
        path: PATH of the job's processes.
    """
    if shutil.which("nvidia-smi", path=path) is not None:
        return path
    made = folder / "gpu-programs"
    made.mkdir(exist_ok=True)
    program = made / "nvidia-smi"
    line = shlex.join([sys.executable, "-I", "-S", str(Path(__file__).with_name("nvidia_smi.py"))])
    program.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
    program.chmod(0o700)
    return f"{path}:{made}"


def mentioned(folder: Path, command: str) -> bool:
    """True where a job's command or a file of its code speaks of GPUs, NCCL or half precision."""
    return any(_WORDS.search(text) for text in chain((command,), texts(folder, _SUFFIXES)))


def keep_off(home: Path, job: str) -> None:
    """Notes that a job which is about to be submitted runs as it is, with `--no-shim`."""
    (private(job_folder(home, job)) / _OFF).touch()


def is_off(store: Store, job: JobRow) -> bool:
    """True where a job runs as it is; trials and steps as the outermost job."""
    above = store.family.above(job.id)
    return (job_folder(store.home, above[-1] if above else job.id) / _OFF).is_file()


def _starts(built: Path) -> bool:
    """True where the environment's Python starts the shim by itself: written into it where it is one of ours."""
    if not built.is_relative_to(paths.cache()):
        return False
    found = False
    for site in built.glob("lib/python3*/site-packages"):
        file = site / _START
        try:
            if not file.is_file() or file.read_text() != _PTH:
                part = site / f".{_START}.{os.getpid()}"
                part.write_text(_PTH)
                part.replace(file)
        except OSError:
            return False
        found = True
    return found
