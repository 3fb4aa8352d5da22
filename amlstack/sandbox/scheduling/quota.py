"""The subscription's quota of vCPUs per family of sizes, where somebody gives the sandbox one.

``AMLSTACK_SANDBOX_QUOTA="Standard NDASv4_A100 Family=192, Standard NCADSA100v4 Family=24"`` when the sandbox is
started; a family that is not named has no limit. Azure counts dedicated nodes so, whatever their cluster.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from amlstack.catalog import sizes
from amlstack.sandbox.store.store import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.catalog.sizes import Size
    from amlstack.sandbox.store.store import JobRow, Store

VARIABLE = "AMLSTACK_SANDBOX_QUOTA"
_HELP = "https://docs.microsoft.com/azure/machine-learning/how-to-manage-quotas#request-quota-increases"


def set_at_all(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether there is any quota."""
    return bool(environ.get(VARIABLE))


def limit(size: Size | None, environ: Mapping[str, str] = os.environ) -> int | None:
    """The quota of a size's family in vCPUs; None for no limit.

    Raises:
        ValueError: The variable is no list of ``family=number``.
    """
    if size is None or size.family is None:
        return None
    for part in filter(None, map(str.strip, environ.get(VARIABLE, "").split(","))):
        family, _, number = part.rpartition("=")
        if not (family and number.strip().isdigit()):
            message = f"{VARIABLE} is `{part}` in part; write `Standard NDASv4_A100 Family=192`, several with commas"
            raise ValueError(message)
        if _plain(family) == _plain(size.family):
            return int(number)
    return None


def refusal(size: Size | None, count: int) -> JobError | None:
    """What the service says of a job that the whole quota could not hold; None when it could."""
    quota = limit(size)
    if size is None or quota is None or count * _cores(size) <= quota:
        return None
    return JobError(
        "JobNodeCountExceedsCoreQuota",
        f"The specified subscription has a {size.family} vCPU quota of {quota} and is less than the requested job node "
        f"count of {count} which maps to {count * _cores(size)} vCPUs. Talk to your Subscription Admin or refer to "
        f"{_HELP} to increase the {size.family} vCPU quota.",
    )


def holds(store: Store, size: Size | None, new: int) -> bool:
    """Whether so many further nodes of a size fit beside those that are there now."""
    quota = limit(size)
    if size is None or quota is None or not new:
        return True
    by_cluster = {cluster.key: size_of_cluster(cluster.body) for cluster in store.clusters()}
    jobs = {job.id: job for job in store.jobs.list(active=True)}
    used = 0
    for node in store.nodes.all():
        there = by_cluster.get(node.cluster) or size_of_job(jobs.get(node.job or ""))
        if there is not None and there.family == size.family:
            used += _cores(there)
    return used + new * _cores(size) <= quota


def size_of_cluster(body: Mapping[str, object]) -> Size | None:
    """The size of a compute's nodes; None where it says none, or one that the catalogue lacks."""
    outer = body.get("properties")
    inner = outer.get("properties") if isinstance(outer, dict) else None
    return sizes.get(str(inner.get("vmSize") or "")) if isinstance(inner, dict) else None


def size_of_job(job: JobRow | None) -> Size | None:
    """The size that a serverless job names."""
    resources = job.properties.get("resources") if job is not None else None
    return sizes.get(str(resources.get("instanceType") or "")) if isinstance(resources, dict) else None


def _cores(size: Size) -> int:
    """What a node counts; a size of unknown vCPUs counts nothing."""
    return size.vcpus or 0


def _plain(family: str) -> str:
    """A family's name as both its spellings have it: `standardNDASv4_A100Family`, `Standard NDASv4_A100 Family`."""
    return re.sub(r"^standard|family$|[\s_]", "", family.strip().casefold()).removesuffix("family")
