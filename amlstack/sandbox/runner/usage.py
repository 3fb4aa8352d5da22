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
class Rhythm:
    """The times at which samples are taken.

    Attributes:
        began: Monotonic time of the run's begin.
        due: That of the next sample.
    """

    began: float = field(default_factory=time.monotonic)
    due: float = field(default_factory=lambda: time.monotonic() + EVERY)

    def comes(self) -> bool:
        """True where a sample is due; the next one is then set."""
        now = time.monotonic()
        if now < self.due:
            return False
        self.due = now + max(EVERY, (now - self.began) / DENSE)
        return True


@dataclass(slots=True)
class NodeUsage:
    """CPU time and memory of the processes below one agent.

    Attributes:
        agent: Its pid.
        at: Monotonic time of the last sample.
        spent: CPU seconds until then.
    """

    agent: int
    at: float = field(default_factory=time.monotonic)
    spent: float = 0.0

    def sample(self, living: Mapping[int, list[bytes]], gpu: Counter[int] | None) -> str:
        """Cores, bytes and MiB of GPU memory since the last sample, with commas between them.

        Memory is that of each process: what several share counts in each.

        Args:
            living: From pid to the fields of its ``stat``.
            gpu: MiB of GPU memory by pid; None where nobody knows.
        """
        now, below = time.monotonic(), processes.descendants(self.agent, living)
        # Of the agent itself only what it has reaped counts.
        ticks = sum(int(each) for each in living.get(self.agent, [b"0"] * 15)[13:15])
        spent = (ticks + sum(int(each) for pid in below for each in living[pid][11:15])) / _TICKS
        cores = max(0.0, (spent - self.spent) / (now - self.at))
        self.at, self.spent = now, spent
        memory = sum(int(living[pid][21]) for pid in below) * _PAGE
        return f"{cores:.2f},{memory},{sum(gpu[pid] for pid in below) if gpu is not None else ''}"


@dataclass(slots=True)
class Usage:
    """The sampling of one run.

    Attributes:
        file: Where the samples are appended.
        rhythm: When.
        nodes: By number, those that are this machine.
    """

    file: Path
    rhythm: Rhythm = field(default_factory=Rhythm)
    nodes: dict[int, NodeUsage] = field(default_factory=dict)

    def sample(self, agents: Mapping[int, int]) -> None:
        """Takes a sample when it is due of each node of this machine, whose agent's pid is given by node."""
        if not self.rhythm.comes() or not agents:
            return
        living, gpu = processes.living(), gpu_memory()
        for node, agent in agents.items():
            self.write(
                node, time.time(), self.nodes.setdefault(node, NodeUsage(agent, self.rhythm.began)).sample(living, gpu)
            )

    def write(self, node: int, at: float, values: str) -> None:
        """Appends one sample."""
        with contextlib.suppress(OSError), self.file.open("a") as file:  # a full disk ends no job
            file.write(f"{at:.1f},{node},{values}\n")


def gpu_memory() -> Counter[int] | None:
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
