"""Jax: one process per node, which drives all its GPUs and finds the others by the first node's address."""

from __future__ import annotations

from typing import ClassVar, Literal

from jobs.launchers.base import Lowered, Shape, TypedLauncher
from jobs.launchers.commands import starts_itself
from jobs.model.distribution import PyTorch


class Jax(TypedLauncher):
    """One process per node, which Azure ML starts; the command stays as written.

    The script calls ``jax.distributed.initialize`` with ``MASTER_ADDR``, ``MASTER_PORT``, ``WORLD_SIZE`` and ``RANK``.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset(
        {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "NODE_RANK"}
    )

    WHY: ClassVar[str] = "A JAX process drives all GPUs of its node, so that each node gets one."

    type: Literal["jax"] = "jax"

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Name one process per node; the command is run as it is."""
        return Lowered(
            command=command,
            distribution=PyTorch(process_count_per_instance=1),
            processes_per_node=1,
            environment={},
            findings=starts_itself(command, shape.nodes, "Jax"),
        )
