"""DeepSpeed: ranks started by mpirun or by Azure ML's PyTorch launch; by DeepSpeed's own launcher only to tune."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from amlstack.base.findings import Finding
from amlstack.code_reading.shell import split
from jobs.launchers.base import Lowered, Shape, TypedLauncher
from jobs.launchers.commands import not_python, starts_itself
from jobs.launchers.mpi import RESERVED as MPI_RESERVED
from jobs.launchers.per_process import PerProcess
from jobs.model import distribution


class DeepSpeed(TypedLauncher):
    """DeepSpeed: one process per GPU; ``deepspeed.initialize()`` finds its rank.

    On MPI the image must hold Open MPI and mpi4py. No hostfile is written: Azure ML knows the nodes.

    With autotuning Azure ML starts one process on each node, `python -m amlnode deepspeed`, and the first runs
    DeepSpeed's tuner. The tuner starts each trial with a hostfile, ssh and pdsh: amlnode writes the hostfile out of the
    job's environment and stands in for the other two, so that no key, no ssh server and no pdsh is needed. What was
    found lies in `outputs/autotuning_results`. The image must hold `deepspeed[autotuning]`.
    """

    RESERVED: ClassVar[frozenset[str]] = MPI_RESERVED | PerProcess.RESERVED
    WHY: ClassVar[str] = "DeepSpeed's own launcher needs ssh and a hostfile; Azure ML starts the ranks instead."

    type: Literal["deepspeed"] = "deepspeed"
    on: Literal["mpi", "pytorch"] = "mpi"
    """What starts the ranks: mpirun, or Azure ML's PyTorch launch."""
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
        kind: type[distribution.MpiDistribution | distribution.PyTorchDistribution]
        kind = distribution.MpiDistribution if self.on == "mpi" else distribution.PyTorchDistribution
        findings = starts_itself(command, ranks, "DeepSpeed")
        return Lowered(with_config, kind(process_count_per_instance=ranks), ranks, {}, findings)

    def _configured(self, command: str) -> str:
        if self.config is None or "--deepspeed_config" in command:
            return command
        switch = "" if re.search(r"--deepspeed(?=\s|=|$)", command) else " --deepspeed"
        return f"{command.rstrip()}{switch} --deepspeed_config {self.config}"

    def _tuned(self, command: str, ranks: int, shape: Shape) -> Lowered:
        parts = split(command)
        findings: tuple[Finding, ...] = () if parts else (not_python(command, "DeepSpeed"),)
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
        lowered = command
        if parts:
            tuner = f"python -m amlnode deepspeed --nproc {ranks} --autotuning {self.autotuning}"
            lowered = f"{parts.before}{tuner} {parts.program}"
        per_node = distribution.PyTorchDistribution(process_count_per_instance=1) if shape.nodes > 1 else None
        return Lowered(lowered, per_node, ranks, {}, findings)
