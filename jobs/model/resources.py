"""Azure ML's `resources`: what jobs, components, steps and sweeps say of the machines that they run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.model.values import Count, Model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    class ResourceArguments(TypedDict, total=False):
        """What may be given for each field, for type checkers: wider than what the field holds."""

        nodes: int | str | None
        instance_type: str | None
        locations: Sequence[str] | None
        max_instance_count: int | str | None
        shm_size: str | None
        docker_args: str | Sequence[str] | None
        resource_properties: Mapping[str, Any] | None


class Resources(Model):
    """The machines of a run, as far as its cluster does not say."""

    nodes: Count | None = None
    """Number of nodes; unset: 1, or the component's."""
    instance_type: str | None = None
    """VM size of a serverless job."""
    locations: tuple[str, ...] | None = None
    """Regions that a serverless job may run in."""
    max_instance_count: Count | None = None
    """Upper bound of nodes of an elastic job."""
    shm_size: str | None = None
    """Shared memory of the container, e.g. `64g`; Azure ML's own default is 2g."""
    docker_args: str | tuple[str, ...] | None = None
    """Further arguments of `docker run`."""
    resource_properties: dict[str, Any] | None = None
    """Properties of the resources, passed through unchanged."""


RESOURCE_FIELDS = tuple(Resources.model_fields)
