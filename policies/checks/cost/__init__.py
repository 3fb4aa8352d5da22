"""Rules on money and capacity."""

from __future__ import annotations

from policies.checks.cost import cluster_budget, hourly_cost, job_cost, stack_budget

RULES = (
    cluster_budget.RULE,
    stack_budget.RULE,
    hourly_cost.RULE,
    job_cost.RULE,
)
