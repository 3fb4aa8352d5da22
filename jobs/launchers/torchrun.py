"""TorchRun: one launcher per node, which starts and watches that node's ranks (``torchrun``)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from amlstack.base.findings import Finding
from amlstack.code_reading.shell import split
from jobs.launchers.base import Lowered, Shape, TypedLauncher
from jobs.launchers.commands import not_python
from jobs.model.distribution import PyTorchDistribution

Count = Annotated[StrictInt, Field(ge=1)]

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
    nproc_per_node: Count | None = None
    """Ranks per node; unset: one per GPU, or 1."""
    max_restarts: Annotated[StrictInt, Field(ge=0)] = 0
    """How often torchrun starts all ranks again after one failed; by c10d on several nodes."""
    rdzv: Literal["static", "c10d"] | None = None
    """How the nodes find each other; unset: static, with restarts c10d."""
    program: Literal["torchrun", "run", "launch"] = "torchrun"
    """`torchrun`, its module torch.distributed.run, or the older torch.distributed.launch."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Put torchrun in front of the command's training process."""
        ranks = self.nproc_per_node or shape.gpus or (1 if shape.gpus == 0 else None)
        findings = []
        parts = split(command)
        if parts is None:
            findings.append(not_python(command, "TorchRun"))
        if self.max_restarts and self._rendezvous == "static" and shape.nodes > 1:
            findings.append(
                Finding(
                    "torchrun-restarts",
                    "launcher.rdzv",
                    f"max_restarts is {self.max_restarts} with a static rendezvous on {shape.nodes} nodes",
                    "Only a c10d rendezvous brings all nodes' ranks back together after a restart",
                    "Write rdzv='c10d', or leave it out.",
                )
            )
        lowered = command
        if parts is not None:
            words = [PROGRAMS[self.program], *self._arguments(shape, ranks)]
            lowered = parts.before + " ".join([*words, parts.program])
        return Lowered(
            command=lowered,
            distribution=PyTorchDistribution(process_count_per_instance=1),
            processes_per_node=ranks,
            environment=RESTARTS if self.max_restarts and self._rendezvous == "c10d" and shape.nodes > 1 else {},
            findings=tuple(findings),
        )

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
