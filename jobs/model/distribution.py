"""What Azure ML itself knows of distribution: the four kinds of its wire, as they are written in a job file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from jobs.model.values import Count, Model


class PyTorchDistribution(Model):
    """One process group of ``torch.distributed``; Azure ML sets its variables on every process."""

    type: Literal["pytorch"] = "pytorch"
    process_count_per_instance: Annotated[Count | None, Field(description="Processes per node; unset: 1.")] = None


class MpiDistribution(Model):
    """``mpirun`` over all nodes; Open MPI's variables on every process."""

    type: Literal["mpi"] = "mpi"
    process_count_per_instance: Annotated[Count | None, Field(description="Processes per node; unset: 1.")] = None


class TensorFlowDistribution(Model):
    """Workers and parameter servers; ``TF_CONFIG`` on every process."""

    type: Literal["tensorflow"] = "tensorflow"
    worker_count: Annotated[Count | None, Field(description="Workers; unset: one per node.")] = None
    parameter_server_count: Annotated[
        Annotated[StrictInt, Field(ge=0)] | StrictStr | None, Field(description="Parameter servers.")
    ] = 0


class RayDistribution(Model):
    """A Ray cluster over the nodes. Experimental: carried as azure-ai-ml sends it."""

    type: Literal["ray"] = "ray"
    port: Annotated[StrictInt | None, Field(description="Port of the head node.")] = None
    address: Annotated[StrictStr | None, Field(description="Address of the head node.")] = None
    include_dashboard: Annotated[StrictBool | None, Field(description="Start the dashboard.")] = None
    dashboard_port: Annotated[StrictInt | None, Field(description="Port of the dashboard.")] = None
    head_node_additional_args: Annotated[StrictStr | None, Field(description="Added to `ray start` on the head.")] = (
        None
    )
    worker_node_additional_args: Annotated[
        StrictStr | None, Field(description="Added to `ray start` on the workers.")
    ] = None


Distribution = Annotated[
    PyTorchDistribution | MpiDistribution | TensorFlowDistribution | RayDistribution, Field(discriminator="type")
]
