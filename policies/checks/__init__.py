"""The rules, one a file, each a pure function on plain arguments that returns a finding or None.

The job plan, the stack settings and the policy pack call the same functions. None of them knows a size by name: they
ask the catalogue.
"""

from __future__ import annotations

from policies.checks import cluster, cost, job, resource, size
from policies.checks.rule import Rule, Setting
from policies.checks.size import SIZE_RULES, sizes_for

__all__ = ["RULES", "SIZE_RULES", "Rule", "Setting", "sizes_for"]

RULES: tuple[Rule, ...] = (*size.RULES, *cluster.RULES, *cost.RULES, *resource.RULES, *job.RULES)
"""Every rule, in the order in which docs/policies.md shows them."""
