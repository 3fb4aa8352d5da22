"""Requirements of a rehearsal on this machine, obstacles, and properties that it does not prove."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal.inputs import Data, rehearsal_workspace, within
from amlstack.code_reading.code_files import text_of
from amlstack.code_reading.shell import scripts
from amlstack.sandbox.orchestration.pipeline_body import STEP_TYPES
from amlstack.snapshot import walk
from jobs.planning.job_checks import PLACEHOLDER

if TYPE_CHECKING:
    import jobs
    from amlstack.cli.rehearsal.scale import Extent
    from amlstack.images.environments import EnvironmentAnswer

State = Literal["ready", "later", "blocks", "note"]
"""``ready``: it is here. ``later``: the rehearsal brings it. ``blocks``: it cannot be had. ``note``: worth knowing."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that a rehearsal needs, or that is in its way.

    Attributes:
        about: ``environment``, ``data``, ``compute``, ``GPU``, ``MPI``, ``size``, ``disk``, ``ports``, ``sandbox``,
            ``steps``, ``programs``, ``internet``, ``Slurm``.
        state: What will become of it.
        text: One sentence or less.
        remedy: What to do about what is in the way; empty for nothing.
        places: Parts of the job that it is about; none for the whole.
        file: Where the reason is written, when that is a file.
        line: In that file, from 1.
        ignorable: ``--force`` starts the rehearsal all the same.
    """

    about: str
    state: State
    text: str
    remedy: str = ""
    places: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    ignorable: bool = False

    @property
    def spot(self) -> str:
        """``file:line`` as far as it is known."""
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The answer for one job, sweep or pipeline.

    Attributes:
        name: As its file names it.
        aspects: What was looked at.
        unproven: What a rehearsal will say nothing about.
    """

    name: str
    aspects: tuple[Aspect, ...]
    unproven: tuple[str, ...] = ()

    @property
    def blocking(self) -> tuple[Aspect, ...]:
        """The aspects that prevent a rehearsal."""
        return tuple(each for each in self.aspects if each.state == "blocks")

    @property
    def possible(self) -> bool:
        """True where nothing blocks the rehearsal."""
        return not self.blocking

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        aspects = [asdict(each) for each in self.aspects]
        return {"name": self.name, "possible": self.possible, "aspects": aspects, "unproven": list(self.unproven)}


def merged(aspects: Iterable[Aspect]) -> tuple[Aspect, ...]:
    """Equal aspects of several parts as one, with the places of all."""
    found: dict[Aspect, tuple[str, ...]] = {}
    for each in aspects:
        key = replace(each, places=())
        found[key] = (*found.get(key, ()), *(place for place in each.places if place))
    return tuple(replace(each, places=places) for each, places in found.items())


def stored_properties(resource: str) -> Mapping[str, Any] | None:
    """The properties of a resource of the sandbox by its ARM id; None where it is not there."""
    from amlstack.sandbox.store.database import StateError
    from amlstack.sandbox.store.folders import folder
    from amlstack.sandbox.store.store import Store

    if not (folder(paths.home()) / "state.db").is_file():
        return None
    try:
        with closing(Store(paths.home())) as store:
            row = store.resources.get(resource)
    except StateError:
        return None
    return None if row is None else row.body.get("properties", {})


def asset_file(kind: str, reference: str, folder: Path) -> str:
    """The file near a job's that declares the asset which a reference names, from the job's folder; empty for none.

    Args:
        kind: How its schema is called.
        reference: ``azureml:NAME``, with a version or label.
        folder: The job file's.
    """
    name = re.split("[:@]", reference.removeprefix("azureml:"), maxsplit=1)[0]
    named = re.compile(rf"^name:[ \t]*[\"']?{re.escape(name)}[\"']?\s*(?:#.*)?$", re.MULTILINE)
    files = [
        file for up in (folder, folder.parent) for kinds in ("*.y*ml", "*/*.y*ml") for file in sorted(up.glob(kinds))
    ]
    texts = ((file, text_of(file) or "") for file in files[:200])
    found = (file for file, text in texts if f"{kind}.schema.json" in text and named.search(text))
    return next((os.path.relpath(file, folder) for file in found), "")


def step_aspects(steps: Mapping[str, Any], given: Collection[str], folder: Path, above: str = "") -> Iterator[Aspect]:
    """Yield the obstacles of each step of a pipeline.

    Args:
        steps: Its steps.
        given: Steps that are not run, as their outputs are given.
        folder: The job file's.
        above: The place of the step that they are in.
    """
    for name, step in steps.items():
        place, runs = f"{above}jobs.{name}", step.runs
        if within(place.removeprefix("jobs."), given):
            continue
        if step.kind not in STEP_TYPES:
            text = f"the step is of the type `{step.kind}`, and a rehearsal runs {', '.join(STEP_TYPES)} steps"
            yield Aspect("steps", "blocks", text, "Rehearse the other steps' jobs alone.", (place,))
        elif isinstance(runs, str) and not _is_stored(runs):
            text = f"`{runs}` is a component of a workspace or registry, of which this machine knows nothing"
            near = asset_file("Component", runs, folder)
            remedy = f"Write `component: file:{near}`, which declares it." if near else "Name the component's file."
            yield Aspect("steps", "blocks", text, remedy, (place,))
        else:
            yield from step_aspects(step.steps, given, folder, f"{place}.")


def _is_stored(component: str) -> bool:
    name, _, version = component.removeprefix("azureml:").partition(":")
    return stored_properties(f"{rehearsal_workspace()}/components/{name}/versions/{version}") is not None


UNPACKED = 2.1
"""Bytes on disk of an environment for each byte of its download: PyTorch's has 6.9 GB of 3.3 GB."""


def size_aspects(parts: Sequence[Extent], *, yes: bool, here: bool = True) -> Iterator[Aspect]:
    """Ranks, here against cores and memory; what a rehearsal would ask about is in the way unless it was agreed to."""
    for part in parts:
        yield Aspect("size", "ready", f"{scales.shown(part)} (nodes × ranks)")
    if not here:
        return
    reason = scales.too_large(parts)
    if not reason:
        most = max((part.processes for part in parts), default=0)
        free, cores = scales.free_memory(), len(os.sched_getaffinity(0))
        memory = "" if free is None else f", {free / 2**30:.1f} GiB of memory free"
        yield Aspect("size", "ready", f"{most} at once on {cores} core{'' if cores == 1 else 's'}{memory}")
        return
    nodes, ranks = scales.proposed(parts)
    remedy = f"Give -j {nodes}x{ranks} for fewer, or --yes for all of them."
    yield Aspect("size", "note" if yes else "blocks", reason, "" if yes else remedy)


def disk_aspects(code: int, answers: Sequence[EnvironmentAnswer]) -> Iterator[Aspect]:
    """Copies of the code and environments to be built against what is free.

    Args:
        code: Bytes of all copies of the code.
        answers: What becomes of the environments.
    """
    distinct = {each.standin.key: each for each in answers if each.standin is not None and each.state == "build"}
    environments = int(sum(each.download_mb for each in distinct.values()) * 1_000_000 * UNPACKED)
    needs = {paths.home(): code, paths.cache(): environments}
    by_device: dict[int, list[tuple[Path, int]]] = {}
    for folder, needed in needs.items():
        there = _existing(folder)
        by_device.setdefault(there.stat().st_dev, []).append((there, needed))
    for needs_there in by_device.values():
        there, needed = needs_there[0][0], sum(needed for _, needed in needs_there)
        free = shutil.disk_usage(there).free
        if needed > free:
            text = f"about {walk.shown(needed)} are needed, and {walk.shown(free)} are free at {there}"
            remedy = "Make room there, or move it with AMLSTACK_HOME and AMLSTACK_CACHE."
            yield Aspect("disk", "blocks", text, remedy, ignorable=True)
        elif needed:
            yield Aspect("disk", "ready", f"about {walk.shown(needed)} of {walk.shown(free)} free at {there}")


def sandbox_aspects() -> Iterator[Aspect]:
    """The home, which must be a sandbox's own, and the server, which a rehearsal starts unless it runs."""
    from amlstack.sandbox.server import daemon

    home = paths.home()
    try:
        homes.check(home)
    except homes.ForeignHomeError as error:
        yield Aspect("sandbox", "blocks", str(error))
        return
    if not os.access(_existing(home), os.W_OK):
        yield Aspect("sandbox", "blocks", f"{home} cannot be written", "Name another folder by AMLSTACK_HOME.")
    elif (endpoint := daemon.find(home)) is not None:
        yield Aspect("sandbox", "ready", f"runs as process {endpoint.pid}")
    else:
        yield Aspect("sandbox", "later", "does not run; the rehearsal starts it on a free port")


def _existing(folder: Path) -> Path:
    """The folder, or the next one above it that is there."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def cluster_aspects(place: str, part: jobs.Plan) -> Iterator[Aspect]:
    """Yield the cluster that a part names, where that is a placeholder: no cluster can be made under such a name."""
    if PLACEHOLDER.search(name := part.target.cluster or ""):
        remedy = "Write the name of a cluster, or `serverless`."
        yield Aspect("compute", "blocks", f"`{name}` is a placeholder, and no cluster has that name", remedy, (place,))


def port_aspects(place: str, part: jobs.Plan) -> Iterator[Aspect]:
    """Each port that a part's variables, command or scripts name, and whether a program listens on it now."""
    from amlstack.sandbox.runner import fixed_ports

    if (folder := scales.code_folder(part)) is None:
        return
    enriched = part.enriched
    kind = getattr(getattr(enriched.launcher, "distribution", None), "type", None)
    for port in fixed_ports.ports(enriched.command, kind, enriched.environment_variables, folder):
        if _is_listened_on(port):
            text = f"{port} is fixed by the job, and a program of this machine listens on it"
            yield Aspect("ports", "note", f"{text}: the ranks cannot, as long as it runs", "", (place,))
        else:
            text = f"{port} is fixed by the job: rehearsals that fix the same one run one after the other"
            yield Aspect("ports", "ready", text, "", (place,))


def _is_listened_on(port: int) -> bool:
    """True where a program of this machine listens on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


_REDUCED = re.compile(r"\b(?:bf16|fp16|fp8|bfloat16|float16|float8\w*|autocast|GradScaler)\b")


def unproven(
    plan: jobs.Planned, parts: Sequence[Extent], data: Data, *, gpu: bool, shim: bool = True, here: bool = True
) -> Iterator[str]:
    """A sentence for each.

    Args:
        plan: The plan.
        parts: What is started of it.
        data: What it is given in place of what it declares.
        gpu: Whether the machines have a GPU.
        shim: Whether ordinary GPU calls are carried to the CPU.
        here: Whether all nodes are this machine.
    """
    scaled = tuple(each for each in scales.unproven(parts) if here or not gpu or each != scales.ON_GPUS)
    yield from scaled
    sizes = [part.target.facts for part in plan.parts.values()]
    if not gpu and not scaled and any(size is None or size.gpus for size in sizes):
        yield scales.ON_GPUS
    if here and any(extent.started[0] * extent.started[1] > 1 for extent in parts):
        yield "the fabric: ranks talk over this machine's loopback, without InfiniBand"
    words = {word for part in plan.parts.values() for word in _reduced(part)}
    if words and not gpu:
        how = "fp16 and autocast are computed in single precision" if shim else "it is a CPU's, where it has one"
        yield f"reduced precision ({', '.join(sorted(words))}): {how}"
    if own := {f"`{each.declared.named}`" for each in data.stand_ins.values() if each.own is not None}:
        yield f"the environment {', '.join(sorted(own))}: rehearsal.toml says what stands in for it"
    if data.given:
        yield f"{', '.join(f'`{step}`' for step in sorted(data.given))}: not run, as what they write is given"


def _reduced(part: jobs.Plan) -> Iterator[str]:
    """Words for reduced precision in the command, its inputs and the scripts that it starts."""
    yield from _REDUCED.findall(part.enriched.command)
    yield from (word for value in part.enriched.inputs.values() for word in _REDUCED.findall(str(value)))
    if (folder := scales.code_folder(part)) is not None:
        for script in scripts(part.enriched.command):
            yield from _REDUCED.findall(text_of(folder / script) or "")
