"""Clusters and jobs by the thousand: our program with all its rules, against bare registrations and plain classes.

The floor registers the resources of our state as `pulumi.CustomResource`, with the same properties, dependencies and
pack; plain are azure-native's generated classes without a pack. The provider behind all takes everything, and gives
back what it was given; no plugin is looked for on the network. Times are by the clock, each once: a turn costs minutes,
and the ratios lie far from their goals. Plain's preview stands for its `up` with nothing to change as well, which takes
a little longer. The engine has the settings of `make up` on all sides. Memory is the highest resident set of the
process, as the kernel has it.

An `up` is measured with 200 resources, as its time grows with the square of their number; `--full` measures 1,000,
which takes a quarter of an hour more, and on 2026-11-22 took 112 s for clusters (0.67 times plain's) and 239 s for jobs
(1.35 times). With fewer resources the state is a smaller part of it, so that a goal reached there is none reached
with 1,000, and is not shown as reached. What has nothing to change was made without checkpoints and is then measured
with them. With `--quick` it is twenty jobs, which shows that all of it works: most of that is the start of processes.

Where the time of an `up` goes: seven eighths of the engine's CPU is its checkpoint. It makes the whole state anew, as
values and twice as JSON, before and after each step, so that a kill at any moment loses nothing; the cost grows with
the square of the number of resources and with what each of them holds. The least that any program could reach is the
`up` of as many resources without a single property. `PULUMI_SKIP_CHECKPOINTS` would end it, and with it the record of
what a killed `up` had begun: this project does not set it. The engine's journal, which writes only what a step changed,
is for Pulumi's own service; a state in files or in a storage account has none.

What the goal of `up` would take: on 2026-11-22 a resource without properties had 417 bytes in the state, a cluster
2,805 and a job 5,600. If the time beyond that of the empty resources grows with the bytes, 2.5 times faster than plain
leaves 1,490 bytes for a cluster and 1,410 for a job. A cluster's inputs, its outputs and what an empty resource has are
1,441 before its first dependency; a job's ARM body alone is 1,285, and it is in the inputs and in the outputs (plain's
job has 758 in each: it declares no fabric). Both are out of reach while the state shows what was declared.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from measure import Row
from memory import peak_of_program
from programs import EMPTY, FLOOR, JOBS, PLAIN

from amlstack import engine
from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from contextlib import AbstractContextManager

UPS = 200
QUICK = 20
SKIP_CHECKPOINTS = "PULUMI_SKIP_CHECKPOINTS"
AT_MOST = 1.2
MEMORY = 1.5
CLUSTERS_OF_JOBS = 20
ID = "11111111-1111-1111-1111-111111111111"


def run(*, quick: bool, full: bool = False) -> Iterator[Row]:
    """Clusters, jobs over twenty clusters, and ten times as many jobs; with `quick` a few jobs alone.

    Args:
        quick: Few resources.
        full: Each `up` with as many resources as a preview.
    """
    sys.path.insert(0, str(PROJECT))
    count = QUICK if quick else 1000
    ups = count if full or quick else UPS
    with _Bench.open() as bench:
        empty = bench.empty(ups)
        for what in ("jobs",) if quick else ("clusters", "jobs"):
            few = yield from bench.against(what, count, empty if ups == count else None)
            if ups != count:
                yield from bench.ups(what, ups, count, empty)
        if not quick:
            yield from bench.of_many(count, few, 10 * count)


@dataclass(frozen=True, slots=True)
class _Bench:
    folder: Path
    environ: dict[str, str]
    engine: engine.Engine
    stacks: Any

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[_Bench]:
        from tests.support.harness import Stack  # noqa: PLC0415 - reached by the path that `run` adds
        from tests.support.policies.accepting_provider import attached  # noqa: PLC0415

        with tempfile.TemporaryDirectory() as folder, attached() as provider:
            # A program is compiled once and its bytecode kept, as on any machine.
            environ = {**provider.environ, "PYTHONDONTWRITEBYTECODE": ""}
            yield cls(Path(folder), environ, engine.find(), Stack)

    @property
    def pack(self) -> tuple[str, str]:
        from tests.support.harness import ANALYZER  # noqa: PLC0415

        return ("--policy-pack", str(ANALYZER))

    def empty(self, count: int) -> float:
        """Seconds of an `up` of resources that have nothing but a name, under our pack."""
        with self.stack(EMPTY.format(count=count)) as stack:
            return _seconds(stack, "up", *self.pack)

    def against(self, what: str, count: int, empty: float | None) -> Generator[Row, None, float]:
        """Rows of what changes nothing, ours against the floor and plain; seconds of our preview.

        Args:
            what: Clusters or jobs.
            count: How many of them.
            empty: Seconds of an `up` of as many resources without properties, for the rows of ours that makes all; None
                where fewer resources stand for these, and the `up` before the one of no change need not write its state
                after each step.
        """
        clusters, jobs = _sizes(what, count)
        name = f"{count:,} {what}"
        with self.ours(clusters, jobs) as deployed, self.ours(clusters, jobs) as ours:
            if empty is None:
                deployed.env[SKIP_CHECKPOINTS] = "1"
            up = _seconds(deployed, "up", *self.pack)
            deployed.env.pop(SKIP_CHECKPOINTS, None)
            again = _seconds(deployed, "up", *self.pack)
            with self.floor(deployed) as floor:
                ours_took = _seconds(ours, "preview", *self.pack)
                floor_took = _seconds(floor, "preview", *self.pack)
        yield _at_most(f"preview of {name}", ours_took, "bare CustomResource, same pack", floor_took)
        with self.plain(clusters, jobs) as plain:
            plain_took = _seconds(plain, "preview")
            yield _faster(f"preview of {name}", ours_took, plain_took, 3)
            yield _faster(f"up of {name}, nothing to change", again, plain_took, 3)
            if empty is not None:
                yield from _making(name, up, _seconds(plain, "up"), empty)
        return ours_took

    def ups(self, what: str, count: int, asked: int, empty: float) -> Iterator[Row]:
        """Rows of an `up` that makes all, ours against plain and resources without properties.

        Args:
            what: Clusters or jobs.
            count: How many of them.
            asked: How many of them the goal is about; with fewer it can be missed and not reached.
            empty: Seconds of an `up` of as many resources without properties.
        """
        clusters, jobs = _sizes(what, count)
        with self.ours(clusters, jobs) as ours:
            took = _seconds(ours, "up", *self.pack)
        with self.plain(clusters, jobs) as plain:
            plain_took = _seconds(plain, "up")
        for row in _making(f"{count:,} {what}", took, plain_took, empty):
            short = f"{row.goal} with {asked:,}: `--full` measures it"
            yield replace(row, goal=short, met=None) if row.met else row

    def of_many(self, few: int, took: float, many: int) -> Iterator[Row]:
        """Rows of a preview of many jobs: per job, and the memory that it takes.

        Args:
            few: As many jobs took the preview beside the floor.
            took: Its seconds.
            many: Jobs.
        """
        with self.ours(CLUSTERS_OF_JOBS, many) as stack, peak_of_program(stack.env["PULUMI_HOME"]) as peaks:
            seconds = _seconds(stack, "preview", *self.pack)
        yield _at_most(f"preview of {many:,} jobs, per job", seconds / many, f"of {few:,} jobs", took / few)
        words = f"below {MEMORY} (the pack's is with its benchmark)"
        yield Row(f"memory of the program, {many:,} jobs", peaks[0], "GB", goal=words, met=peaks[0] < MEMORY)

    @contextmanager
    def ours(self, clusters: int, jobs: int) -> Iterator[Any]:
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            stack = self.stacks.of_project(folder / "stack", self.engine.folders, env=self.environ)
            names = [f"c{i:05}" for i in range(clusters)]
            # Short: the engine hands the configuration to the program in one variable, of 128 KiB at most on Linux.
            cluster = {"size": "Standard_ND96isr_H100_v5", "nodes": {"max": 2}, "identity": "system"}
            config: dict[str, Any] = {
                "azure-native:subscriptionId": ID,
                "azure-native:tenantId": ID,
                "amlstack:location": "westeurope",
                "amlstack:workspace": "ws-bench",
                "amlstack:assign_roles": False,
                "amlstack:clusters": [{"name": name, **cluster} for name in names],
            }
            if jobs:
                (folder / "src").mkdir()
                (folder / "src" / "train.py").write_text("print('trained')\n")
                (folder / "jobs.py").write_text(JOBS.format(clusters=clusters, count=jobs))
                config["amlstack:jobs"] = [str(folder / "jobs.py")]
            stack.settings.write_text(yaml.safe_dump({"config": config}))
            yield stack
            stack.close()

    @contextmanager
    def floor(self, deployed: Any) -> Iterator[Any]:
        kept = [
            {"name": one["urn"].split("::")[-1], "dependencies": [], "inputs": {}, **one}
            for one in deployed.state()["resources"]
            if one.get("custom") and not one["type"].startswith("pulumi:")
        ]
        with self.stack(FLOOR) as stack:
            stack.write("resources.json", json.dumps(kept))
            yield stack

    def plain(self, clusters: int, jobs: int) -> AbstractContextManager[Any]:
        return self.stack(PLAIN.format(clusters=clusters, jobs=jobs))

    @contextmanager
    def stack(self, program: str) -> Iterator[Any]:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            stack = self.stacks(program, Path(folder) / "stack", self.engine.folders, env=self.environ)
            yield stack
            stack.close()


def _sizes(what: str, count: int) -> tuple[int, int]:
    """Clusters and jobs."""
    return (count, 0) if what == "clusters" else (CLUSTERS_OF_JOBS, count)


def _at_most(what: str, ours: float, anchor: str, theirs: float) -> Row:
    return Row(what, ours, "s", anchor, theirs, f"at most {AT_MOST} times", ours <= AT_MOST * theirs)


def _faster(what: str, ours: float, theirs: float, goal: float) -> Row:
    words = f"at least {goal} times faster (now {theirs / ours:.2f})"
    return Row(what, ours, "s", "azure-native's classes, no pack", theirs, words, ours * goal <= theirs)


def _making(name: str, ours: float, plain: float, empty: float) -> Iterator[Row]:
    """Rows of an `up` that makes all: the goal's, and how far it is from the least."""
    count = name.partition(" ")[0]
    yield _faster(f"up of {name}", ours, plain, 2.5)
    yield Row(f"up of {name}", ours, "s", f"{count} resources without properties, same pack", empty)


def _seconds(stack: Any, verb: str, *words: str) -> float:
    start = time.monotonic()
    more = ("--yes", "--skip-preview") if verb == "up" else ()
    stack.pulumi(verb, *more, *words).ok()
    return time.monotonic() - start
