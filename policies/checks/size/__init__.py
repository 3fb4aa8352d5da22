"""Rules on VM sizes: the fabric, retirement, what the catalogue knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.catalog import sizes
from policies.checks.size import closed_size, fabric, known_size, retired_size, retiring_size

if TYPE_CHECKING:
    from datetime import date

    from amlstack.base.findings import Finding
    from policies.checks.rule import Rule

SIZE_RULES: tuple[Rule, ...] = (fabric.RULE, known_size.RULE, retired_size.RULE)
"""Those that `sizes_for` runs."""

RULES = (*SIZE_RULES, retiring_size.RULE, closed_size.RULE)


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
    size = sizes.get(name)
    if size is None:
        found = [known_size.check(name, where)]
    else:
        found = [
            fabric.check(size, nodes=nodes, on=on, single_node_jobs=single_node_jobs, where=where),
            retired_size.check(size, on=on, where=where),
        ]
    return tuple(finding for finding in found if finding is not None)
