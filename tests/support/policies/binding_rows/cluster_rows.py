"""Rows of the rules on clusters."""

from __future__ import annotations

from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from tests.support.policies.binding_rows.rows import (
    CLUSTER_4,
    UNKNOWN_NODES,
    WIDE,
    Row,
    classic,
    on_cluster,
    row,
    serverless,
)
from tests.support.policies.pack_subjects import COMPUTE, cluster

ROWS: list[Row] = [
    # What is not configured is not judged, and waits for nothing.
    row("node-ceiling", (COMPUTE, cluster(**UNKNOWN_NODES)), speaks=False),
    row("node-ceiling", (COMPUTE, cluster(**UNKNOWN_NODES)), speaks=False, waits=True, nodes=4),
    row("node-ceiling", CLUSTER_4, nodes=3),
    row("node-ceiling", serverless(), nodes=1),
    row("node-ceiling", *on_cluster(), nodes=1, speaks=False),
    row("scale-to-zero", (COMPUTE, cluster(scaleSettings={"maxNodeCount": 4})), nodes=0, speaks=False),
    row("scale-to-zero", (COMPUTE, cluster(scaleSettings={"minNodeCount": 1, "maxNodeCount": 4})), nodes=0),
    row("ssh-closed", classic(sshPublicAccessEnabled=False), speaks=False),
    row("ssh-closed", classic(sshPublicAccessEnabled=True)),
    row("ssh-closed", classic(), speaks=False),
    row("local-auth-off", classic()),
    row("local-auth-off", classic(localAuthEnabled=False), speaks=False),
    row("local-auth-off", classic(localAuthEnabled=True)),
    row("subnet-overlap", (COMPUTE, cluster(subnet={"id": WIDE})), networks={"wide": "10.0.0.0/8, 172.16.0.0/12"}),
    row("subnet-overlap", (COMPUTE, cluster(subnet={"id": WIDE})), networks={"wide": "10.0.0.0/8"}, speaks=False),
    row("subnet-overlap", (COMPUTE, cluster(subnet={"id": "nodes"})), networks={"wide": "172.16.0.0/12"}, speaks=False),
    row("subnet-overlap", (COMPUTE, cluster(subnet={"id": "/x/virtualNetworks"})), speaks=False),
    row("subnet-overlap", (COMPUTE, cluster(vmSize="Standard_DS3_v2", subnet={"id": UNKNOWN_STRING_VALUE})),
        speaks=False),
    row("subnet-overlap", (COMPUTE, cluster(vmSize="Standard_ND96isr_H100", subnet={"id": WIDE})), speaks=False),
]  # fmt: skip
