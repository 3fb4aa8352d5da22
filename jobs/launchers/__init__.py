"""Launchers start the ranks of a job; here is the union of them all."""

from typing import Annotated, get_args

from pydantic import Field

from jobs.launchers.base import BaseLauncher, TypedLauncher
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

LAUNCHERS: tuple[type[BaseLauncher], ...] = get_args(get_args(Launcher)[0])
TYPED = tuple(kind for kind in LAUNCHERS if issubclass(kind, TypedLauncher))
"""The launchers that know what they start, in the order in which the documentation shows them."""
