"""Rules on training clusters: how they scale, who reaches them, their network."""

from __future__ import annotations

from policies.checks.cluster import (
    idle_time,
    local_auth,
    managed_identity,
    node_ceiling,
    public_ip,
    scale_to_zero,
    ssh,
    subnet_overlap,
    subnet_present,
)

RULES = (
    scale_to_zero.RULE,
    idle_time.RULE,
    node_ceiling.RULE,
    public_ip.RULE,
    ssh.RULE,
    local_auth.RULE,
    managed_identity.RULE,
    subnet_present.RULE,
    subnet_overlap.RULE,
)
