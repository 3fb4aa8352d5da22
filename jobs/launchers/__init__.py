"""Launchers start the ranks of a job; here is the union of them all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from jobs.launchers.custom import Custom
from jobs.launchers.mpi import DeepSpeed, Horovod, Mpi
from jobs.launchers.per_process import PerProcess, TensorFlow
from jobs.launchers.torchrun import Accelerate, SingleNode, TorchRun
from jobs.launchers.trainers import HuggingFace, Lightning

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
    | SingleNode,
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
)
"""The launchers that know what they start, in the order in which the documentation shows them."""

__all__ = [
    "TYPED",
    "Accelerate",
    "Custom",
    "DeepSpeed",
    "Horovod",
    "HuggingFace",
    "Launcher",
    "Lightning",
    "Mpi",
    "PerProcess",
    "SingleNode",
    "TensorFlow",
    "TorchRun",
]
