"""Launchers start the ranks of a job; here is the union of them all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from jobs.launchers.per_node import Accelerate, HuggingFace, Lightning, SingleNode, TorchRun
from jobs.launchers.per_process import Custom, DeepSpeed, Horovod, Mpi, PerProcess, TensorFlow

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
