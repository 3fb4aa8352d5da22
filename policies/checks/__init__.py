"""The rules, one a file, each a pure function on plain arguments that returns a finding or None.

The job plan, the stack settings and the policy pack call the same functions. None of them knows a size by name: they
ask the catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.catalog import sizes
from policies.checks import (
    cluster_budget,
    environment_pin,
    environment_source,
    fabric,
    fabric_off,
    gpus_idle,
    hourly_cost,
    identity,
    idle_time,
    job_cost,
    job_timeout,
    known_size,
    local_auth,
    node_ceiling,
    processes,
    public_ip,
    region,
    required_tags,
    retired_size,
    retiring_size,
    scale_to_zero,
    secret,
    shared_memory,
    spot_checkpoint,
    ssh,
    stack_budget,
    subnet_overlap,
    subnet_present,
)
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from datetime import date

    from amlstack.base.findings import Finding

__all__ = ["RULES", "SIZE_RULES", "Rule", "Setting", "sizes_for"]

RULES: tuple[Rule, ...] = (
    fabric.RULE,
    known_size.RULE,
    retired_size.RULE,
    retiring_size.RULE,
    scale_to_zero.RULE,
    idle_time.RULE,
    node_ceiling.RULE,
    cluster_budget.RULE,
    stack_budget.RULE,
    hourly_cost.RULE,
    job_cost.RULE,
    region.RULE,
    required_tags.RULE,
    public_ip.RULE,
    ssh.RULE,
    local_auth.RULE,
    identity.RULE,
    subnet_present.RULE,
    subnet_overlap.RULE,
    environment_source.RULE,
    environment_pin.RULE,
    processes.RULE,
    gpus_idle.RULE,
    shared_memory.RULE,
    fabric_off.RULE,
    spot_checkpoint.RULE,
    job_timeout.RULE,
    secret.RULE,
)
"""Every rule, in the order in which docs/policies.md shows them."""

SIZE_RULES: tuple[Rule, ...] = (fabric.RULE, known_size.RULE, retired_size.RULE)
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
    size = sizes.get(name)
    if size is None:
        found = [known_size.check(name, where)]
    else:
        found = [
            fabric.check(size, nodes=nodes, on=on, single_node_jobs=single_node_jobs, where=where),
            retired_size.check(size, on=on, where=where),
        ]
    return tuple(finding for finding in found if finding is not None)
