"""Every launcher is a model that people write, and one pure function that lowers it onto Azure ML's wire.

The wire knows four kinds of distribution, which are models here too, in the words of a job file. Of some launchers
Azure ML starts one process on each node: there torchrun, accelerate or a Trainer starts the ranks. Of others it starts
the ranks itself, by its PyTorch or TensorFlow launch, or by mpirun over all nodes; `Custom` takes its own words as they
are. Commands that a launcher cannot start several times have findings.
"""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

from pydantic import Field, StrictBool, StrictInt, StrictStr

from amlstack.base.findings import Finding, Level, stated
from amlstack.code_reading.shell import last_step, split, starter
from jobs.values import Count, Model


class PyTorchDistribution(Model):
    """One process group of ``torch.distributed``; Azure ML sets its variables on every process."""

    type: Literal["pytorch"] = "pytorch"
    process_count_per_instance: Count | None = None
    """Processes per node; unset: 1."""


class MpiDistribution(Model):
    """``mpirun`` over all nodes; Open MPI's variables on every process."""

    type: Literal["mpi"] = "mpi"
    process_count_per_instance: Count | None = None
    """Processes per node; unset: 1."""


class TensorFlowDistribution(Model):
    """Workers and parameter servers; ``TF_CONFIG`` on every process."""

    type: Literal["tensorflow"] = "tensorflow"
    worker_count: Count | None = None
    """Workers; unset: one per node."""
    parameter_server_count: Annotated[StrictInt, Field(ge=0)] | StrictStr | None = 0
    """Parameter servers."""


class RayDistribution(Model):
    """A Ray cluster over the nodes. Experimental: carried as azure-ai-ml sends it."""

    type: Literal["ray"] = "ray"
    port: StrictInt | None = None
    """Port of the head node."""
    address: StrictStr | None = None
    """Address of the head node."""
    include_dashboard: StrictBool | None = None
    """Start the dashboard."""
    dashboard_port: StrictInt | None = None
    """Port of the dashboard."""
    head_node_additional_args: StrictStr | None = None
    """Added to `ray start` on the head."""
    worker_node_additional_args: StrictStr | None = None
    """Added to `ray start` on the workers."""


Distribution = Annotated[
    PyTorchDistribution | MpiDistribution | TensorFlowDistribution | RayDistribution, Field(discriminator="type")
]


Collectives = Literal["nccl", "gloo", "mpi"]


class Shape(NamedTuple):
    """The nodes that a launcher is lowered onto.

    Attributes:
        nodes: Number of nodes.
        gpus: GPUs of one node; 0 on CPU sizes; None when the size is unknown.
    """

    nodes: int
    gpus: int | None


class Lowered(NamedTuple):
    """A launcher in Azure ML's own words.

    Attributes:
        command: The command as it goes over the wire.
        distribution: The distribution as it goes over the wire; None for none.
        processes_per_node: Ranks on each node, those started by the command itself included; None when unknown.
        environment: Variables that the launcher needs, name to (value, why).
        findings: What is wrong.
    """

    command: str
    distribution: Distribution | None
    processes_per_node: int | None
    environment: Mapping[str, tuple[str, str]]
    findings: tuple[Finding, ...] = ()


class BaseLauncher(Model):
    """Base of all launchers."""

    RESERVED: ClassVar[frozenset[str]] = frozenset()
    """Variables that Azure ML or the launcher sets on each process; a job must not set them itself."""

    WHY: ClassVar[str] = ""
    """The reason for which the job is lowered as it is, in a sentence; shown beside what was added."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """The job in Azure ML's own words."""
        raise NotImplementedError

    @property
    def reserved(self) -> frozenset[str]:
        """The variables that are set for this job."""
        return self.RESERVED

    def code_files(self) -> tuple[tuple[str, str], ...]:
        """Files of the code folder that the launcher names: the field, and the path in the folder."""
        return ()


class TypedLauncher(BaseLauncher):
    """Base of the launchers that know what they start, and may therefore be enriched."""

    backend: Collectives | None = None
    """The backend of the collectives; unset: NCCL on GPUs, gloo without."""

    def collectives(self, shape: Shape) -> Collectives:
        """The carrier of this job's collectives, by which the fabric's variables are chosen."""
        return self.backend or ("nccl" if shape.gpus else "gloo")


def starts_itself(command: str, ranks: int, launcher: str) -> tuple[Finding, ...]:
    """The finding on a command that starts ranks although each process of it is one rank already."""
    program = starter(command)
    if program is None or ranks <= 1:
        return ()
    return (stated("launcher-in-command", "command", program=program, ranks=ranks, launcher=launcher),)


def put_before(program: str, command: str, launcher: str) -> tuple[str, tuple[Finding, ...]]:
    """A command with a program in front of the python process that is its last step.

    Returns:
        The command as it is, with a finding, where that step is no python process that ``launcher`` could start.
    """
    parts = split(command)
    if parts is None:
        return command, (_not_python(command, launcher),)
    return f"{parts.before}{program} {parts.program}", ()


def _not_python(command: str, launcher: str) -> Finding:
    if program := starter(command):
        return stated("launcher-in-command/not-python", "command", program=program, launcher=launcher)
    step = command[last_step(command) :].strip()
    return stated("command-not-python", "command", text=step if len(step) <= 60 else step[:57] + "…", launcher=launcher)


Ranks = Annotated[StrictInt, Field(ge=1)]

_OWN_STORE = (
    "After a restart nodes count the attempts differently and would meet, in the store they share, at addresses of "
    "ranks that are gone; so each attempt gets a store of its own."
)
RESTARTS = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": ("1", _OWN_STORE)}
"""Measured with torch 2.8 and gloo on two nodes: without it the first restart fails, with it ranks train on."""

PROGRAMS = {
    "torchrun": "torchrun",
    "run": "python -m torch.distributed.run",
    "launch": "python -m torch.distributed.launch --use_env",
}


class TorchRun(TypedLauncher):
    """PyTorch, launched per node: Azure ML starts one process on each node, ``torchrun`` starts the ranks.

    Write the training command as for one process; it is lowered to ``torchrun … train.py``. Azure ML sets
    ``MASTER_ADDR``, ``MASTER_PORT`` and ``NODE_RANK``, torchrun sets each rank's ``RANK``, ``LOCAL_RANK`` and
    ``WORLD_SIZE``.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset(
        {
            "MASTER_ADDR",
            "MASTER_PORT",
            "WORLD_SIZE",
            "RANK",
            "LOCAL_RANK",
            "NODE_RANK",
            "GROUP_RANK",
            "LOCAL_WORLD_SIZE",
        }
    )

    WHY: ClassVar[str] = "Azure ML starts one process on each node, and torchrun there starts and watches the ranks."

    type: Literal["torchrun"] = "torchrun"
    processes_per_node: Ranks | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""
    max_restarts: Annotated[StrictInt, Field(ge=0)] = 0
    """The number of times that torchrun starts all ranks again after one failed; by c10d on several nodes."""
    rdzv: Literal["static", "c10d"] | None = None
    """The rendezvous of the nodes; unset: static, with restarts c10d."""
    program: Literal["torchrun", "run", "launch"] = "torchrun"
    """`torchrun`, its module torch.distributed.run, or the older torch.distributed.launch."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Put torchrun in front of the command's training process."""
        ranks = self.processes_per_node or shape.gpus or (1 if shape.gpus == 0 else None)
        program = " ".join([PROGRAMS[self.program], *self._arguments(shape, ranks)])
        lowered, findings = put_before(program, command, "TorchRun")
        if self.max_restarts and self._rendezvous == "static" and shape.nodes > 1:
            findings += (
                Finding(
                    "torchrun-restarts",
                    "launcher.rdzv",
                    f"max_restarts is {self.max_restarts} with a static rendezvous on {shape.nodes} nodes",
                    "Only a c10d rendezvous brings all nodes' ranks back together after a restart",
                    "Write rdzv='c10d', or leave it out.",
                ),
            )
        restarts = self.max_restarts and self._rendezvous == "c10d" and shape.nodes > 1
        distribution = PyTorchDistribution(process_count_per_instance=1)
        return Lowered(lowered, distribution, ranks, RESTARTS if restarts else {}, findings)

    @property
    def _rendezvous(self) -> str:
        return self.rdzv or ("c10d" if self.max_restarts else "static")

    # Options are spelt with underscores: torchrun before 2.0 knows no other form.
    def _arguments(self, shape: Shape, ranks: int | None) -> list[str]:
        arguments = [f"--nnodes {shape.nodes}", f"--nproc_per_node {ranks or 'gpu'}"]
        if self._rendezvous == "c10d":
            arguments += [
                "--rdzv_backend c10d",
                "--rdzv_endpoint $MASTER_ADDR:$MASTER_PORT",
                "--rdzv_id ${AZUREML_RUN_ID:-job}",
            ]
        else:
            arguments += ["--node_rank $NODE_RANK", "--master_addr $MASTER_ADDR", "--master_port $MASTER_PORT"]
        if self.max_restarts:
            arguments.append(f"--max_restarts {self.max_restarts}")
        return arguments


class Accelerate(TypedLauncher):
    """Hugging Face Accelerate, launched per node; its total of processes is worked out from nodes and ranks."""

    RESERVED: ClassVar[frozenset[str]] = TorchRun.RESERVED
    WHY: ClassVar[str] = "Azure ML starts one process on each node, and accelerate there starts the ranks."

    type: Literal["accelerate"] = "accelerate"
    processes_per_node: Ranks | None = None
    """Ranks per node (accelerate itself counts in total); unset: one per GPU, or 1."""
    mixed_precision: Literal["no", "fp16", "bf16", "fp8"] | None = None
    """Handed on as `--mixed_precision`."""
    config_file: str | None = None
    """Accelerate's configuration in the code folder; counts here win over it."""

    def code_files(self) -> tuple[tuple[str, str], ...]:
        """The configuration, which must lie in the code folder."""
        return (("launcher.config_file", self.config_file),) if self.config_file else ()

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Put accelerate launch in front of the command's training process."""
        ranks = self.processes_per_node or shape.gpus or 1
        total = ranks * shape.nodes
        words = ["accelerate launch", *([f"--config_file {self.config_file}"] if self.config_file else [])]
        if total > 1:
            words.append("--multi_gpu")
        words += [
            f"--num_machines {shape.nodes}",
            f"--num_processes {total}",
            "--machine_rank $NODE_RANK",
            "--main_process_ip $MASTER_ADDR",
            "--main_process_port $MASTER_PORT",
        ]
        if self.mixed_precision:
            words.append(f"--mixed_precision {self.mixed_precision}")
        lowered, findings = put_before(" ".join(words), command, "Accelerate")
        return Lowered(lowered, PyTorchDistribution(process_count_per_instance=1), ranks, {}, findings)


class SingleNode(TypedLauncher):
    """One node without a distribution: torchrun starts a rank per GPU there; one rank leaves the command as it is."""

    RESERVED: ClassVar[frozenset[str]] = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
    WHY: ClassVar[str] = "On one node torchrun finds its ranks by itself."

    type: Literal["single-node"] = "single-node"
    backend: Collectives | None = None
    """The backend of the collectives; unset: nothing between nodes, so that no variable is added."""
    processes_per_node: Ranks | None = None
    """Ranks; unset: one per GPU, or 1."""

    def collectives(self, shape: Shape) -> Collectives:
        """Nothing leaves the node, so that no fabric's variable is wanted."""
        del shape
        return self.backend or "gloo"

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Put a standalone torchrun in front of the training process, when it is to have several ranks."""
        ranks = self.processes_per_node or shape.gpus or 1
        findings: tuple[Finding, ...] = ()
        if shape.nodes > 1:
            findings += (stated("single-node", "nodes", shape=shape),)
        lowered = command
        if ranks > 1:
            lowered, wrong = put_before(f"torchrun --standalone --nproc_per_node {ranks}", command, "SingleNode")
            findings += wrong
        return Lowered(lowered, None, ranks, {}, findings)


UNSET = ("WORLD_SIZE", "RANK", "LOCAL_RANK")
"""Azure ML sets these for its one process per node; Lightning then believes that its ranks run already."""

_FLAG = r"--(?:trainer\.)?(?P<name>num_nodes|devices)[=\s]+(?P<value>\d+)\b"


class Lightning(TypedLauncher):
    """PyTorch Lightning, launched per node: the Trainer starts one rank per device.

    The Trainer's ``num_nodes`` and ``devices`` must be the job's: hand them on with ``arguments``, or write them in the
    command, where they are compared.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset({"MASTER_ADDR", "MASTER_PORT", "NODE_RANK", *UNSET})
    WHY: ClassVar[str] = (
        "Lightning starts a node's ranks itself, and wants MASTER_ADDR, MASTER_PORT and NODE_RANK set and no rank."
    )

    type: Literal["lightning"] = "lightning"
    processes_per_node: Ranks | None = None
    """Ranks per node (not in total), the Trainer's `devices`; unset: one per GPU, or 1."""
    arguments: Literal["none", "cli", "flags"] = "none"
    """The way in which num_nodes and devices reach the Trainer: not at all, as LightningCLI's `--trainer.num_nodes`,
    or as `--num_nodes`.
    """

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Take the ranks out of the process's environment, and hand the counts on."""
        ranks = self.processes_per_node or shape.gpus or (1 if shape.gpus == 0 else None)
        unset = " ".join(f"-u {name}" for name in UNSET)
        lowered, wrong = put_before(f"env {unset} python", command, "Lightning")
        if not wrong:
            lowered += self._node_settings(shape.nodes, ranks)
        findings = self._disagreements(command, shape.nodes, ranks) + wrong
        return Lowered(lowered, PyTorchDistribution(process_count_per_instance=1), ranks, {}, findings)

    def _node_settings(self, nodes: int, ranks: int | None) -> str:
        if self.arguments == "none":
            return ""
        prefix = "--trainer." if self.arguments == "cli" else "--"
        return f" {prefix}num_nodes {nodes} {prefix}devices {ranks or 'auto'}"

    def _disagreements(self, command: str, nodes: int, ranks: int | None) -> tuple[Finding, ...]:
        expected = {"num_nodes": nodes, "devices": ranks}
        return tuple(
            stated("lightning-counts", "command", match=match[0], expected=expected[match["name"]])
            for match in re.finditer(_FLAG, command)
            if expected[match["name"]] not in (None, int(match["value"]))
        )


class HuggingFace(TypedLauncher):
    """A script on the transformers Trainer, e.g. ``run_glue.py``; the Trainer itself needs no change.

    It is the launcher of a Trainer with DeepSpeed, too (``TrainingArguments(deepspeed=...)``): the Trainer takes its
    ranks from the variables of torchrun, which the launcher ``DeepSpeed`` on MPI does not set.
    """

    RESERVED: ClassVar[frozenset[str]] = TorchRun.RESERVED
    WHY: ClassVar[str] = "The Trainer reads its rank from the environment, which torchrun or Azure ML sets."

    type: Literal["huggingface"] = "huggingface"
    per: Literal["node", "process"] = "node"
    """`node`: torchrun on each node; `process`: Azure ML's ranks."""
    processes_per_node: Ranks | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""
    local_rank_argument: StrictBool = False
    """Append `--local_rank $LOCAL_RANK` per process, for a Trainer that reads only the argument."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """As TorchRun or PerProcess do."""
        if self.per == "node":
            return TorchRun(processes_per_node=self.processes_per_node).lower(command, shape)
        if self.local_rank_argument and "--local_rank" not in command:
            command = f"{command.rstrip()} --local_rank $LOCAL_RANK"
        return PerProcess(processes_per_node=self.processes_per_node).lower(command, shape)


class PerProcess(TypedLauncher):
    """PyTorch, launched per process: Azure ML runs the command once per rank and sets its variables.

    The command stays as written; ``torch.distributed`` reads ``MASTER_ADDR``, ``MASTER_PORT``, ``RANK``,
    ``LOCAL_RANK`` and ``WORLD_SIZE``.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset(
        {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "NODE_RANK"}
    )

    WHY: ClassVar[str] = "Azure ML itself starts every rank and tells it who it is."

    type: Literal["per-process"] = "per-process"
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Name the ranks per node; the command is run as it is."""
        ranks = self.processes_per_node or shape.gpus or 1
        findings = starts_itself(command, ranks, "PerProcess")
        return Lowered(command, PyTorchDistribution(process_count_per_instance=ranks), ranks, {}, findings)


class TensorFlow(TypedLauncher):
    """Native distributed TensorFlow: one process per worker, which uses all GPUs of its node.

    ``MultiWorkerMirroredStrategy`` needs workers only; the parameter server strategy needs servers too.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset({"TF_CONFIG"})
    WHY: ClassVar[str] = "Azure ML starts the workers and writes TF_CONFIG for each of them."

    type: Literal["tensorflow"] = "tensorflow"
    workers: Annotated[StrictInt, Field(ge=1)] | None = None
    """Workers in total; unset: one per node."""
    parameter_servers: Annotated[StrictInt, Field(ge=0)] = 0
    """Parameter servers in total."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Name workers and servers; the command is run as it is."""
        workers = self.workers or shape.nodes
        findings = starts_itself(command, workers, "TensorFlow")
        if workers % shape.nodes:
            findings += (stated("workers-on-nodes", "launcher.workers", Level.WARNING, workers=workers, shape=shape),)
        spread = TensorFlowDistribution(worker_count=workers, parameter_server_count=self.parameter_servers)
        return Lowered(command, spread, max(1, workers // shape.nodes), {}, findings)


MPI_RESERVED = frozenset(
    {
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "AZ_BATCH_MASTER_NODE",
        "AZ_BATCHAI_MPI_MASTER_NODE",
    }
)


class Mpi(TypedLauncher):
    """MPI: Azure ML runs the command under ``mpirun``, once per process.

    As many processes per node as GPUs make it a per-process launch; one per node leaves the ranks of a node to the
    command (``OMPI_COMM_WORLD_RANK`` is then the node's rank). ``MASTER_ADDR`` is not set:
    ``AZ_BATCH_MASTER_NODE`` holds the first node's address and port, and is absent on one node.
    """

    RESERVED: ClassVar[frozenset[str]] = MPI_RESERVED
    WHY: ClassVar[str] = "Azure ML writes the mpirun line and starts every rank with it."

    type: Literal["mpi"] = "mpi"
    backend: Collectives | None = None
    """The backend of the collectives; unset: MPI itself, so that no variable of NCCL's is added."""
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
    """Processes per node (not in total); 1: per-node launch; unset: one per GPU, or 1."""

    def collectives(self, shape: Shape) -> Collectives:
        """MPI's own unless the job says otherwise: NCCL's variables would push MPI's data onto Ethernet."""
        del shape
        return self.backend or "mpi"

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Name the processes per node; the command is run as it is."""
        ranks = self.processes_per_node or shape.gpus or 1
        findings = starts_itself(command, ranks, "Mpi")
        if self.backend is None and shape.gpus and shape.nodes > 1:
            findings += (stated("backend-unsaid", "launcher.backend", Level.INFO),)
        return Lowered(command, MpiDistribution(process_count_per_instance=ranks), ranks, {}, findings)


class Horovod(TypedLauncher):
    """Horovod for PyTorch or TensorFlow on MPI: one process per GPU; ``hvd.init()`` finds its rank by itself.

    The image must hold Open MPI and Horovod. ``horovodrun`` is not used: Azure ML writes the mpirun line.
    """

    RESERVED: ClassVar[frozenset[str]] = MPI_RESERVED
    WHY: ClassVar[str] = "Horovod's ranks are started by mpirun, which Azure ML runs."

    type: Literal["horovod"] = "horovod"
    framework: Literal["pytorch", "tensorflow"] = "pytorch"
    """The framework that Horovod serves; both are launched alike."""
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Name the ranks per node; the command is run as it is."""
        ranks = self.processes_per_node or shape.gpus or 1
        findings = starts_itself(command, ranks, "Horovod")
        return Lowered(command, MpiDistribution(process_count_per_instance=ranks), ranks, {}, findings)


class DeepSpeed(TypedLauncher):
    """DeepSpeed: one process per GPU; ``deepspeed.initialize()`` finds its rank.

    On MPI the image must hold Open MPI and mpi4py. No hostfile is written: Azure ML knows the nodes. A Hugging Face
    Trainer with DeepSpeed takes the launcher ``HuggingFace``.

    With autotuning Azure ML starts one process on each node, `python -m amlnode deepspeed`, and the first runs
    DeepSpeed's tuner. The tuner starts each trial with a hostfile, ssh and pdsh: amlnode writes the hostfile out of the
    job's environment and stands in for the other two, so that no key, no ssh server and no pdsh is needed. What was
    found lies in `outputs/autotuning_results`. The image must hold `deepspeed[autotuning]`.
    """

    RESERVED: ClassVar[frozenset[str]] = MPI_RESERVED | PerProcess.RESERVED
    WHY: ClassVar[str] = "DeepSpeed's own launcher needs ssh and a hostfile; Azure ML starts the ranks instead."

    type: Literal["deepspeed"] = "deepspeed"
    on: Literal["mpi", "pytorch"] = "mpi"
    """The launcher of the ranks: mpirun, or Azure ML's PyTorch launch."""
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""
    config: str | None = None
    """DeepSpeed's configuration in the code folder; handed on as `--deepspeed_config`."""
    autotuning: Literal["tune", "run"] | None = None
    """Search the best configuration (tune), and train with it (run)."""

    def code_files(self) -> tuple[tuple[str, str], ...]:
        """The configuration, which must lie in the code folder."""
        return (("launcher.config", self.config),) if self.config else ()

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Hand on the configuration and name the ranks per node; autotuning goes through DeepSpeed's own launcher."""
        ranks = self.processes_per_node or shape.gpus or 1
        with_config = self._configured(command)
        if self.autotuning is not None:
            return self._tuned(with_config, ranks, shape)
        kind = MpiDistribution if self.on == "mpi" else PyTorchDistribution
        findings = starts_itself(command, ranks, "DeepSpeed")
        return Lowered(with_config, kind(process_count_per_instance=ranks), ranks, {}, findings)

    def _configured(self, command: str) -> str:
        if self.config is None or "--deepspeed_config" in command:
            return command
        switch = "" if re.search(r"--deepspeed(?=\s|=|$)", command) else " --deepspeed"
        return f"{command.rstrip()}{switch} --deepspeed_config {self.config}"

    def _tuned(self, command: str, ranks: int, shape: Shape) -> Lowered:
        tuner = f"python -m amlnode deepspeed --nproc {ranks} --autotuning {self.autotuning}"
        lowered, findings = put_before(tuner, command, "DeepSpeed")
        if not re.search(r"--deepspeed_config(?=\s|=)|--deepspeed[\s=]+[^\s-]", command):
            findings += (stated("autotuning-config", "launcher.config"),)
        per_node = PyTorchDistribution(process_count_per_instance=1) if shape.nodes > 1 else None
        return Lowered(lowered, per_node, ranks, {}, findings)


class Custom(BaseLauncher):
    """A distribution as Azure ML writes it, or none; nothing is added unless the job asks with ``enrich``."""

    type: Literal["custom"] = "custom"
    distribution: Distribution | None = None
    """Azure ML's own distribution; unset: every node runs the command once."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Nothing to do: it is the wire's form already."""
        del shape
        return Lowered(command, self.distribution, self._processes(), {})

    def collectives(self, shape: Shape) -> Collectives:
        """MPI's where MPI starts the ranks; whether NCCL carries them instead is not known here."""
        if isinstance(self.distribution, MpiDistribution):
            return "mpi"
        return "nccl" if shape.gpus else "gloo"

    def _processes(self) -> int | None:
        match self.distribution:
            case (
                PyTorchDistribution(process_count_per_instance=count)
                | MpiDistribution(process_count_per_instance=count)
            ):
                return count if isinstance(count, int) else (1 if count is None else None)
            case TensorFlowDistribution() | None:
                return 1
            case _:
                return None

    @property
    def reserved(self) -> frozenset[str]:
        """The variables that Azure ML sets for this distribution."""
        return RESERVED_BY_KIND.get(self.distribution.type, frozenset()) if self.distribution else frozenset()


RESERVED_BY_KIND: dict[str, frozenset[str]] = {
    "pytorch": PerProcess.RESERVED,
    "tensorflow": frozenset({"TF_CONFIG"}),
    "mpi": MPI_RESERVED,
}


Launcher = Annotated[
    Custom
    | TorchRun
    | PerProcess
    | Mpi
    | Horovod
    | DeepSpeed
    | Lightning
    | HuggingFace
    | Accelerate
    | TensorFlow
    | SingleNode,
    Field(discriminator="type"),
]

LAUNCHERS: tuple[type[BaseLauncher], ...] = get_args(get_args(Launcher)[0])
TYPED = tuple(kind for kind in LAUNCHERS if issubclass(kind, TypedLauncher))
"""The launchers that know what they start, in the order in which the documentation shows them."""
