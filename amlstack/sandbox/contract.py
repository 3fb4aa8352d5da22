"""The contract of a job: its body, and each process with command, rank and variables as Azure ML and torchrun do it.

A command's ``${{inputs.x}}``, ``${{outputs.x}}`` and optional ``$[[ … ]]`` groups are filled, and a node's /dev/shm has
the size that its container would have. What the sandbox cannot run is refused by name.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base import text as text_module
from amlstack.base.text import hint
from amlstack.images.building import read_record
from amlstack.sandbox import gpu_code, processes, scale
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.store.store import JobRow, Store, folder, job_folder

if TYPE_CHECKING:
    from amlstack.sandbox.scale import RehearsalScale

DEFAULT = "2g"
"""Azure ML gives this to a container whose job does not say."""

_SIZE = re.compile(r"(\d+)\s*([bkmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int | None:
    """Bytes of ``64g`` or ``512m``; None when it is no size."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] or None if found else None


LAUNCHED = ("PyTorch", "Mpi", "TensorFlow")
"""The distributions that the sandbox launches."""


JUDGED = "AMLSTACK_SANDBOX_JUDGED"
"""Tells amlnode that a node is a machine with GPUs of its own, which it then holds against the planned size."""


class RefusedError(Exception):
    """The job cannot run here; the message says what was seen, the rule and the remedy.

    Attributes:
        code: As the service would name it: ``UserError`` or ``SandboxUnsupported``.
    """

    def __init__(self, message: str, code: str = "UserError") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class JobPort:
    """An input or an output.

    Attributes:
        kind: ``literal``, ``uri_file``, ``uri_folder``, … (the wire's jobInputType or jobOutputType).
        value: The literal's text.
        uri: Where the data lie; None for an output that leaves it to the service.
        mode: ``ReadOnlyMount``, ``Download``, ``ReadWriteMount``, ``Upload``, …; None for the default.
    """

    kind: str
    value: str = ""
    uri: str | None = None
    mode: str | None = None

    @property
    def copied(self) -> bool:
        """True where the node gets (or gives) a copy instead of a mount."""
        return self.mode in ("Download", "Upload")


@dataclass(frozen=True, slots=True)
class Spec:
    """The request of a command job.

    Attributes:
        command: The shell command, its ``${{…}}`` unresolved.
        code: ARM id of the code version; None for none.
        environment: ARM id or registry id of the environment version.
        distribution: ``PyTorch``, ``Mpi``, ``TensorFlow``; None for none: every node runs the command once, without
            rank variables.
        processes: Processes per node that the service starts; of TensorFlow's tasks the most that a node has.
        nodes: Node count.
        workers, servers: Tasks of TensorFlow, in all; 0 otherwise.
        inputs: By name.
        outputs: By name.
        variables: The job's environment variables.
        timeout: Seconds that it may run; None for no limit.
        shm: Bytes of shared memory that each node's container has; None where it has the machine's own.
        experiment: Name of its experiment.
        declared: Nodes, and processes per node, as the body has them.
        scale: What a rehearsal scales them down to; None for nothing.
    """

    command: str
    code: str | None
    environment: str
    distribution: str | None
    processes: int
    nodes: int
    workers: int
    servers: int
    inputs: dict[str, JobPort]
    outputs: dict[str, JobPort]
    variables: dict[str, str]
    timeout: float | None
    shm: int | None
    experiment: str
    declared: tuple[int, int]
    scale: RehearsalScale | None = None

    @property
    def ranks(self) -> int:
        """Processes that the service starts in all."""
        return (self.workers + self.servers) or self.nodes * self.processes


def read(properties: Mapping[str, Any], scale: RehearsalScale | None = None) -> Spec:
    """Reads ``body["properties"]`` of a command job.

    Args:
        properties: The job's.
        scale: Nodes and processes of the result are no more than it allows.

    Raises:
        RefusedError: The sandbox does not run this kind of job.
    """
    kind = properties.get("jobType")
    if kind != "Command":
        raise RefusedError(f"The sandbox runs command jobs; this one is of the type {kind}.", "SandboxUnsupported")
    distribution = properties.get("distribution") or {}
    style = distribution.get("distributionType")
    if style not in (None, *LAUNCHED):
        message = f"The sandbox launches {', '.join(LAUNCHED)} jobs; the distribution of this one is {style}."
        raise RefusedError(message, "SandboxUnsupported")
    nodes = int((properties.get("resources") or {}).get("instanceCount") or 1)
    tensorflow = style == "TensorFlow"
    workers = int(distribution.get("workerCount") or nodes) if tensorflow else 0
    servers = int(distribution.get("parameterServerCount") or 0) if tensorflow else 0
    processes = int(distribution.get("processCountPerInstance") or 1)
    declared = (nodes, math.ceil(workers / nodes) + math.ceil(servers / nodes) if tensorflow else processes)
    if scale is not None:
        workers, servers = scale.workers(workers, nodes), min(servers, scale.nodes)
        nodes, processes = min(nodes, scale.nodes), min(processes, scale.ranks)
    limits = properties.get("limits") or {}
    return Spec(
        command=str(properties["command"]),
        code=properties.get("codeId"),
        environment=str(properties["environmentId"]),
        distribution=style,
        processes=math.ceil(workers / nodes) + math.ceil(servers / nodes) if tensorflow else processes,
        nodes=nodes,
        workers=workers,
        servers=servers,
        inputs={name: _port(port, "jobInputType") for name, port in (properties.get("inputs") or {}).items() if port},
        outputs={name: _port(port, "jobOutputType") for name, port in (properties.get("outputs") or {}).items()},
        variables={str(k): str(v) for k, v in (properties.get("environmentVariables") or {}).items()},
        timeout=seconds(limits["timeout"]) if limits.get("timeout") else None,
        shm=_shm(properties.get("resources") or {}),
        experiment=str(properties.get("experimentName") or "Default"),
        declared=declared,
        scale=scale,
    )


def seconds(duration: str) -> float:
    """Seconds of an ISO-8601 duration such as ``PT15M`` or ``P1DT30S``.

    Raises:
        RefusedError: It is none.
    """
    found = text_module.seconds(duration.strip().upper())
    if found is None:
        raise RefusedError(f"{duration!r} is no ISO-8601 duration such as PT15M.")
    return found


def _shm(resources: Mapping[str, Any]) -> int | None:
    if re.search(r"--ipc[= ]host\b", str(resources.get("dockerArgs") or "")):
        return None
    declared = str(resources.get("shmSize") or DEFAULT)
    found = size(declared)
    if found is None:
        raise RefusedError(f"The shared memory {declared!r} (resources.shmSize) is no size such as 64g.")
    return found


def _port(port: Mapping[str, Any] | None, key: str) -> JobPort:
    port = port or {}
    kind = str(port.get(key) or "uri_folder")
    value = port.get("value")
    return JobPort(kind, "" if value is None else str(value), port.get("uri"), port.get("mode"))


_REFERENCE = re.compile(r"\$\{\{\s*(?P<side>[\w-]+)\.(?P<name>[\w-]+)(?:\.path)?\s*\}\}")
_GROUP = re.compile(r"\$\[\[(?P<inside>.*?)\]\]", re.DOTALL)
_ANY = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


def resolve(command: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """The command as the shell gets it: values and paths put in as they are, unquoted, as the service does.

    Args:
        command: With references; an optional group stays only if everything it refers to is given.
        inputs: Literal values, and paths on the node.
        outputs: Paths on the node.

    Raises:
        RefusedError: A reference names nothing.
    """
    known = {"inputs": inputs, "outputs": outputs}

    def group(found: re.Match[str]) -> str:
        inside = found["inside"]
        given = (ref["name"] in known.get(ref["side"], {}) for ref in _REFERENCE.finditer(inside))
        return inside if all(given) else ""

    def value(found: re.Match[str]) -> str:
        side, name = found["side"], found["name"]
        if side not in known or name not in known[side]:
            raise RefusedError(_missing(found[0], side, name, known))
        return known[side][name]

    resolved = _REFERENCE.sub(value, _GROUP.sub(group, command))
    # Literals may hold anything, so what is left is looked for in the command alone.
    if odd := next((text for text in _ANY.findall(command) if not _REFERENCE.fullmatch(text)), None):
        message = f"The command refers to {odd}, which is neither ${{{{inputs.NAME}}}} nor ${{{{outputs.NAME}}}}."
        raise RefusedError(message)
    return resolved


def _missing(text: str, side: str, name: str, known: Mapping[str, Mapping[str, str]]) -> str:
    if side not in known:
        return f"The command refers to {text}; a job has only inputs and outputs."
    have = ", ".join(sorted(known[side])) or "none"
    return f"The command refers to {text}, but the job's {side} are: {have}.{hint(name, known[side])}"


_PER_NODE = re.compile(r"--nproc[-_]per[-_]node[= ]+(\d+)")
# "rank : 3 (local_rank: 1)", then "exitcode : 1 (pid: 123)" in the table that torchrun prints when a rank failed.
_FAILED = re.compile(
    r"rank\s*:\s*(?P<rank>\d+) \(local_rank: (?P<local>\d+)\)\s*\n\s*exitcode\s*:\s*(?P<code>-?\d+) \(pid: \d+\)"
)
_PREFIX = re.compile(r"^\[rank (\d+)\]: ", re.MULTILINE)
LEFT = ("stdout.log", "stderr.log", "error.json")
TABLE_BYTES = 256 * 1024
"""The table is looked for this far back from the end of a log."""


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


def torchrun_variables(logs: Path, error: Path, port: int) -> dict[str, str]:
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


def host(node: int) -> str:
    """The address of a node where several are named side by side: one each on the loopback, the first is 127.0.0.1."""
    return f"127.0.{node // 250}.{node % 250 + 1}"


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    """The nodes of a job as its processes find each other, and what each node has.

    Attributes:
        hosts: Address of each node.
        ports: Free ports: one for each of TensorFlow's tasks, in rank order, else one on the first node.
        cores: Cores of each node that its processes share.
        gpus: Numbers of each node's GPUs that its processes may use.
        shared: All nodes are this machine: they share its loopback, and find no fabric.
        apart: Each node is a machine of its own.
        mounts: The nodes let a process have mounts of its own.
        tracked: They reach the sandbox, where MLflow's values go.
    """

    hosts: tuple[str, ...]
    ports: tuple[int, ...]
    cores: tuple[int, ...]
    gpus: tuple[tuple[int, ...], ...]
    shared: bool = True
    apart: bool = False
    mounts: bool = True
    tracked: bool = True

    @classmethod
    def here(cls, spec: Spec, cores: int, gpus: int) -> NodeNetwork:
        """The nodes as shares of one machine: a GPU for every training process, or none at all.

        Half a job on GPUs, or two ranks on one, would fail where the cluster would not.
        """
        each = trainers(spec)
        enough = gpus >= spec.nodes * each
        return cls(
            tuple(map(host, range(spec.nodes))),
            processes.free_ports(ports_needed(spec)),
            (cores // spec.nodes,) * spec.nodes,
            tuple(tuple(range(node * each, (node + 1) * each)) if enough else () for node in range(spec.nodes)),
        )


def ports_needed(spec: Spec) -> int:
    """The number of free ports that a job is given."""
    return spec.ranks if spec.distribution == "TensorFlow" else 1


STAND_INS = {"GLOO_SOCKET_IFNAME": "lo", "TP_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo", "UCX_NET_DEVICES": "lo"}
"""All nodes of a sandbox share one network, the loopback: an interface such as eth0 is replaced, and reported."""


@dataclass(frozen=True, slots=True)
class RankPlace:
    """The place of one process: numbers from 0; a task of TensorFlow has a type (``worker``, ``ps``) and an index."""

    rank: int
    node: int
    local_rank: int
    task: str = ""
    index: int = 0

    @property
    def log(self) -> str:
        """Its log file's name, two digits at least."""
        return f"std_log_process_{self.rank:02d}.txt"


def places(spec: Spec) -> tuple[RankPlace, ...]:
    """The processes that the service starts, in rank order: node by node, as many on each.

    TensorFlow's workers come first, spread in blocks over the nodes, then its parameter servers in the same way.
    """
    if spec.distribution != "TensorFlow":
        return tuple(
            RankPlace(node * spec.processes + local, node, local)
            for node in range(spec.nodes)
            for local in range(spec.processes)
        )
    found: list[RankPlace] = []
    there = [0] * spec.nodes
    for task, count in (("worker", spec.workers), ("ps", spec.servers)):
        for index in range(count):
            node = index * spec.nodes // count
            found.append(RankPlace(len(found), node, there[node], task, index))
            there[node] += 1
    return tuple(found)


def needed(spec: Spec) -> frozenset[int]:
    """Processes with whose ends the job is over although others still run: those served by parameter servers."""
    if not spec.servers:
        return frozenset()
    return frozenset(place.rank for place in places(spec) if place.task == "worker")


def rank_variables(spec: Spec, place: RankPlace, network: NodeNetwork) -> dict[str, str]:
    """The variables that tell a process its rank; empty without a distribution.

    Under MPI that is Open MPI's own part, and these are the service's: MASTER_ADDR is not among them.

    Args:
        spec: The job.
        place: The process.
        network: The nodes.
    """
    master, port = network.hosts[0], str(network.ports[0])
    if spec.distribution == "TensorFlow":
        return {"TF_CONFIG": _tf_config(spec, place, network)}
    if spec.distribution == "Mpi":
        several = {"AZ_BATCH_MASTER_NODE": f"{master}:{port}"} if spec.nodes > 1 else {}
        # Not the service's: the guides' code takes its default port, 6105, unless this is set, and two jobs would meet.
        own = {} if "MASTER_PORT" in spec.variables else {"MASTER_PORT": port}
        return {"AZ_BATCHAI_MPI_MASTER_NODE": master, **several, **own}
    if spec.distribution != "PyTorch":
        return {}
    return {
        "MASTER_ADDR": master,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(spec.ranks),
        "NODE_RANK": str(place.node),
        "RANK": str(place.rank),
        "LOCAL_RANK": str(place.local_rank),
    }


def _tf_config(spec: Spec, place: RankPlace, network: NodeNetwork) -> str:
    cluster: dict[str, list[str]] = {}
    for other, port in zip(places(spec), network.ports, strict=True):
        cluster.setdefault(other.task, []).append(f"{network.hosts[other.node]}:{port}")
    task = {"type": place.task, "index": place.index}
    return json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})


def experiment_id(workspace: str, experiment: str) -> str:
    """The id of an experiment in a workspace (ARM id)."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{workspace}/experiments/{experiment}"))


def base_variables(image: Path, home: Path, temporary: Path) -> dict[str, str]:
    """The variables that a container would start with; nothing of the user's own environment gets in."""
    # Open MPI from a wheel looks for its parts where it was compiled, unless the first names their folder. A process
    # that no mpirun started (Lightning asks MPI for its size) starts a daemon for spawning others, and aborts where the
    # machine has neither ssh nor rsh, unless the second is set.
    own = (image / "bin" / "mpirun").is_file()
    openmpi = {"OPAL_PREFIX": str(image), "OMPI_MCA_ess_singleton_isolated": "1"} if own else {}
    of_the_image = {str(name): str(value) for name, value in read_record(image).get("variables", {}).items()}
    if own and any(image.glob("lib/python3*/site-packages/horovod")):
        # Compiled before the environment had its final name, by which the library would be found.
        openmpi["LD_LIBRARY_PATH"] = str(image / "lib")
    if (image / "bin" / "prterun").is_file():  # Open MPI 5: two more parts that look where they were compiled
        openmpi |= {"PRTE_PREFIX": str(image), "PMIX_PREFIX": str(image)}
    return {
        **of_the_image,
        **openmpi,
        "PATH": f"{image / 'bin'}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        # Logs are files here: without it torchrun, which copies its ranks' lines, would show them all at its end.
        "PYTHONUNBUFFERED": "1",
    }


def threads(spec: Spec, node: int, network: NodeNetwork) -> int:
    """OpenMP threads per training process, so that all of them together fit the node's cores."""
    return max(1, network.cores[node] // trainers(spec))


def gpus(spec: Spec, node: int, network: NodeNetwork) -> str:
    """CUDA_VISIBLE_DEVICES of a node: none where its processes would not get a device each."""
    return ",".join(map(str, network.gpus[node])) if len(network.gpus[node]) >= trainers(spec) else ""


def taken_gpus(spec: Spec, of_size: int | None) -> int:
    """GPUs that code on a machine without any counts: its ranks, or those of the cluster where it starts ranks itself.

    Args:
        spec: The job.
        of_size: GPUs of the cluster's size; None where that is not known.
    """
    if (each := trainers(spec)) > 1:
        return each
    most = 1 if spec.scale is None else spec.scale.ranks
    return max(1, of_size if spec.scale is None and of_size else min(of_size or most, most))


def trainers(spec: Spec) -> int:
    """Training processes per node: torchrun's, else the service's."""
    found = processes_per_node(spec.command)
    if found is None:
        declared = spec.variables.get("PET_NPROC_PER_NODE", "")
        if not declared.isdigit():
            return spec.processes
        found = int(declared)
    return found if spec.scale is None else min(found, spec.scale.ranks)


TOKEN_SECONDS = 30 * 24 * 3600
"""Lifetime of a job's token: it is not renewed, and a rehearsal may be long."""


def tracking_variables(store: Store, job: JobRow, experiment: str) -> dict[str, str]:
    """The variables that name the run, its root, and the service that tracks it.

    Args:
        store: The sandbox's tables.
        job: The job's row.
        experiment: Its experiment.
    """
    words = job.workspace.strip("/").split("/")
    variables = {
        "AZUREML_RUN_ID": job.name,
        "AZUREML_ROOT_RUN_ID": store.jobs[(job.id, *store.family.above(job.id))[-1]].name,
        "AZUREML_ARM_SUBSCRIPTION": words[1],
        "AZUREML_ARM_RESOURCEGROUP": words[3],
        "AZUREML_ARM_WORKSPACE_NAME": words[-1],
        "AZUREML_ARM_PROJECT_NAME": experiment,
        # By its presence DeepSpeed knows that it is on Azure ML.
        "AZUREML_EXPERIMENT_ID": experiment_id(job.workspace, experiment),
    }
    place = folder(store.home)
    try:
        endpoint = json.loads((place / "endpoint.json").read_text())
        key = (place / "key").read_text()
    except OSError:  # MLflow's variables need a server
        return variables
    return variables | {
        "MLFLOW_TRACKING_URI": f"{endpoint['url']}/mlflow/v1.0{job.workspace}",
        "MLFLOW_TRACKING_TOKEN": entra.issue(key, endpoint["url"], seconds=TOKEN_SECONDS),
        # Not the service's: its certificate is no one's that clients know.
        "MLFLOW_TRACKING_SERVER_CERT_PATH": endpoint["ca"],
        "MLFLOW_RUN_ID": job.name,
        "MLFLOW_EXPERIMENT_ID": variables["AZUREML_EXPERIMENT_ID"],
        "MLFLOW_EXPERIMENT_NAME": experiment,
    }


LOGS = "user_logs"


def environment(
    home: Path,
    job: JobRow,
    spec: Spec,
    place: RankPlace,
    *,
    run: Mapping[str, str],
    network: NodeNetwork,
    built: Path,
    root: Path,
    temp: Path,
    carrying: gpu_code.Carrying | None = None,
) -> dict[str, str]:
    """The whole environment of one process; makes the folders that it names.

    Args:
        home: The sandbox's home.
        job: The job's row.
        spec: What it asked for.
        place: Where the process stands.
        run: What tells it which run it belongs to (`tracking_variables`).
        network: The nodes.
        built: Folder of the environment.
        root: Folder of the node.
        temp: The job's temporary folder.
        carrying: How its GPU calls run on the CPU; None where they do not.
    """
    own_temp = temp / str(place.node)
    own_home = root / "home"
    for path in (own_temp, own_home):
        path.mkdir(parents=True, exist_ok=True)
    folder = job_folder(home, job.id)
    error = folder / LOGS / f"process_{place.rank:02d}_error.json"
    variables = {
        **base_variables(built, own_home, own_temp),
        "OMP_NUM_THREADS": str(threads(spec, place.node, network)),
        **torchrun_variables(torchrun_logs(folder, place.rank), error, network.ports[0]),
        **run,
        **spec.variables,
        # A job's choice is one of the cluster's GPUs; none at all it may choose here too.
        "CUDA_VISIBLE_DEVICES": gpus(spec, place.node, network)
        if spec.variables.get("CUDA_VISIBLE_DEVICES", "0")
        else "",
        **(carrying.apply(spec.variables) if carrying is not None else {}),
        **(STAND_INS if network.shared else {}),
        **rank_variables(spec, place, network),
        processes.MARK: processes.mark(home, job.id),
        processes.NODE: str(place.node),
    }
    if not network.shared and spec.scale is None and gpus(spec, place.node, network):
        variables[JUDGED] = "1"
    if carrying is not None:
        variables["PATH"] = gpu_code.programs(temp, variables["PATH"])
        worlds = gpu_code.worlds_folder(job_folder(home, job.id))
        worlds.mkdir(exist_ok=True)
        variables[gpu_code.WORLDS] = str(worlds)
    if spec.scale is not None:
        variables["PATH"] = scale.write(temp, variables["PATH"], spec.scale, spec.declared[0])
    for name, (_declared, used) in replaced(spec, network).items():
        if not used:
            del variables[name]
    return variables


def replaced(spec: Spec, network: NodeNetwork) -> dict[str, tuple[str, str]]:
    """Job variables that cannot hold on one machine: name → (declared, used); an empty ``used`` means dropped."""
    if not network.shared:
        return {}
    declared = {name: spec.variables[name] for name in STAND_INS if name in spec.variables}
    found = {name: (value, STAND_INS[name]) for name, value in declared.items() if value != STAND_INS[name]}
    for name in ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"):
        file = spec.variables.get(name)
        if file and not Path(file).is_file():  # a file of the real image
            found[name] = (file, "")
    return found


def torchrun_logs(folder: Path, rank: int) -> Path:
    """The folder where torchrun, started as this process, keeps the logs of its own ranks while it runs."""
    return folder / LOGS / "torchrun" / f"process_{rank:02d}"


def gpus_here() -> int:
    """GPUs of this machine."""
    return sum(path.name.removeprefix("nvidia").isdigit() for path in Path("/dev").glob("nvidia*"))
