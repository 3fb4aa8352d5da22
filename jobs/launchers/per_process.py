"""Launchers whose ranks Azure ML starts itself.

It does so by its PyTorch or TensorFlow launch, or by mpirun over all nodes; `Custom` takes its own words as they are.
"""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from amlstack.base.findings import Finding, Level
from jobs.launchers.base import (
    BaseLauncher,
    Collectives,
    Distribution,
    Lowered,
    MpiDistribution,
    PyTorchDistribution,
    Shape,
    TensorFlowDistribution,
    TypedLauncher,
    put_before,
    starts_itself,
)


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
            findings += (
                Finding(
                    "workers-on-nodes",
                    "launcher.workers",
                    f"{workers} workers on {shape.nodes} nodes",
                    "Workers are spread evenly, and each wants its GPUs for itself",
                    f"Write {shape.nodes}, or leave it out.",
                    Level.WARNING,
                ),
            )
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
            findings += (
                Finding(
                    "backend-unsaid",
                    "launcher.backend",
                    "The job does not say what carries its collectives",
                    "Under mpirun both MPI and NCCL can; NCCL's variables are added only when the job says so",
                    "Write backend='nccl' for PyTorch, Horovod or DeepSpeed with NCCL, backend='mpi' otherwise.",
                    Level.INFO,
                ),
            )
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
            findings += (
                Finding(
                    "autotuning-config",
                    "launcher.config",
                    "Autotuning without a configuration",
                    "The tuner varies a DeepSpeed configuration that the command names",
                    "Write config='ds_config.json', a file in the code folder.",
                ),
            )
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
