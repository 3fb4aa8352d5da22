"""How the ranks of a job come to life: one module per launcher, and the union of them all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from jobs.launchers.accelerate import Accelerate
from jobs.launchers.custom import Custom
from jobs.launchers.deepspeed import DeepSpeed
from jobs.launchers.horovod import Horovod
from jobs.launchers.huggingface import HuggingFace
from jobs.launchers.jax import Jax
from jobs.launchers.lightning import Lightning
from jobs.launchers.mpi import Mpi
from jobs.launchers.per_process import PerProcess
from jobs.launchers.single_node import SingleNode
from jobs.launchers.tensorflow import TensorFlow
from jobs.launchers.torchrun import TorchRun

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
    | SingleNode
    | Jax,
    Field(discriminator="type"),
]

TYPED = (
    TorchRun,
    PerProcess,
    Mpi,
    Horovod,
    DeepSpeed,
    Lightning,
    HuggingFace,
    Accelerate,
    TensorFlow,
    SingleNode,
    Jax,
)
"""The launchers that know what they start, in the order in which the documentation shows them."""

__all__ = [
    "TYPED",
    "Accelerate",
    "Custom",
    "DeepSpeed",
    "Horovod",
    "HuggingFace",
    "Jax",
    "Launcher",
    "Lightning",
    "Mpi",
    "PerProcess",
    "SingleNode",
    "TensorFlow",
    "TorchRun",
]
