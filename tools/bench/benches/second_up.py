"""Wall-clock seconds of a `make up` that has nothing to do, and of `pulumi up --yes` of the same stack by hand.

The stack is the one of `make up`, on a sandbox of its own, and its job has ended. By hand means the variables that
`amlstack sandbox env` prints and no policy pack; `make up` judges with the pack. Each has run once before; with
`--quick` by hand alone. The two then run in turns of who goes first; the ratio is the median of the pairs' ratios. Both
keep bytecode. CPU seconds are those of a command and all that it starts.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROJECT = Path(__file__).resolve().parents[3]
PAIRS = 3
MOST, LONGEST = 1.0, 8.0
OURS = ["make", "--no-print-directory", "up", "YES=1"]
BY_HAND = ["pulumi", "up", "--yes", "--non-interactive", "--stack", "sandbox"]
AMLSTACK = [sys.executable, "-m", "amlstack.cli.main"]


@dataclass(frozen=True, slots=True)
class Taken:
    """What one command took, in seconds."""

    wall: float
    cpu: float


def run(*, quick: bool) -> Iterator[Row]:
    """Deploy the stack once, then time both with nothing to do."""
    with _stack(trained=not quick) as (ours, by_hand):
        turns = (lambda: _second(OURS, ours, "nothing to change"), lambda: _second(BY_HAND, by_hand, "unchanged"))
        pairs: list[tuple[Taken, Taken]] = []
        # With `quick` ours has not run yet, and goes second, when by hand has left bytecode and caches behind.
        for number in (1,) if quick else range(PAIRS):
            if number % 2:
                theirs = turns[1]()
                pairs.append((turns[0](), theirs))
            else:
                pairs.append((turns[0](), turns[1]()))
            print(f"{pairs[-1][0].wall:.1f} s against {pairs[-1][1].wall:.1f} s", file=sys.stderr, flush=True)
    ratios = sorted(ours.wall / theirs.wall for ours, theirs in pairs)
    middle = statistics.median(ratios)
    mine, hand = (statistics.median(one.wall for one in column) for column in zip(*pairs, strict=True))
    spread = f"now {middle:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}, {len(pairs)} pairs)"
    what, anchor = "second `make up`, nothing to do", "`pulumi up --yes` by hand"
    goal = f"at most {MOST} times as long, {spread}, and at most {LONGEST:.0f} s when quiet"
    yield Row(what, mine, "s", anchor, hand, goal, middle <= MOST and mine <= LONGEST)
    mine, hand = (statistics.median(one.cpu for one in column) for column in zip(*pairs, strict=True))
    yield Row(f"{what}: CPU", mine, "s", anchor, hand)


@contextmanager
def _stack(*, trained: bool) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """The stack of `make up` on a home of its own; the environments of `make up`, and of plain Pulumi.

    Args:
        trained: Whether its job is trained to the end, as by a first `make up`; else it is cancelled, which is quicker
            and leaves the same to be looked at.
    """
    with ExitStack() as held:
        home = held.enter_context(tempfile.TemporaryDirectory())
        # A shell that forbids keeping bytecode would have every start compile what nobody else has to.
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environ |= {"AMLSTACK_HOME": home}
        held.callback(_run, [*AMLSTACK, "down", "--yes"], environ)
        plain = {**environ, **_variables(environ)}
        if trained:
            _run(OURS, environ)
        else:
            _run([*BY_HAND, "--skip-preview"], plain)
            _run([*AMLSTACK, "cancel", "ddp-torchrun"], environ)
        yield environ, plain


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What a shell has after ``eval "$(amlstack sandbox env)"``."""
    command = ["bash", "-c", 'eval "$("$0" -m amlstack.cli.main sandbox env)" && env -0', sys.executable]
    done = subprocess.run(command, cwd=PROJECT, env=dict(environ), capture_output=True, text=True, check=True)
    return dict(word.split("=", 1) for word in done.stdout.split("\0") if "=" in word)


def _second(words: list[str], environ: Mapping[str, str], sign: str) -> Taken:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=PROJECT, env=dict(environ), capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    # By its words, not by its status: that of `make up` is also the status of the run, which may have been cancelled.
    if sign not in done.stdout:
        message = f"{' '.join(words)} did something:\n{done.stdout}{done.stderr}"
        raise RuntimeError(message)
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _run(words: list[str], environ: Mapping[str, str]) -> None:
    done = subprocess.run(words, cwd=PROJECT, env=dict(environ), capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        raise RuntimeError(message)
