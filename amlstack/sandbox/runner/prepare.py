"""Everything before the first process: the environment, a folder per node, code, inputs, outputs, the node plans.

MPI jobs get the real mpirun over the job's nodes, whose made-up names it reaches through their agents' rsh sockets.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.images import standins
from amlstack.images.environments import UNREADABLE, Declared, for_diagnosis, standin_of
from amlstack.sandbox import contract, gpu_code, scheduling
from amlstack.sandbox.contract import LOGS, NodeNetwork, RefusedError, environment, replaced, resolve
from amlstack.sandbox.files import environments
from amlstack.sandbox.files.storage import Location, Storage, output_uri
from amlstack.sandbox.orchestration.parallel_step import PROPERTY
from amlstack.sandbox.runner import inputs, namespace, pip_layer
from amlstack.sandbox.runner.node_agent import LAUNCHER, NodePlan, RankProcess
from amlstack.sandbox.store.folders import make_temporary
from amlstack.sandbox.store.store import cluster_of, job_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from amlstack.catalog.sizes import Size
    from amlstack.sandbox.contract import Spec
    from amlstack.sandbox.runner.machines import JobNodes
    from amlstack.sandbox.store.store import JobRow, Store

PACKAGES = "openmpi-bin libopenmpi-dev"
LOG = "mpi_log.txt"
"""mpirun's own words, in the job's ``user_logs``."""

SOCKET = "rsh"
NODES = "AMLSTACK_SANDBOX_NODES"
REMOTE = "AMLSTACK_SANDBOX_REMOTE"
PLAN = "AMLSTACK_SANDBOX_PLAN"
_HERE = Path(__file__).parent
_VERSION = re.compile(r"\(Open MPI\) (\d+)\.")

# No binding: it would put the first ranks of all nodes of one machine on the same core. The daemons stay below their
# node's agent.
_ALWAYS = ("--leave-session-attached", "--bind-to", "none")
# Nodes that are one machine have different /dev/shm, where Open MPI sees one host name: TCP alone. Ranks that wait give
# their core away.
_SIDE_BY_SIDE = ("--mca", "btl", "self,tcp", "--mca", "mpi_yield_when_idle", "1")
_LOOPBACK = ("--mca", "btl_tcp_if_include", "lo")
_FOUR = ("--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "plm_rsh_agent")
_FOUR_LOOPBACK = ("--mca", "oob_tcp_if_include", "lo")
# Open MPI 5 starts its daemons by PRRTE, which has other names and takes no loopback for its own messages: these go to
# the first address of this machine, and never leave it.
_FIVE = ("--prtemca", "plm_ssh_no_tree_spawn", "1", "--prtemca", "plm_ssh_agent")


def on_machine() -> str:
    """The machine's mpirun when it is Open MPI 4, else empty: others name their options differently."""
    found = shutil.which("mpirun")
    if found is None:
        return ""
    printed = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = _VERSION.search(printed)
    return found if version is not None and int(version[1]) == 4 else ""


def is_brought(image: str) -> bool:
    """True where a job's environment brings its Open MPI: the machine has none, or not the release of the image.

    Args:
        image: The image that the environment declares; empty for none.
    """
    return standins.has_openmpi_5(image) or not on_machine()


def find(built: Path) -> str:
    """The mpirun for a job: its environment's own, else the machine's.

    The environment's comes first, since it belongs to the libraries that mpi4py loads there.

    Args:
        built: Folder of the environment.

    Raises:
        RefusedError: Neither has one.
    """
    own = built / "bin" / "mpirun"
    found = str(own) if own.is_file() else on_machine()
    if not found:
        message = (
            f"The job's distribution is Mpi, and its environment {built.name} was compiled against an Open MPI 4 of "
            f"this machine, which is no longer on PATH. Install it again, `apt-get install {PACKAGES}` on Debian and "
            "Ubuntu, run `amlstack sandbox down` so that it is seen, and start the job again."
        )
        raise RefusedError(message, "OpenMpiMissing")
    return found


def command(mpirun: str, spec: Spec, folder: Path, network: NodeNetwork) -> tuple[str, ...]:
    """The line of mpirun; writes the files that it names.

    Args:
        mpirun: Path of the program.
        spec: The job.
        folder: Where the host file and the remote shell go; without blanks, since Open MPI splits there.
        network: The nodes.
    """
    hosts, shell, rank = folder / "hosts", folder / "rsh", folder / "rank"
    hosts.write_text("".join(f"node-{node} slots={spec.processes}\n" for node in range(spec.nodes)))
    python = shlex.join([sys.executable, "-I", "-S"])
    shell.write_text(f'#!/bin/sh\nexec {python} {shlex.quote(str(_HERE / "mpi_rsh.py"))} "$@"\n')
    rank.write_text(f'#!/bin/sh\nexec {python} {shlex.quote(str(_HERE / "mpi_rank.py"))} "$AMLSTACK_SANDBOX_PLAN"\n')
    for script in (shell, rank):
        script.chmod(0o700)
    root = ("--allow-run-as-root",) if os.getuid() == 0 else ()
    words = (mpirun, *root, "--hostfile", str(hosts), "--map-by", f"ppr:{spec.processes}:node")
    five = is_five(mpirun)
    loopback = () if not network.shared else _LOOPBACK if five else (*_FOUR_LOOPBACK, *_LOOPBACK)
    transport = () if network.apart else (*_SIDE_BY_SIDE, *loopback)
    return (*words, *(_FIVE if five else _FOUR), str(shell), *_ALWAYS, *transport, str(rank))


def is_five(mpirun: str) -> bool:
    """True where a program is mpirun of Open MPI 5, which has PRRTE's launcher beside it."""
    return Path(mpirun).with_name("prterun").is_file()


def _node_plan(ground: _Ground, plain: NodePlan, file: Path) -> NodePlan:
    """A node's plan when mpirun starts the ranks: the first agent starts mpirun, every agent opens an rsh socket.

    Args:
        ground: The facts of the job.
        plain: The node with its ranks as the service itself would start them.
        file: Where the plan will be written; the ranks read it.
    """
    first, folder, remote = plain.ranks[0], ground.temp, ground.nodes.remote
    sockets = Path(tempfile.gettempdir(), folder.name) if remote else folder
    rsh = sockets / str(plain.node) / SOCKET
    private = {NODES: str(sockets), PLAN: str(file), **({REMOTE: remote} if remote else {})}
    env = {**first.env, **private}
    started = tuple(replace(rank, env={}) for rank in plain.ranks)
    log = str(Path(first.log).with_name(LOG))
    ranks: tuple[RankProcess, ...] = ()
    if plain.node == 0:
        argv = command(ground.mpi, ground.spec, folder, ground.network)
        ranks = (replace(first, rank=LAUNCHER, argv=argv, env=env, log=log),)
    return replace(plain, ranks=ranks, started=started, rsh=str(rsh), env=env, cwd=first.cwd, private=tuple(private))


STAND_IN = "stand-in.json"
"""Read by `amlstack.diagnose`."""
_BASE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
_DRIVER = "amlparallel"
_HELPERS = "azureml_user"


def _put_driver(work: Path, spec: Spec, size: Size | None) -> None:
    """Puts what drives a parallel step beside the step's code in a node's working folder.

    Args:
        work: The folder.
        spec: The job.
        size: Of the nodes, which says how many workers each has by default: one for GPUs, else one for each core (YAML
            reference of the parallel job); the sandbox starts no more than this machine has cores for all nodes.
    """
    source = paths.PACKAGE / _DRIVER
    skip = shutil.ignore_patterns("__pycache__")
    folder = work / "driver"  # as Azure ML has it
    for name in (_DRIVER, _HELPERS, "fallback"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(source, folder / _DRIVER, ignore=shutil.ignore_patterns("__pycache__", _HELPERS))
    shutil.copytree(source / _HELPERS, folder / _HELPERS, ignore=skip)
    if any(port.kind == "mltable" for port in spec.inputs.values()):
        shutil.copytree(Path(yaml.__file__).parent, folder / "fallback" / "yaml", ignore=skip)
    (folder / "here.json").write_text(json.dumps(_workers(spec, size)) + "\n")


def _workers(spec: Spec, size: Size | None) -> dict[str, int]:
    here = max(1, len(os.sched_getaffinity(0)) // spec.nodes)
    declared = 1 if size is not None and size.gpus else (size.vcpus if size is not None else None) or here
    found = {"default_workers": min(declared, here)}
    return found if spec.scale is None else {**found, "most_workers": spec.scale.ranks}


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
        mounts: Folders mounted for writing, by output; without a place in the storage where it is one of this machine.
        replaced: Job variables and shared memory overridden on one machine: name → (declared, used); an empty ``used``
            means dropped.
        image: Folder of the environment.
    """

    folder: Path
    plans: tuple[tuple[Path, NodePlan], ...]
    places: tuple[contract.RankPlace, ...]
    uploads: tuple[Upload, ...]
    mounts: dict[str, tuple[Path, Location | None]]
    replaced: dict[str, tuple[str, str]]
    image: Path


_CURATED = re.compile(r"azureml://registries/azureml/environments/([^/]+)/versions/([^/]+)")


def container_image(store: Store, job: JobRow, spec: Spec) -> str:
    """The image of the job's environment as a registry has it.

    Raises:
        RefusedError: No registry has it, or its ranks cannot be started in there.
    """
    given = environments.environment_of(store, job)
    declared = given.declared if given is not None else _declared(store, spec)
    curated = _CURATED.fullmatch(environments.expanded(declared.reference))
    if spec.distribution == "Mpi":
        text = "Ranks of an MPI job are not started in a container here"
    elif declared.image and not declared.conda:
        return declared.image
    elif curated is not None:
        return f"mcr.microsoft.com/azureml/curated/{curated[1]}:{curated[2]}"
    else:
        text = "Azure ML builds the image of this environment itself, and no registry of yours has it"
    raise RefusedError(f"{text}. Leave `container` out of the profile of Slurm for this job.", "SandboxUnsupported")


def image(store: Store, job: JobRow, spec: Spec, *, contained: bool = False) -> standins.StandIn:
    """The stand-in for the job's environment; for an MPI job with an Open MPI of its own where the machine has none.

    Args:
        store: The sandbox's tables.
        job: The job's row.
        spec: What it asked for.
        contained: Its ranks run in its image: nothing but Python is needed beside it.

    Raises:
        RefusedError: It has none.
    """
    if contained:
        return standins.resolve(_BASE)
    given = environments.environment_of(store, job)
    try:
        declared = given.declared if given is not None else _declared(store, spec)
        standin = given.standin if given is not None else standin_of(declared)
    except UNREADABLE as error:
        raise RefusedError(str(error), "SandboxUnsupported") from None
    if spec.distribution == "Mpi" and is_brought(declared.image):
        return standins.with_openmpi(standin, declared.image)
    return standin


def write_stand_in(store: Store, job: JobRow, spec: Spec, standin: standins.StandIn) -> None:
    """Notes in the job's folder what its environment lacks of the image, for a diagnosis of its logs."""
    given = environments.environment_of(store, job)
    named = given.declared.named if given is not None else spec.environment
    known = for_diagnosis(standin, named)
    write_whole(job_folder(store.home, job.id) / STAND_IN, json.dumps(known, indent=1) + "\n")


def _declared(store: Store, spec: Spec) -> Declared:
    if not spec.environment.startswith("/"):
        return Declared(spec.environment)
    resource = store.resources.get(spec.environment)
    if resource is None and (reference := environments.curated(spec.environment)) is not None:
        return Declared(reference)
    if resource is None:
        raise RefusedError(f"The environment {spec.environment} does not exist.")
    properties = resource.body.get("properties", {})
    if properties.get("build"):
        message = (
            f"The environment {spec.environment} has a build context; its Dockerfile is read where the context lies on "
            "this machine, by `amlstack rehearse`."
        )
        raise RefusedError(message, "SandboxUnsupported")
    return Declared(image=str(properties.get("image") or ""), conda=str(properties.get("condaFile") or ""))


def stage(store: Store, job: JobRow, spec: Spec, built: Path, note: Callable[[str], None], *, nodes: JobNodes) -> Stage:
    """Makes the job's folder and the plan of every node.

    Args:
        store: The sandbox's tables.
        job: The job's row.
        spec: What it asked for.
        built: Folder of the environment.
        nodes: The machines of its nodes.
        note: Takes a line for the runner's log.

    Raises:
        RefusedError: Code, an input or a reference in the command is missing.
    """
    folder = job_folder(store.home, job.id)
    for name in ("nodes", "outputs", LOGS):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    outputs = _Outputs.for_job(store, job, spec)
    ground = _Ground.for_job(store, job, spec, built, nodes)
    overridden = replaced(spec, ground.network)
    data = _data(ground, outputs=outputs, overridden=overridden, note=note)
    room = _shared_memory(ground, overridden, note)
    laid_out = [_node(ground, node, data, room) for node in range(spec.nodes)]
    uploads = tuple(
        Upload(name, tuple(there.uploads[name] for _, there in laid_out), outputs.locations[name])
        for name in data.uploads
    )
    _announce(ground, folder / "nodes" / "0" / "wd", note)
    return Stage(folder, tuple(plan for plan, _ in laid_out), ground.places, uploads, outputs.mounts, overridden, built)


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The job's named outputs: where they go, and the folders of those that are mounted for writing."""

    locations: dict[str, Location]
    mounts: dict[str, tuple[Path, Location | None]]

    @classmethod
    def for_job(cls, store: Store, job: JobRow, spec: Spec) -> _Outputs:
        storage, here = Storage(store, job.workspace), environments.inputs_of(store, job, environments.OUTPUTS)
        locations = {name: _output(job, storage, name, spec) for name in spec.outputs if name not in here}
        for name, path in here.items():
            (path.parent if spec.outputs[name].kind == "uri_file" else path).mkdir(parents=True, exist_ok=True)
        mounts: dict[str, tuple[Path, Location | None]] = {name: (path, None) for name, path in here.items()}
        mounts |= {
            name: (storage.mount(place, file=spec.outputs[name].kind == "uri_file"), place)
            for name, place in locations.items()
            if not spec.outputs[name].copied
        }
        return cls(locations, mounts)


@dataclass(frozen=True, slots=True)
class _Ground:
    """The facts that all nodes of a job share.

    Attributes:
        mpi: The mpirun of an MPI job; empty for none.
        network: The nodes as they find each other.
        nodes: The machines of the nodes.
        places: Every process that the service starts.
        run: The variables that tell a process its run.
        temp: The job's temporary folder.
        carrying: How GPU calls run on the CPU; None where they stay.
        image: The image that ranks run in; empty for the environment's folder.
    """

    store: Store
    job: JobRow
    spec: Spec
    built: Path
    mpi: str
    network: NodeNetwork
    nodes: JobNodes
    places: tuple[contract.RankPlace, ...]
    run: Mapping[str, str]
    temp: Path
    carrying: gpu_code.Carrying | None
    image: str

    @classmethod
    def for_job(cls, store: Store, job: JobRow, spec: Spec, built: Path, nodes: JobNodes) -> _Ground:
        contained = container_image(store, job, spec) if nodes.container else ""
        network = nodes.network(spec)
        run = contract.tracking_variables(store, job, spec.experiment)
        return cls(
            store,
            job,
            spec,
            built,
            (nodes.mpirun or find(built)) if spec.distribution == "Mpi" else "",
            network,
            nodes,
            contract.places(spec),
            run if network.tracked else {name: run[name] for name in run if not name.startswith("MLFLOW_")},
            make_temporary(store.home, job.id, nodes.scratch),
            None if contained else _carrying(store, job, spec, built, network),
            contained,
        )

    def may_mount(self, places: Iterable[Path] = ()) -> bool:
        """True where the nodes let a process have mounts of its own, of these places too."""
        return namespace.possible(places) if self.network.shared else self.network.mounts


def _data(
    ground: _Ground,
    *,
    outputs: _Outputs,
    overridden: dict[str, tuple[str, str]],
    note: Callable[[str], None],
) -> inputs.JobData:
    """Inputs and outputs as the nodes find them; what differs from the declaration is noted."""
    store, job, spec = ground.store, ground.job, ground.spec
    folder, storage = job_folder(store.home, job.id), Storage(store, job.workspace)
    here = environments.inputs_of(store, job)
    wanted = inputs.resolve(storage, spec, here)
    for name in sorted(here.keys() & spec.inputs.keys()):
        port = spec.inputs[name]
        declared = port.value if port.kind == "literal" else port.uri or ""
        overridden[f"inputs.{name}" if port.kind == "literal" else f"inputs.{name}.path"] = (declared, str(here[name]))
        note(f"input {name}: {here[name]} of this machine, instead of {declared or 'nothing'}")
    for name, (path, place) in outputs.mounts.items():
        if place is None:
            overridden[f"outputs.{name}.path"] = (spec.outputs[name].uri or "", str(path))
            note(f"output {name}: {path} of this machine, instead of {spec.outputs[name].uri or 'a datastore'}")
    mounted = inputs.protected(wanted, folder, ground.may_mount)
    if not mounted:
        copies = [one.name for one in wanted if one.how == "read"]
        overridden |= {
            f"inputs.{name}.mode": (spec.inputs[name].mode or "ReadOnlyMount", "Download") for name in copies
        }
        note(f"inputs {', '.join(copies)}: copies, since this machine does not let a process mount them read-only")
    folders = {name: outputs.mounts[name][0] if name in outputs.mounts else None for name in spec.outputs}
    return inputs.prepare(storage, wanted, folders, folder, spec.nodes, mount=mounted, private=ground.may_mount())


def _shared_memory(ground: _Ground, overridden: dict[str, tuple[str, str]], note: Callable[[str], None]) -> int | None:
    """Bytes of a node's own shared memory; None where it has its machine's."""
    spec = ground.spec
    if spec.shm is None or ground.may_mount():
        return spec.shm
    overridden["resources.shmSize"] = (str(spec.shm), "")
    note("shared memory is this machine's own: it does not let a process mount one of the declared size")
    return None


def _node(
    ground: _Ground, node: int, data: inputs.JobData, room: int | None
) -> tuple[tuple[Path, NodePlan], inputs.NodeData]:
    """One node's folder and plan."""
    store, job, spec, temp = ground.store, ground.job, ground.spec, ground.temp
    folder = job_folder(store.home, job.id)
    root = folder / "nodes" / str(node)
    work = _working_folder(store, Storage(store, job.workspace), spec, root)
    own = ground.built
    if pip_layer.wanted(spec.command, work):
        own = pip_layer.make(own, temp / f"environment-{root.name}")
    there = data.on(root)
    if str((job.properties.get("properties") or {}).get(PROPERTY)).lower() == "true":
        _put_driver(work, spec, _size(store, job))
    command = resolve(spec.command, there.inputs, there.outputs)
    inside: tuple[str, ...] = ()
    if ground.image:
        named = [Path(each) for each in (*there.inputs.values(), *there.outputs.values()) if each.startswith("/")]
        folders = [store.home, *(each for each in dict.fromkeys(named) if not each.is_relative_to(store.home))]
        inside = ground.nodes.inside(node, ground.image, folders, gpus=bool(ground.network.gpus[node]))
    ranks = tuple(
        RankProcess(
            place.rank,
            place.local_rank,
            (*inside, "/bin/bash", "-c", command),
            environment(
                store.home,
                job,
                spec,
                place,
                run=ground.run,
                network=ground.network,
                built=own,
                root=root,
                temp=temp,
                carrying=ground.carrying,
            ),
            str(work),
            str(folder / LOGS / place.log),
        )
        for place in ground.places
        if place.node == node
    )
    file = root / "plan.json"
    file.touch(mode=0o600)
    plain = NodePlan(node, ranks, shm=room, mounts=there.readonly, own=there.own, sampled=bool(ground.nodes.remote))
    made = _node_plan(ground, plain, file) if ground.mpi else None
    file.write_text((made or plain).kept())
    return (file, made or plain), there


def _carrying(store: Store, job: JobRow, spec: Spec, built: Path, network: NodeNetwork) -> gpu_code.Carrying | None:
    """The way in which GPU calls run on the CPU; None where the processes have GPUs, or the job is to run as it is."""
    if contract.gpus(spec, 0, network) or gpu_code.is_off(store, job):
        return None
    size = _size(store, job)
    return gpu_code.carrying(built, contract.taken_gpus(spec, size.gpus if size is not None else None))


def _size(store: Store, job: JobRow) -> Size | None:
    """The size of the nodes that the job is given; None where it is not known."""
    compute = cluster_of(job)
    cluster = store.resources.get(compute) if compute is not None else None
    return scheduling.size_of_job(job) if cluster is None else scheduling.size_of_cluster(cluster.body)


def _announce(ground: _Ground, work: Path, note: Callable[[str], None]) -> None:
    """Says how much is started, and that GPU calls run on the CPU where the job speaks of GPUs."""
    spec = ground.spec
    if spec.scale is not None:
        declared = " × ".join(map(str, spec.declared))
        note(f"scaled to {spec.scale}: {declared} declared, {spec.nodes} × {spec.processes} started")
    if ground.carrying is not None and gpu_code.mentioned(work, spec.command):
        note(ground.carrying.line(spec.variables))
    listed = ", ".join(map(str, ground.network.ports))
    note(f"{spec.nodes} node(s), {spec.ranks} process(es); free ports {listed}; environment {ground.built.name}")


def _working_folder(store: Store, storage: Storage, spec: Spec, root: Path) -> Path:
    work = root / "wd"
    work.mkdir(parents=True)
    if spec.code:
        code = store.resources.get(spec.code)
        if code is None:
            raise RefusedError(f"The code version {spec.code} does not exist.")
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
        raise RefusedError(f"The output {name!r} goes to {uri}; outputs go to a datastore.")
    return place
