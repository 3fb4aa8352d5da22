"""Rows of the rules on sizes."""

from __future__ import annotations

from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from tests.support.policies.binding_rows.rows import JOB, Row, on_cluster, on_promised, row, serverless
from tests.support.policies.pack_subjects import COMPUTE, cluster, command, own

ROWS: list[Row] = [
    row("size-retiring", serverless("Standard_HC44rs"), days=400),
    row("size-retiring", (COMPUTE, cluster(vmSize="Standard_HC44rs")), (JOB, own(command())), days=400, speaks=False),
    row("size-retiring", (COMPUTE, cluster(vmSize="Standard_ND96isr_H100")), days=400, speaks=False),
    row("sriov-fabric", *on_promised(resources={"instanceCount": 8})),
    row("sriov-fabric", *on_promised(resources={"instanceCount": 1}), speaks=False),
    row("sriov-fabric", *on_promised(resources={}), speaks=False),
    row("sriov-fabric", *on_promised(resources={"instanceCount": UNKNOWN_STRING_VALUE}), speaks=False, waits=True),
    row("sriov-fabric", *on_promised(computeId=UNKNOWN_STRING_VALUE), speaks=False, waits=True),
    row("sriov-fabric", *on_promised(computeId=UNKNOWN_STRING_VALUE, resources={"instanceCount": 1}), speaks=False),
    row("sriov-fabric", *on_cluster(computeId=UNKNOWN_STRING_VALUE), speaks=False),
    row("sriov-fabric", *on_cluster(computeId=None), speaks=False),
    row("sriov-fabric", on_promised()[0], (COMPUTE, {**cluster(), "computeName": "other"}),
        (JOB, own(command(computeId="other"))), speaks=False),
    row("sriov-fabric", *on_promised(computeId="elsewhere"), speaks=False),
    row("sriov-fabric", *on_promised(UNKNOWN_STRING_VALUE), speaks=False, waits=True),
    row("sriov-fabric", *on_promised("false"), speaks=False),
    row("sriov-fabric", on_promised()[0], serverless(), speaks=False),
    row("size-closed", serverless("Standard_DS3_v2")),
    row("size-closed", serverless("Standard_DS3_v"), speaks=False),
    row("size-closed", serverless("Standard_DS3_v2"), subscription_created="2026-07-01"),
    row("size-closed", serverless("Standard_DS3_v2"), subscription_created="2026-06-30", speaks=False),
    row("size-closed", (COMPUTE, cluster(vmSize="Standard_DS3_v2")), (JOB, own(command())), speaks=False),
    row("size-closed", (COMPUTE, cluster(vmSize="Standard_D4s_v5")), speaks=False),
]  # fmt: skip
