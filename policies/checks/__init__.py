"""The rules by subject, each a pure function on plain arguments that returns a finding or None.

The job plan, the stack settings and the policy pack call the same functions. None of them knows a size by name: they
ask the catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.catalog import sizes
from policies.checks import cluster, governance, job, own, size
from policies.checks.own import rule
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from datetime import date

    from amlstack.base.findings import Finding

__all__ = ["OWN", "OWN_WRONG", "RULES", "SIZE_RULES", "Rule", "Setting", "rule", "sizes_for"]

_SUBJECTS = (size, cluster, governance, job)
_OURS = tuple(one for subject in _SUBJECTS for one in vars(subject).values() if isinstance(one, Rule))
OWN, OWN_WRONG = own.load(own.FOLDER, frozenset(one.code for one in _OURS))
"""The rules of this repository, and what is wrong with their files."""
RULES: tuple[Rule, ...] = (*_OURS, *(one.rule for one in OWN))
"""Every rule, in the order in which docs/reference/policies.md shows them; then the repository's own."""

SIZE_RULES: tuple[Rule, ...] = (size.FABRIC_RULE, size.KNOWN_SIZE_RULE, size.RETIRED_SIZE_RULE)
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
