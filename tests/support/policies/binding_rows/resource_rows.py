"""Rows of the rules on resources of a workspace."""

from __future__ import annotations

from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from tests.support.policies.binding_rows.rows import CLUSTER_4, Row, row
from tests.support.policies.pack_subjects import COMPUTE, cluster

ROWS: list[Row] = [
    row("region-approved", (COMPUTE, {**cluster(), "location": UNKNOWN_STRING_VALUE}), speaks=False),
    row("region-approved", (COMPUTE, {**cluster(), "location": UNKNOWN_STRING_VALUE}), regions=["x"], speaks=False,
        waits=True),
    row("region-approved", CLUSTER_4, regions=["x"], speaks=False),
    row("tags-required", (COMPUTE, {**cluster(), "tags": UNKNOWN_STRING_VALUE}), speaks=False),
    row("tags-required", CLUSTER_4, required=["team"]),
]  # fmt: skip
