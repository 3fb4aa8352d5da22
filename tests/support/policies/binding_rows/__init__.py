"""Resources shown to the pack, and whether a rule speaks of them: what the tests of the bindings hold each one to."""

from __future__ import annotations

from tests.support.policies.binding_rows import cluster_rows, cost_rows, job_rows, resource_rows, size_rows
from tests.support.policies.binding_rows.rows import Row, documented

__all__ = ["ROWS", "Row"]

ROWS: list[Row] = [
    *documented(),
    *size_rows.ROWS,
    *cluster_rows.ROWS,
    *cost_rows.ROWS,
    *resource_rows.ROWS,
    *job_rows.ROWS,
]
