"""What the runner knows of torchrun, which starts ranks of its own below the service's process."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PER_NODE = re.compile(r"--nproc[-_]per[-_]node[= ]+(\d+)")
# "rank : 3 (local_rank: 1)", then "exitcode : 1 (pid: 123)" in the table that torchrun prints when a rank failed.
_FAILED = re.compile(
    r"rank\s*:\s*(?P<rank>\d+) \(local_rank: (?P<local>\d+)\)\s*\n\s*exitcode\s*:\s*(?P<code>-?\d+) \(pid: \d+\)"
)
TABLE_BYTES = 256 * 1024
"""How far back from the end of a log the table is looked for."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A rank started by torchrun on one node: its own two log files, which the job's folder keeps."""

    rank: int
    local_rank: int
    node: int
    stdout: Path
    stderr: Path


@dataclass(frozen=True, slots=True)
class Failed:
    """A rank that torchrun's table calls failed; a negative code is a signal."""

    rank: int
    local_rank: int
    code: int


def processes_per_node(command: str) -> int | None:
    """``--nproc_per_node`` of a command that calls torchrun; None when there is no number."""
    found = _PER_NODE.search(command)
    return int(found[1]) if found else None


def variables(logs: Path) -> dict[str, str]:
    """Makes torchrun keep a log per rank besides the common one, without touching the command.

    torchrun takes the defaults of its options from PET_*; an option in the command wins over them.
    """
    return {
        "PET_LOG_DIR": str(logs),
        "PET_TEE": "3",
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank ${rank}]:",
        "TORCHELASTIC_ERROR_FILE": str(logs / "error.json"),
    }


def failures(log: str) -> tuple[Failed, ...]:
    """The failed ranks in torchrun's table, the one it saw first in front.

    Args:
        log: The end of a node's log.
    """
    table = log[log.rfind("Root Cause (first observed failure)") :] if "Root Cause (first" in log else ""
    earlier = log[: len(log) - len(table)] if table else ""
    found = [*_FAILED.finditer(table), *_FAILED.finditer(earlier)]
    return tuple(Failed(int(one["rank"]), int(one["local"]), int(one["code"])) for one in found)


def collect(logs: Path, node: int, keep: Path) -> tuple[Worker, ...]:
    """Moves the logs of a node's ranks from torchrun's folders to ``<keep>/rank_NN_{stdout,stderr}.txt``.

    Args:
        logs: What `variables` was given; need not exist.
        node: The node's rank.
        keep: The job's ``user_logs``.

    Returns:
        The ranks found; of a restarted group the last attempt's. Earlier attempts stay where they are.
    """
    attempts = sorted(logs.glob("*/attempt_*"), key=lambda path: path.stat().st_mtime)
    if not attempts:
        return ()
    last = attempts[-1]
    locals_ = sorted(int(path.name) for path in last.iterdir() if path.name.isdigit())
    workers = []
    for local in locals_:
        rank = node * len(locals_) + local
        moved = []
        for stream in ("stdout", "stderr"):
            target = keep / f"rank_{rank:02d}_{stream}.txt"
            source = last / str(local) / f"{stream}.log"
            if source.is_file():
                source.rename(target)
            moved.append(target)
        workers.append(Worker(rank, local, node, *moved))
    if len(attempts) == 1:
        shutil.rmtree(logs, ignore_errors=True)
    return tuple(workers)
