"""Samples of what the nodes of a run use, read from /proc, as lines of ``usage.csv`` in the job's folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.sandbox import processes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "usage.csv"
"""Seconds since the epoch, node, cores in use, bytes of memory, MiB of GPU memory (empty where that is not known)."""
EVERY, DENSE = 2.0, 200.0
"""Seconds between two samples; after so many samples they become rarer, so that a run of days leaves a small file."""
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Usage:
    """The sampling of one run.

    Attributes:
        file: Where the samples are appended.
        began: Monotonic time of the run's begin.
        due: That of the next sample.
        last: That of the last one, and the CPU seconds until then, by node.
    """

    file: Path
    began: float = field(default_factory=time.monotonic)
    due: float = field(default_factory=lambda: time.monotonic() + EVERY)
    last: dict[int, tuple[float, float]] = field(default_factory=dict)

    def sample(self, agents: Mapping[int, int]) -> None:
        """Takes a sample when it is due: the processes below each node's agent, whose pid is given by node.

        Memory is that of each process: what several share counts in each.
        """
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + max(EVERY, (now - self.began) / DENSE)
        living, gpu = processes.living(), _gpu_memory()
        with contextlib.suppress(OSError), self.file.open("a") as file:  # a full disk ends no job
            for node, agent in agents.items():
                below = processes.descendants(agent, living)
                # Of the agent itself only what it has reaped counts.
                ticks = sum(int(each) for each in living.get(agent, [b"0"] * 15)[13:15])
                ticks += sum(int(each) for pid in below for each in living[pid][11:15])
                then, spent = self.last.get(node, (self.began, 0.0))
                self.last[node] = now, ticks / _TICKS
                cores = max(0.0, (ticks / _TICKS - spent) / (now - then))
                memory = sum(int(living[pid][21]) for pid in below) * _PAGE
                on_gpu = sum(gpu[pid] for pid in below) if gpu is not None else ""
                file.write(f"{time.time():.1f},{node},{cores:.2f},{memory},{on_gpu}\n")


def _gpu_memory() -> Counter[int] | None:
    """MiB by process, as nvidia-smi tells it; None where there is none that does."""
    if shutil.which("nvidia-smi") is None:
        return None
    words = ["nvidia-smi", "--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=EVERY, check=True)
        found: Counter[int] = Counter()
        for line in done.stdout.splitlines():
            pid, _, used = line.partition(",")
            found[int(pid)] += int(used)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return found
