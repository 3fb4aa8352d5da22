"""Which facts the rules on sizes judge; those that `sizes_for` runs are judged together by `verdicts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.checks.size import closed_size, fabric, retiring_size
from policies.evaluation.binding import Binding, cluster_of, nodes_of, size_of, where_nodes
from policies.evaluation.facts import Undecided, Unknown, last_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.evaluation.binding import Found
    from policies.evaluation.context import Context
    from policies.evaluation.subject import Subject


def _promise(subject: Subject, _: Mapping[str, Any], context: Context) -> Found:
    if subject.nodes == 1 or not context.clusters.promised:
        return  # whatever it runs on, there is no promise to break, and nothing to wait for
    cluster = cluster_of(subject, context)
    if cluster is None or not cluster.single_node_jobs:
        return
    if isinstance(cluster.single_node_jobs, Unknown):
        raise Undecided(cluster.single_node_jobs)
    yield fabric.check_job(
        nodes_of(subject),
        cluster=last_part(subject.compute, subject.where),
        single_node_jobs=True,
        where=where_nodes(subject),
    )


def _retiring(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    size = size_of(subject, context) if subject.size is not None else None
    if size is not None:
        yield retiring_size.check(size, on=context.on, days=int(config["days"]), where=subject.where)


def _closed(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    size = size_of(subject, context) if subject.size is not None else None
    if size is not None:
        yield closed_size.check(size, on=context.on, where=subject.where, **config)


BINDINGS: tuple[Binding, ...] = (
    Binding(fabric.RULE, frozenset({"job"}), _promise),
    Binding(retiring_size.RULE, frozenset({"cluster", "job", "machine"}), _retiring),
    Binding(closed_size.RULE, frozenset({"cluster", "job", "machine"}), _closed),
)
