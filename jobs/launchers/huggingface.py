"""HuggingFace: the transformers Trainer, launched per node by torchrun or per process by Azure ML."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from jobs.launchers.base import Lowered, Shape, TypedLauncher
from jobs.launchers.per_process import PerProcess
from jobs.launchers.torchrun import TorchRun


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
