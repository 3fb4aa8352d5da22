"""The rule that this project exists for: work across nodes needs a fabric that the training reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.catalog.sizes import substitutes
from policies.checks.rule import Rule

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size

SINGLE_NODE_TAG = "amlstack:single_node_jobs"
"""Tag of a cluster resource (value ``"true"``): no job on it spans nodes. Azure ML has no property for that."""

RULE = Rule(
    code="sriov-fabric",
    title="Work across nodes needs a size whose InfiniBand is exposed by SR-IOV.",
    what=(
        "Refuses a size that has RDMA without SR-IOV, whatever the number of nodes. Refuses a GPU size without "
        "InfiniBand for more than one node, unless its cluster is declared for single-node jobs only; a multi-node job "
        "on such a cluster is then refused in its place, whatever the cluster's size. CPU sizes without RDMA are "
        "allowed. For a cluster the number of nodes is its maximum, for a job its instance count."
    ),
    why=(
        "NCCL, UCX and Open MPI reach InfiniBand through SR-IOV devices only. Without one they fall back to Ethernet "
        "and say so in one line of one log: the job runs, loses between one and two orders of magnitude of bandwidth, "
        "and every GPU is paid for while it waits."
    ),
    example="""\
clusters:
  - name: train
    size: Standard_NC96ads_A100_v4   # GPUs, no InfiniBand
    nodes: {min: 0, max: 4}
""",
    instead="""\
clusters:
  - name: train
    size: Standard_ND96amsr_A100_v4
    nodes: {min: 0, max: 4}
  - name: single
    size: Standard_NC96ads_A100_v4
    nodes: {min: 0, max: 4}
    single_node_jobs: true           # many jobs, each on one node
""",
    options=(
        "`single_node_jobs: true` on a cluster (as a resource: the tag `amlstack:single_node_jobs` with the value "
        '`"true"`) allows a GPU size without InfiniBand there.'
    ),
)


def check(size: Size, *, nodes: int, on: date, single_node_jobs: bool = False, where: str = "size") -> Finding | None:
    """Judge one size for a number of nodes.

    Args:
        size: The size as the catalogue knows it.
        nodes: Most nodes that one job can get: a cluster's maximum, a job's instance count.
        on: The day on which the remedy must be available.
        single_node_jobs: Whether the cluster says that no job on it spans nodes. Never set for a job.
        where: Path of the size in the declaration.
    """
    if size.fabric.rdma and not size.fabric.sriov:
        return Finding(
            RULE.code,
            where,
            seen=f"{size.name} has RDMA without SR-IOV",
            rule="NCCL, UCX and Open MPI reach InfiniBand through SR-IOV only and would train over Ethernet",
            remedy=_remedy(size, on),
        )
    if size.gpus and not size.fabric.usable and nodes > 1 and not single_node_jobs:
        return Finding(
            RULE.code,
            where,
            seen=f"{size.name} ({size.describe()}) with {nodes} nodes",
            rule="GPU jobs across nodes need InfiniBand with SR-IOV, else they train over Ethernet",
            remedy=_remedy(size, on, "or stay on one node (a cluster may say single_node_jobs: true)"),
        )
    return None


def check_job(nodes: int, *, cluster: str, single_node_jobs: bool, where: str = "nodes") -> Finding | None:
    """Hold a job to the promise of the cluster that it runs on.

    Args:
        nodes: The job's instance count.
        cluster: The cluster's name.
        single_node_jobs: Whether the cluster is declared for jobs of one node only.
        where: Path of the instance count in the declaration.
    """
    if not single_node_jobs or nodes < 2:
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"The job wants {nodes} nodes of the cluster `{cluster}`, which is declared for single-node jobs only",
        rule="A cluster declared for single-node jobs is excused from having InfiniBand between its nodes",
        remedy="Run it on one node, or on a cluster with InfiniBand",
    )


def _remedy(size: Size, on: date, otherwise: str = "") -> str:
    nearest = substitutes.nearest_compliant(size, on)
    if nearest is None:
        return otherwise.removeprefix("or ").capitalize()
    return ", ".join(part for part in (f"Use {nearest.name} ({nearest.describe()})", otherwise) if part)
