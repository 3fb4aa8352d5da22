"""Whether a job starts a process for each GPU that it counts, by its command or by its code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from amlstack.sandbox.job_code.files import files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_COMMAND: Final = re.compile(r"nvidia-smi|nproc[_-]per[_-]node[= ](?:gpu|auto)\b")
_COUNTS: Final = re.compile(r"\bdevice_count\s*\(|nvidia-smi")
_STARTS: Final = re.compile(r"\b(?:spawn|start_processes|Process|Popen)\s*\(")


def by_command(command: str) -> bool:
    """Whether a command asks for as many processes as there are GPUs."""
    return _COMMAND.search(command) is not None


def by_code(folder: Path, entries: Sequence[str]) -> bool:
    """Whether a file of the code counts GPUs and starts processes.

    Args:
        folder: The code folder.
        entries: Scripts that the command starts, relative to it; what they import from it is read, too.
    """
    return any(_COUNTS.search(file.text) and _STARTS.search(file.text) for file in files(folder, entries))
