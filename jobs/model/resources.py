"""Azure ML's `resources`: what jobs, components, steps and sweeps say of the machines that they run on."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from jobs.model.values import Count, Model


class Resources(Model):
    """The machines of a run, as far as its cluster does not say."""

    nodes: Annotated[Count | None, Field(description="Number of nodes; unset: 1, or the component's.")] = None
    instance_type: Annotated[str | None, Field(description="VM size of a serverless job.")] = None
    locations: Annotated[tuple[str, ...] | None, Field(description="Regions that a serverless job may run in.")] = None
    max_instance_count: Annotated[Count | None, Field(description="Upper bound of nodes of an elastic job.")] = None
    shm_size: Annotated[
        str | None, Field(description="Shared memory of the container, e.g. `64g`; Azure ML's own default is 2g.")
    ] = None
    docker_args: Annotated[str | tuple[str, ...] | None, Field(description="Further arguments of `docker run`.")] = None
    rack_count: Annotated[Count | None, Field(description="Number of racks that the nodes are spread over.")] = None
    resource_properties: Annotated[
        dict[str, Any] | None, Field(description="Properties of the resources, passed through unchanged.")
    ] = None


RESOURCE_FIELDS = tuple(Resources.model_fields)
