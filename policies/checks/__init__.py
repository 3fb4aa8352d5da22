"""The rules by subject, each a pure function on plain arguments that returns a finding or None.

The job plan, the stack settings and the policy pack call the same functions. None of them knows a size by name: they
ask the catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.catalog import sizes
from policies.checks import cluster, governance, job, own, size
from policies.checks.own import rule
from policies.checks.rule import OURS, Rule, Setting

if TYPE_CHECKING:
    from datetime import date

    from amlstack.base.findings import Finding

__all__ = ["META", "OURS", "OWN", "OWN_WRONG", "RULES", "SIZE_RULES", "Rule", "Setting", "rule", "sizes_for"]
__all__ += ["cluster", "governance", "job", "size"]

OWN, OWN_WRONG = own.load(own.FOLDER, OURS.keys())
"""The rules of this repository, and what is wrong with their files."""
META = ("checked-at-up", "template-unresolved", "exception-expired", "catalogue-old")
"""Codes of the rules about judging itself."""
RULES: tuple[Rule, ...] = (*(rule for code, rule in OURS.items() if code not in META), *(one.rule for one in OWN))
"""Every other rule, in the order in which docs/reference/policies.md shows them; then the repository's own."""

SIZE_RULES = tuple(OURS[code] for code in ("sriov-fabric", "size-unknown", "size-retired"))
"""Those that `sizes_for` runs."""


def sizes_for(
    name: str, *, nodes: int, on: date, single_node_jobs: bool = False, where: str = "size"
) -> tuple[Finding, ...]:
    """All findings on one size for a number of nodes; of an unknown size only that it is unknown.

    Args:
        name: The size as it was written, in any letter case.
        nodes: Most nodes that one job can get: a cluster's maximum, a job's instance count.
        on: The day of the judgement.
        single_node_jobs: Whether the cluster says that no job on it spans nodes. Never set for a job.
        where: Path of the size in the declaration.
    """
    known = sizes.get(name)
    if known is None:
        found = [size.check_known_size(name, where)]
    else:
        found = [
            size.check_fabric(known, nodes=nodes, on=on, single_node_jobs=single_node_jobs, where=where),
            size.check_retired_size(known, on=on, where=where),
        ]
    return tuple(finding for finding in found if finding is not None)
