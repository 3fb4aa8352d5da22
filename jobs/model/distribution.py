"""What Azure ML itself knows of distribution: the four kinds of its wire, as they are written in a job file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from jobs.model.values import Count, Model


class PyTorchDistribution(Model):
    """One process group of ``torch.distributed``; Azure ML sets its variables on every process."""

    type: Literal["pytorch"] = "pytorch"
    process_count_per_instance: Count | None = None
    """Processes per node; unset: 1."""


class MpiDistribution(Model):
    """``mpirun`` over all nodes; Open MPI's variables on every process."""

    type: Literal["mpi"] = "mpi"
    process_count_per_instance: Count | None = None
    """Processes per node; unset: 1."""


class TensorFlowDistribution(Model):
    """Workers and parameter servers; ``TF_CONFIG`` on every process."""

    type: Literal["tensorflow"] = "tensorflow"
    worker_count: Count | None = None
    """Workers; unset: one per node."""
    parameter_server_count: Annotated[StrictInt, Field(ge=0)] | StrictStr | None = 0
    """Parameter servers."""


class RayDistribution(Model):
    """A Ray cluster over the nodes. Experimental: carried as azure-ai-ml sends it."""

    type: Literal["ray"] = "ray"
    port: StrictInt | None = None
    """Port of the head node."""
    address: StrictStr | None = None
    """Address of the head node."""
    include_dashboard: StrictBool | None = None
    """Start the dashboard."""
    dashboard_port: StrictInt | None = None
    """Port of the dashboard."""
    head_node_additional_args: StrictStr | None = None
    """Added to `ray start` on the head."""
    worker_node_additional_args: StrictStr | None = None
    """Added to `ray start` on the workers."""


Distribution = Annotated[
    PyTorchDistribution | MpiDistribution | TensorFlowDistribution | RayDistribution, Field(discriminator="type")
]
