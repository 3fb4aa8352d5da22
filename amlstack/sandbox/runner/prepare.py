"""Everything before the first process: the environment, a folder per node, code, inputs, outputs, the node plans."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack import images
from amlstack.base.files import write_whole
from amlstack.sandbox import gpu_code
from amlstack.sandbox.data.datastore_places import output_uri
from amlstack.sandbox.runner import free_ports, pip_layer
from amlstack.sandbox.runner.contract import expressions, launch, tracking
from amlstack.sandbox.runner.contract.spec import RefusedError
from amlstack.sandbox.runner.contract.variables import LOGS, environ, gpus_here, replaced, torchrun_logs
from amlstack.sandbox.runner.files import (
    environments,
    inputs,
    namespace,
    node_data,
    parallel_driver,
    substitutes,
    temporary_folder,
)
from amlstack.sandbox.runner.files.storage import Location, Storage
from amlstack.sandbox.runner.mpi import mpirun
from amlstack.sandbox.runner.node_agent import NodePlan, RankProcess
from amlstack.sandbox.scheduling import quota
from amlstack.sandbox.store.store import cluster_of, job_folder

__all__ = ["LOGS", "Stage", "Upload", "image", "stage", "torchrun_logs"]

STAND_IN = "stand-in.json"
"""Read by `amlstack.diagnose`."""

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amlstack.catalog.sizes import Size
    from amlstack.sandbox.runner.contract.spec import Spec
    from amlstack.sandbox.store.store import JobRow, Store


@dataclass(frozen=True, slots=True)
class Upload:
    """An output that is collected from the nodes at the end: its node folders, and where it goes."""

    name: str
    sources: tuple[Path, ...]
    place: Location


@dataclass(frozen=True, slots=True)
class Stage:
    """A prepared job.

    Attributes:
        folder: The job's folder.
        plans: Of the nodes, by node, each with the file that shows it.
        places: Every process that the service starts.
        uploads: Outputs to collect.
        mounts: Folders mounted for writing, by output.
        replaced: Job variables and shared memory overridden on one machine: name → (declared, used); an empty ``used``
            means dropped.
        image: Folder of the environment.
    """

    folder: Path
    plans: tuple[tuple[Path, NodePlan], ...]
    places: tuple[launch.RankPlace, ...]
    uploads: tuple[Upload, ...]
    mounts: dict[str, tuple[Path, Location]]
    replaced: dict[str, tuple[str, str]]
    image: Path


def image(store: Store, job: JobRow, spec: Spec) -> images.StandIn:
    """The stand-in for the job's environment; for an MPI job with an Open MPI of its own where the machine has none.

    Raises:
        RefusedError: It has none.
    """
    given = environments.of(store, job)
    try:
        declared = given.declared if given is not None else _declared(store, spec)
        standin = given.standin if given is not None else images.standin_of(declared)
    except images.UNREADABLE as error:
        raise RefusedError(str(error), "SandboxUnsupported") from None
    if spec.distribution == "Mpi" and mpirun.is_brought(declared.image):
        return images.with_openmpi(standin, declared.image)
    return standin


def write_stand_in(store: Store, job: JobRow, spec: Spec, standin: images.StandIn) -> None:
    """Notes in the job's folder what its environment lacks of the image, for a diagnosis of its logs."""
    given = environments.of(store, job)
    named = given.declared.named if given is not None else spec.environment
    known = images.for_diagnosis(standin, named)
    write_whole(job_folder(store.home, job.id) / STAND_IN, json.dumps(known, indent=1) + "\n")


def _declared(store: Store, spec: Spec) -> images.Declared:
    if not spec.environment.startswith("/"):
        return images.Declared(spec.environment)
    resource = store.resources.get(spec.environment)
    if resource is None and (reference := environments.curated(spec.environment)) is not None:
        return images.Declared(reference)
    if resource is None:
        message = f"The environment {spec.environment} does not exist."
        raise RefusedError(message)
    properties = resource.body.get("properties", {})
    if properties.get("build"):
        message = (
            f"The environment {spec.environment} has a build context; its Dockerfile is read where the context lies on "
            "this machine, by `amlstack rehearse`."
        )
        raise RefusedError(message, "SandboxUnsupported")
    return images.Declared(image=str(properties.get("image") or ""), conda=str(properties.get("condaFile") or ""))


def stage(store: Store, job: JobRow, spec: Spec, built: Path, note: Callable[[str], None]) -> Stage:
    """Makes the job's folder and the plan of every node.

    Raises:
        RefusedError: Code, an input or a reference in the command is missing.
    """
    folder = job_folder(store.home, job.id)
    for name in ("nodes", "outputs", LOGS):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    storage = Storage(store, job.workspace)
    locations = {name: _output(job, storage, name, spec) for name in spec.outputs}
    mounts = {
        name: (storage.mount(place, file=spec.outputs[name].kind == "uri_file"), place)
        for name, place in locations.items()
        if not spec.outputs[name].copied
    }
    found = mpirun.find(built) if spec.distribution == "Mpi" else ""
    addresses = free_ports.several(spec.ranks if spec.distribution == "TensorFlow" else 1)
    places = launch.places(spec)
    run = tracking.variables(store, job, spec.experiment)
    here = substitutes.of(store, job)
    wanted = inputs.resolve(storage, spec, here)
    overridden = replaced(spec)
    for name in sorted(here.keys() & spec.inputs.keys()):
        port = spec.inputs[name]
        declared = port.value if port.kind == "literal" else port.uri or ""
        overridden[f"inputs.{name}" if port.kind == "literal" else f"inputs.{name}.path"] = (declared, str(here[name]))
        note(f"input {name}: {here[name]} of this machine, instead of {declared or 'nothing'}")
    mounted = inputs.protected(wanted, folder)
    folders = {name: mounts[name][0] if name in mounts else None for name in locations}
    data = node_data.prepare(storage, wanted, folders, folder, spec.nodes, mount=mounted)
    if not mounted:
        copies = [one.name for one in wanted if one.how == "read"]
        overridden |= {
            f"inputs.{name}.mode": (spec.inputs[name].mode or "ReadOnlyMount", "Download") for name in copies
        }
        note(f"inputs {', '.join(copies)}: copies, since this machine does not let a process mount them read-only")
    room = spec.shm if spec.shm is not None and namespace.possible() else None
    if spec.shm is not None and room is None:
        overridden["resources.shmSize"] = (str(spec.shm), "")
        note("shared memory is this machine's own: it does not let a process mount one of the declared size")
    temp = temporary_folder.make(store.home, job.id)
    carrying = _carrying(store, job, spec, built, places[0])
    plans = []
    sources: dict[str, list[Path]] = {name: [] for name in data.uploads}
    for node in range(spec.nodes):
        root = folder / "nodes" / str(node)
        work, own = _placed(store, storage, spec, root, (built, temp))
        there = data.on(root)
        for name, path in there.uploads.items():
            sources[name].append(path)
        if parallel_driver.wanted(job):
            parallel_driver.place(work, spec, _size(store, job))
        command = expressions.resolve(spec.command, there.inputs, there.outputs)
        ranks = tuple(
            RankProcess(
                place.rank,
                place.local_rank,
                ("/bin/bash", "-c", command),
                environ(
                    store.home,
                    job,
                    spec,
                    place,
                    run=run,
                    addresses=addresses,
                    built=own,
                    root=root,
                    temp=temp,
                    carrying=carrying,
                ),
                str(work),
                str(folder / LOGS / place.log),
            )
            for place in places
            if place.node == node
        )
        file = root / "plan.json"
        file.touch(mode=0o600)
        plain = NodePlan(node, ranks, shm=room, mounts=there.readonly, own=there.own)
        made = mpirun.node_plan(found, spec, plain, file, temp) if found else None
        file.write_text((made or plain).kept())
        plans.append((file, made or plain))
    listed = ", ".join(map(str, addresses))
    if spec.scale is not None:
        declared = " × ".join(map(str, spec.declared))
        note(f"scaled to {spec.scale}: {declared} declared, {spec.nodes} × {spec.processes} started")
    _announce(carrying, spec, folder / "nodes" / "0" / "wd", note)
    note(f"{spec.nodes} node(s), {spec.ranks} process(es); free ports {listed}; environment {built.name}")
    uploads = tuple(Upload(name, tuple(paths), locations[name]) for name, paths in sources.items())
    return Stage(folder, tuple(plans), places, uploads, mounts, overridden, built)


def _carrying(store: Store, job: JobRow, spec: Spec, built: Path, place: launch.RankPlace) -> gpu_code.Carrying | None:
    """How GPU calls run on the CPU; None where the processes have GPUs, or the job is to run as it is."""
    if launch.gpus(spec, place, gpus_here()) or gpu_code.is_off(store, job):
        return None
    size = _size(store, job)
    return gpu_code.carrying(built, launch.taken_gpus(spec, size.gpus if size is not None else None))


def _size(store: Store, job: JobRow) -> Size | None:
    """The size of the nodes that the job is given; None where it is not known."""
    compute = cluster_of(job)
    cluster = store.resources.get(compute) if compute is not None else None
    return quota.size_of_job(job) if cluster is None else quota.size_of_cluster(cluster.body)


def _announce(carrying: gpu_code.Carrying | None, spec: Spec, work: Path, note: Callable[[str], None]) -> None:
    """Says once that GPU calls run on the CPU, where the job speaks of GPUs."""
    if carrying is not None and gpu_code.mentioned(work, spec.command):
        note(carrying.line(spec.variables))


def _placed(store: Store, storage: Storage, spec: Spec, root: Path, of: tuple[Path, Path]) -> tuple[Path, Path]:
    """A node's working folder and environment, given the stand-in and the job's temporary folder."""
    built, temp = of
    work = _working_folder(store, storage, spec, root)
    return work, pip_layer.over(built, temp / f"environment-{root.name}", work, spec.command)


def _working_folder(store: Store, storage: Storage, spec: Spec, root: Path) -> Path:
    work = root / "wd"
    work.mkdir(parents=True)
    if spec.code:
        code = store.resources.get(spec.code)
        if code is None:
            message = f"The code version {spec.code} does not exist."
            raise RefusedError(message)
        place = storage.locate(str(code.body["properties"]["codeUri"]), "The code")
        storage.fetch(place, work, "The code")
    # What a node writes here is its own until the end, when the service collects it.
    for name in ("outputs", "logs"):
        (work / name).mkdir(exist_ok=True)
    return work


def _output(job: JobRow, storage: Storage, name: str, spec: Spec) -> Location:
    port = spec.outputs[name]
    uri = output_uri(job.name, name, port.uri)
    place = storage.locate(uri, f"The output {name!r}")
    if not isinstance(place, Location):
        message = f"The output {name!r} goes to {uri}; outputs go to a datastore."
        raise RefusedError(message)
    return place
