"""Rules on sizes as tables: arguments → what they find."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from tests.support.policies.rule_tables.rows import CLOSED, CPU, H100, HB, NO_IB, TODAY, Row, row, size

TABLES: dict[str, list[Row]] = {
    "fabric": [
        row(size("Standard_NC24r"), nodes=1, on=TODAY, single_node_jobs=True, says="has RDMA without SR-IOV"),
        row(size("Standard_NC96ads_A100_v4"), nodes=2, on=TODAY, says="with 2 nodes"),
        row(size("Standard_NC96ads_A100_v4"), nodes=1, on=TODAY, says=None),
        row(size("Standard_NC96ads_A100_v4"), nodes=2, on=TODAY, single_node_jobs=True, says=None),
        row(H100, nodes=64, on=TODAY, says=None),
        row(CPU, nodes=64, on=TODAY, says=None),
        row(HB, nodes=64, on=TODAY, says=None),
        row(replace(H100, fabric=NO_IB.fabric, gpu_vendor="nobody"), nodes=2, on=TODAY, says="Stay on one node"),
        row(2, cluster="c", single_node_jobs=True, function="check_job", says="wants 2 nodes of the cluster `c`"),
        row(1, cluster="c", single_node_jobs=True, function="check_job", says=None),
        row(2, cluster="c", single_node_jobs=False, function="check_job", says=None),
        row(replace(size("Standard_NC24r"), gpu_vendor="nobody"), nodes=1, on=TODAY, says="over Ethernet. ["),
    ],
    "known_size": [
        row("Standard_ND96isr_H100_v5", says=None),
        row("standard_nd96isr_h100_V5", says=None),
        row("Standard_ND96isr_H100", says="Did you mean Standard_ND96isr_H100_v5, "),
        row("Standard_DS3_v", says="Did you mean"),
        row("p4d.24xlarge", says="`amlstack sizes` lists"),
    ],
    "retired_size": [
        row(size("Standard_NC24rs_v3"), on=TODAY, says="was retired on 2025-09-30"),
        row(size("Standard_NC24rs_v3"), on=date(2025, 9, 30), says="Use Standard_"),
        row(size("Standard_NC24rs_v3"), on=date(2025, 9, 29), says=None),
        row(H100, on=date(2100, 1, 1), says=None),
        row(replace(size("Standard_NC24rs_v3"), gpu_vendor="nobody"), on=TODAY, says="of a retired size. ["),
    ],
    "retiring_size": [
        row(size("Standard_HC44rs"), on=date(2027, 5, 1), days=60, says="in 30 days"),
        row(size("Standard_HC44rs"), on=date(2027, 5, 1), days=30, says="Plan for Standard_"),
        row(size("Standard_HC44rs"), on=date(2027, 5, 1), days=29, says=None),
        row(size("Standard_HC44rs"), on=date(2027, 5, 31), days=60, says=None),
        row(H100, on=date(2100, 1, 1), days=9999, says=None),
        row(replace(size("Standard_HC44rs"), gpu_vendor="nobody"), on=date(2027, 5, 1), days=60, says="60 days. ["),
    ],
    "closed_size": [
        row(CPU, on=CLOSED, says="Standard_DS3_v2 is closed to new subscriptions since 2026-07"),
        row(CPU, on=TODAY, says="Use Standard_D4s_v"),
        row(CPU, on=date(2026, 6, 30), says=None),
        row(CPU, on=date(2028, 5, 1), says=None),
        row(CPU, on=TODAY, subscription_created="2026-07-01", says="created on 2026-07-01. Azure deploys it within"),
        row(CPU, on=TODAY, subscription_created="2026-06-30", says="created on 2026-06-30. An older subscription"),
        row(size("Standard_HC44rs"), on=TODAY, says=None),
        row(size("Standard_D4s_v5"), on=TODAY, says=None),
        row(size("Standard_NC24rs_v3"), on=TODAY, says=None),
        row(replace(CPU, gpu_vendor="nobody"), on=TODAY, says="and approves no more. ["),
    ],
}
