"""Clusters whose nodes work for runs that a stack did not start: what no list of its own runs shows.

The list of jobs cannot be asked by cluster or by status, and a workspace has thousands; the cluster itself says how
many of its nodes are at work (``nodeStateCounts``). What waits in its queue without a node is not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.provider.arm import ArmClient
    from amlstack.provider.runs import Record


def refusals(arm: ArmClient, going: Mapping[str, str], active: Iterable[Record]) -> tuple[str, ...]:
    """One sentence for each cluster that goes while its nodes work for somebody else.

    Args:
        arm: Azure Resource Manager.
        going: What happens to each cluster, by its ARM id in lower case.
        active: The stack's own active runs; a cluster with one of these is judged by it.

    Raises:
        ArmError: A cluster could not be asked.
    """
    own = {compute.lower() for record in active for compute in record.computes}
    found = []
    for cluster in sorted(set(going) - own):
        if count := _at_work(arm, cluster):
            nodes = "1 node is" if count == 1 else f"{count} nodes are"
            found.append(
                f"{nodes} at work on cluster {cluster.rsplit('/', 1)[-1]} for a run that this stack did not start, and "
                f"the cluster would be {going[cluster]}. Wait for its end or cancel it; `az ml job list` shows all runs"
            )
    return tuple(found)


def _at_work(arm: ArmClient, cluster: str) -> int:
    response = arm.get(cluster, allow=(404,))
    if response.status == 404 or not isinstance(response.body, dict):
        return 0
    properties = (response.body.get("properties") or {}).get("properties") or {}
    count = (properties.get("nodeStateCounts") or {}).get("runningNodeCount")
    return count if isinstance(count, int) else 0
