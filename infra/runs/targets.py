"""Targets of a stack's jobs: one of its clusters, a cluster of others, or serverless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.base.text import did_you_mean
from amlstack.catalog import regions
from jobs.planning.plans import Target
from jobs.wire.references import is_serverless

if TYPE_CHECKING:
    from infra.settings import Reading
    from jobs.model.job import Job

LOCAL = "local"


def resolve_target(job: Job, reading: Reading) -> tuple[Target, list[Finding]]:
    """The target of a job, and what is wrong with it; nothing is judged that depends on doubtful settings.

    Args:
        job: As its file declares it; ``compute`` is a name, ``azureml:NAME``, an ARM id or ``local``.
        reading: The stack's settings.
    """
    settings = reading.partial
    home = settings.location if settings is not None and not reading.doubts("location") else None
    if is_serverless(job.compute):
        spot = job.queue_settings is not None and job.queue_settings.job_tier == "spot"
        return Target(size=job.instance_type, region=_region((job.locations or (home,))[0]), low_priority=spot), []
    name = str(job.compute).removeprefix("azureml:")
    if name.lower() == LOCAL:
        return Target(), []
    if name.startswith("/"):  # a cluster that somebody else owns: nothing is known of it
        return Target(cluster=name.rsplit("/", 1)[-1]), []
    clusters = settings.clusters if settings else ()
    for index, cluster in enumerate(clusters):
        if cluster.name.lower() == name.lower() and not reading.doubts("clusters", index, "name"):
            size = None if reading.doubts("clusters", index, "size") else cluster.size
            most = None if reading.doubts("clusters", index, "nodes") else cluster.nodes.max
            return (
                Target(
                    size,
                    cluster.name,
                    most,
                    cluster.single_node_jobs,
                    region=_region(cluster.location or home),
                    low_priority=cluster.priority == "low_priority",
                ),
                [],
            )
    if reading.doubts("clusters"):
        return Target(cluster=name), []
    return Target(cluster=name), [
        Finding(
            "cluster-unknown",
            "compute",
            f"The stack has no cluster `{name}`",
            "A job names a cluster of its stack, one that exists by its ARM id, or none to run serverless",
            did_you_mean(name, [cluster.name for cluster in clusters], otherwise="Declare it under amlstack:clusters."),
        )
    ]


def _region(written: str | None) -> str | None:
    return regions.code(written) if written else None
