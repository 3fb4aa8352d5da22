"""Lightning and HuggingFace: a Trainer counts the ranks, which it starts itself or finds in the environment."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from amlstack.base.findings import Finding
from amlstack.code_reading.shell import split
from jobs.launchers.base import Lowered, PyTorchDistribution, Shape, TypedLauncher, not_python
from jobs.launchers.per_process import PerProcess
from jobs.launchers.torchrun import TorchRun

UNSET = ("WORLD_SIZE", "RANK", "LOCAL_RANK")
"""Azure ML sets these for its one process per node; Lightning then believes that its ranks run already."""

_FLAG = re.compile(r"--(?:trainer\.)?(?P<name>num_nodes|devices)[=\s]+(?P<value>\d+)\b")


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
    devices: Annotated[StrictInt, Field(ge=1)] | None = None
    """Ranks per node; unset: one per GPU, or 1."""
    arguments: Literal["none", "cli", "flags"] = "none"
    """How num_nodes and devices reach the Trainer: not at all, as LightningCLI's `--trainer.num_nodes`, or as
    `--num_nodes`.
    """

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Take the ranks out of the process's environment, and hand the counts on."""
        ranks = self.devices or shape.gpus or (1 if shape.gpus == 0 else None)
        parts = split(command)
        findings: tuple[Finding, ...] = self._disagreements(command, shape.nodes, ranks)
        lowered = command
        if parts is None:
            findings += (not_python(command, "Lightning"),)
        else:
            unset = " ".join(f"-u {name}" for name in UNSET)
            lowered = f"{parts.before}env {unset} python {parts.program}{self._node_settings(shape.nodes, ranks)}"
        return Lowered(lowered, PyTorchDistribution(process_count_per_instance=1), ranks, {}, findings)

    def _node_settings(self, nodes: int, ranks: int | None) -> str:
        if self.arguments == "none":
            return ""
        prefix = "--trainer." if self.arguments == "cli" else "--"
        return f" {prefix}num_nodes {nodes} {prefix}devices {ranks or 'auto'}"

    def _disagreements(self, command: str, nodes: int, ranks: int | None) -> tuple[Finding, ...]:
        expected = {"num_nodes": nodes, "devices": ranks}
        return tuple(
            Finding(
                "lightning-counts",
                "command",
                f"`{match[0]}` in the command, and the job has {expected[match['name']]}",
                "The Trainer waits for as many ranks as its num_nodes and devices say",
                "Leave it out and set the launcher's `arguments`, or write the job's number.",
            )
            for match in _FLAG.finditer(command)
            if expected[match["name"]] not in (None, int(match["value"]))
        )


class HuggingFace(TypedLauncher):
    """A script on the transformers Trainer, e.g. ``run_glue.py``; the Trainer itself needs no change."""

    RESERVED: ClassVar[frozenset[str]] = TorchRun.RESERVED
    WHY: ClassVar[str] = "The Trainer reads its rank from the environment, which torchrun or Azure ML sets."

    type: Literal["huggingface"] = "huggingface"
    per: Literal["node", "process"] = "node"
    """`node`: torchrun on each node; `process`: Azure ML's ranks."""
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""
    local_rank_argument: StrictBool = False
    """Append `--local_rank $LOCAL_RANK` per process, for a Trainer that reads only the argument."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """As TorchRun or PerProcess do."""
        if self.per == "node":
            return TorchRun(nproc_per_node=self.processes_per_node).lower(command, shape)
        if self.local_rank_argument and "--local_rank" not in command:
            command = f"{command.rstrip()} --local_rank $LOCAL_RANK"
        return PerProcess(processes_per_node=self.processes_per_node).lower(command, shape)
