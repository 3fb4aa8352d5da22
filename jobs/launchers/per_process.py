"""PerProcess and TensorFlow: Azure ML itself starts every rank."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from amlstack.base.findings import Finding, Level
from jobs.launchers import base
from jobs.launchers.base import Lowered, PyTorchDistribution, Shape, TypedLauncher, starts_itself


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
        return Lowered(
            command=command,
            distribution=PyTorchDistribution(process_count_per_instance=ranks),
            processes_per_node=ranks,
            environment={},
            findings=starts_itself(command, ranks, "PerProcess"),
        )


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
        return Lowered(
            command,
            base.TensorFlowDistribution(worker_count=workers, parameter_server_count=self.parameter_servers),
            max(1, workers // shape.nodes),
            {},
            findings,
        )
