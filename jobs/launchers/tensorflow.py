"""TensorFlow: workers and parameter servers, which TF_CONFIG distinguishes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from amlstack.base.findings import Finding, Level
from jobs.launchers.base import Lowered, Shape, TypedLauncher
from jobs.launchers.commands import starts_itself
from jobs.model import distribution


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
            distribution.TensorFlowDistribution(worker_count=workers, parameter_server_count=self.parameter_servers),
            max(1, workers // shape.nodes),
            {},
            findings,
        )
