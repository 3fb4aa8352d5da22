"""TensorFlow's TF_CONFIG as a place among the job's tasks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amlnode.errors import NodeError
from amlnode.rank_info import LOOPBACK, RankInfo, port

if TYPE_CHECKING:
    from collections.abc import Mapping


def from_tf_config(environ: Mapping[str, str]) -> RankInfo:
    """Chief, workers, then parameter servers, in the order of TF_CONFIG; tasks of one host are of one node."""
    rule = 'TF_CONFIG is JSON: {"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": 0}}'
    remedy = "Azure ML writes it for TensorFlow jobs; do not set it in the job's variables."
    try:
        config = json.loads(environ["TF_CONFIG"])
        cluster: dict[str, list[str]] = config.get("cluster") or {}
        task = config.get("task") or {}
        kind, index = str(task.get("type", "worker")), int(task.get("index", 0))
        tasks = [
            (name, number, str(where).rpartition(":")[0] or str(where))
            for name in ("chief", "master", "worker", "ps")
            for number, where in enumerate(cluster.get(name) or ())
        ]
    except (ValueError, TypeError, AttributeError) as error:
        raise NodeError(f"TF_CONFIG cannot be read ({error})", rule, remedy) from None
    if not tasks:
        tasks, kind, index = [("worker", 0, LOOPBACK)], "worker", 0
    rank = next((at for at, one in enumerate(tasks) if one[:2] == (kind, index)), None)
    if rank is None:
        raise NodeError(
            f"TF_CONFIG has the task {kind} {index}, and its cluster has {', '.join(f'{n} {i}' for n, i, _ in tasks)}",
            "The task is one of the cluster's" if kind != "evaluator" else "An evaluator is outside of the cluster",
            remedy if kind != "evaluator" else "It has no rank: do not ask for it there.",
        )
    hosts = list(dict.fromkeys(host for _, _, host in tasks))
    mine = [at for at, (_, _, host) in enumerate(tasks) if host == tasks[rank][2]]
    return RankInfo(
        rank=rank,
        world_size=len(tasks),
        local_rank=mine.index(rank),
        local_size=len(mine),
        node_rank=hosts.index(tasks[rank][2]),
        nodes=len(hosts),
        master_addr=environ.get("MASTER_ADDR") or tasks[0][2],
        master_port=port(environ, several=len(hosts) > 1),
        source="tensorflow",
    )
