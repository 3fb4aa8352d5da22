"""Which facts of clusters and jobs the rules on cost judge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from policies.checks.cost import cluster_budget, hourly_cost, job_cost
from policies.evaluation.binding import (
    Binding,
    cluster_of,
    nodes_of,
    paid_as,
    seconds_of,
    size_of,
    timeout_of,
    where_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.evaluation.binding import Found
    from policies.evaluation.context import Context
    from policies.evaluation.subject import Subject


def _budget(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if subject.size is not None and (size := size_of(subject, context)):
        yield cluster_budget.check(size, nodes=nodes_of(subject), where=where_nodes(subject), **config)


def _per_hour(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if subject.size is not None and (size := size_of(subject, context)):
        region, low = paid_as(subject)
        yield hourly_cost.check(
            size,
            nodes=nodes_of(subject),
            usd=config["usd"],
            region=region,
            low_priority=low,
            where=where_nodes(subject),
        )


def _per_job(subject: Subject, config: Mapping[str, Any], context: Context) -> Found:
    if size := size_of(subject, context):
        facts = subject.facts
        at_once, timeout = _bound(subject)
        region, low = paid_as(subject, cluster_of(subject, context) if subject.size is None else None)
        yield job_cost.check(
            size,
            nodes=at_once * nodes_of(subject),
            timeout=timeout,
            usd=config["usd"],
            region=region,
            low_priority=low,
            where=facts.at("timeout"),
        )


def _bound(subject: Subject) -> tuple[int, int | None]:
    """How many trials of a sweep run at once, and for how long at most; of any other job one and its timeout."""
    facts = subject.facts
    timeout, trials = timeout_of(subject), facts.number("trials")
    if not trials:
        return 1, timeout
    at_once = min(facts.number("at_once") or trials, trials)
    one = seconds_of(facts.value("trial_timeout"), facts.at("trial_timeout"))
    # All trials together may end before the sweep's own timeout does.
    rounds = math.ceil(trials * one / at_once) if one else None
    whole = None if facts.path("timeout") == facts.path("trial_timeout") else timeout
    return at_once, min((bound for bound in (rounds, whole) if bound), default=None)


BINDINGS: tuple[Binding, ...] = (
    Binding(cluster_budget.RULE, frozenset({"cluster", "job"}), _budget, ("gpus", "vcpus")),
    Binding(hourly_cost.RULE, frozenset({"cluster", "job"}), _per_hour, ("usd",)),
    Binding(job_cost.RULE, frozenset({"job"}), _per_job, ("usd",)),
)
