"""Accelerate: ``accelerate launch`` on each node starts that node's ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from amlstack.code_reading.shell import split
from jobs.launchers.base import Lowered, Shape, TypedLauncher
from jobs.launchers.commands import not_python
from jobs.launchers.torchrun import TorchRun
from jobs.model.distribution import PyTorchDistribution

if TYPE_CHECKING:
    from amlstack.base.findings import Finding


class Accelerate(TypedLauncher):
    """Hugging Face Accelerate, launched per node; its total of processes is worked out from nodes and ranks."""

    RESERVED: ClassVar[frozenset[str]] = TorchRun.RESERVED
    WHY: ClassVar[str] = "Azure ML starts one process on each node, and accelerate there starts the ranks."

    type: Literal["accelerate"] = "accelerate"
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
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
        parts = split(command)
        findings: tuple[Finding, ...] = () if parts else (not_python(command, "Accelerate"),)
        lowered = command
        if parts is not None:
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
            lowered = parts.before + " ".join([*words, parts.program])
        return Lowered(lowered, PyTorchDistribution(process_count_per_instance=1), ranks, {}, findings)
