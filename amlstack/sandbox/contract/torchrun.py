"""torchrun as the runner sees it: it starts ranks of its own below the service's process."""

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
_PREFIX = re.compile(r"^\[rank (\d+)\]: ", re.MULTILINE)
LEFT = ("stdout.log", "stderr.log", "error.json")
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


def variables(logs: Path, error: Path, port: int) -> dict[str, str]:
    """Makes torchrun keep a log per rank besides the common one, and meet on a free port, without touching the command.

    torchrun takes the defaults of its options from PET_*; an option in the command wins over them.

    Args:
        logs: Folder for the ranks' logs while they run.
        error: Where a process whose main function is decorated with torch's ``record`` leaves its exception.
        port: Where it meets without another choice: its own default is the same for every job.
    """
    return {
        "PET_LOG_DIR": str(logs),
        "PET_MASTER_PORT": str(port),
        "PET_TEE": "3",
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank ${rank}]: ",
        "TORCHELASTIC_ERROR_FILE": str(error),
    }


def failures(log: str) -> tuple[Failed, ...]:
    """The failed ranks in torchrun's table, the one it saw first in front.

    Args:
        log: The end of a node's log.
    """
    earlier, _, table = log.rpartition("Root Cause (first observed failure)")
    found = [*_FAILED.finditer(table), *_FAILED.finditer(earlier)]
    return tuple(Failed(int(one["rank"]), int(one["local"]), int(one["code"])) for one in found)


def collect(logs: Path, node: int, keep: Path, log: str) -> tuple[Worker, ...]:
    """Moves what the ranks of a node left in torchrun's folders to ``<keep>/rank_NN_{stdout,stderr}.txt``.

    Args:
        logs: What `variables` was given; need not exist.
        node: The node's number.
        keep: The job's ``user_logs``.
        log: Text of the node's common log.

    Returns:
        The ranks found; of a restarted group the last attempt's. Earlier attempts stay where they are.
    """
    attempts = sorted(logs.glob("*/attempt_*"), key=lambda path: path.stat().st_mtime)
    if not attempts:
        return ()
    last = attempts[-1]
    numbers = sorted(int(path.name) for path in last.iterdir() if path.name.isdigit())
    group = _group(log, len(numbers), node)
    workers = []
    for local in numbers:
        rank = group * len(numbers) + local
        left = last / str(local)
        goals = {name: keep / f"rank_{rank:02d}_{name.replace('.log', '.txt')}" for name in LEFT}
        for name, goal in goals.items():
            if (left / name).is_file():
                (left / name).rename(goal)
        workers.append(Worker(rank, local, node, goals["stdout.log"], goals["stderr.log"]))
    if len(attempts) == 1:
        shutil.rmtree(logs, ignore_errors=True)
    return tuple(workers)


def _group(log: str, size: int, node: int) -> int:
    """The rank of a node among the nodes: its number, unless a c10d rendezvous has dealt the ranks otherwise."""
    found = _PREFIX.search(log)
    failed = failures(log)
    rank = int(found[1]) if found else (failed[0].rank if failed else None)
    return node if rank is None or not size else rank // size
