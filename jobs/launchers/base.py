"""Every launcher is a model that people write, and one pure function that lowers it onto Azure ML's wire.

The wire knows four kinds of distribution, which are models here too, in the words of a job file. Commands that a
launcher cannot start several times have findings.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, StrictBool, StrictInt, StrictStr

from amlstack.base.findings import Finding
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
    return (
        Finding(
            "launcher-in-command",
            "command",
            f"The command starts ranks itself with `{program}`, and would be run {ranks} times",
            f"Under {launcher} every process is one rank",
            "Write the command as for one process, or use TorchRun, which launches per node.",
        ),
    )


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
        return Finding(
            "launcher-in-command",
            "command",
            f"The command starts the ranks itself with `{program}`",
            f"{launcher} writes that part, so that nodes and processes agree with the job",
            "Write the command as for one process (`python train.py …`), or leave the launcher out.",
        )
    step = command[last_step(command) :].strip()
    return Finding(
        "command-not-python",
        "command",
        f"The last step of the command, `{step if len(step) <= 60 else step[:57] + '…'}`, is not a python process",
        f"{launcher} starts a python script or module",
        "End the command with `python train.py …` or `python -m package …`.",
    )
