"""Rules on costs as tables: arguments → what they find."""

from __future__ import annotations

from dataclasses import replace

from policies.checks.governance import GrowsTo
from tests.support.policies.rule_tables.rows import CPU, ELSEWHERE, H100, PRICED, UNDOCUMENTED, Row, row

TABLES: dict[str, list[Row]] = {
    "cluster_budget": [
        row(H100, nodes=8, gpus=64, says=None),
        row(H100, nodes=9, gpus=64, says="9 nodes of Standard_ND96isr_H100_v5 have 72 GPUs"),
        row(H100, nodes=9, gpus=64, vcpus=1, says="Write 8 nodes or less"),
        row(H100, nodes=1, gpus=64, vcpus=95, says="have 96 vCPUs. One cluster may have 95"),
        row(H100, nodes=1, vcpus=96, says=None),
        row(H100, nodes=999, says=None),
        row(CPU, nodes=999, gpus=0, says=None),
        row(UNDOCUMENTED, nodes=999, vcpus=0, says=None),
    ],
    "stack_budget": [
        row([GrowsTo(H100, 8), GrowsTo(CPU, 4)], gpus=64, nodes=12, vcpus=784, says=None),
        row([GrowsTo(H100, 8), GrowsTo(H100, 1)], gpus=64, says="may grow to 72 GPUs"),
        row([GrowsTo(H100, 8), GrowsTo(CPU, 4)], nodes=11, says="may grow to 12 nodes"),
        row([GrowsTo(H100, 8), GrowsTo(CPU, 4)], vcpus=783, says="may grow to 784 vCPUs"),
        row([GrowsTo(UNDOCUMENTED, 8)], vcpus=0, says=None),
        row([GrowsTo(PRICED, 2)], usd_per_hour=200.0, says=None),
        row([GrowsTo(PRICED, 3)], usd_per_hour=200.0, says="may grow to 300 USD per hour"),
        row([GrowsTo(H100, 3)], usd_per_hour=200.0, says="no price of Standard_ND96isr_H100_v5"),
        row([GrowsTo(H100, 3)], gpus=64, says=None),
        row([GrowsTo(PRICED, 3)], says=None),
        row([GrowsTo(ELSEWHERE, 1), GrowsTo(ELSEWHERE, 1, "uksouth")], usd_per_hour=220.0, says=None),
        row(
            [GrowsTo(ELSEWHERE, 1), GrowsTo(ELSEWHERE, 1, "uksouth")],
            usd_per_hour=219.0,
            says="may grow to 220 USD per hour",
        ),
        row(
            [GrowsTo(ELSEWHERE, 1), GrowsTo(ELSEWHERE, 1, "uksouth", True)],
            usd_per_hour=123.0,
            says="may grow to 124 USD per hour",
        ),
        row([], gpus=0, usd_per_hour=0.0, says=None),
    ],
    "hourly_cost": [
        row(PRICED, nodes=5, usd=500, says=None),
        row(PRICED, nodes=6, usd=500, says="cost 600.00 USD per hour (westeurope)"),
        row(PRICED, nodes=6, usd=499, says="Write 4 nodes or less"),
        row(PRICED, nodes=6, usd=None, says=None),
        row(H100, nodes=6, usd=1, says="no price of"),
        row(H100, nodes=6, usd=None, says=None),
        row(PRICED, nodes=1, usd=0, says="At most 0.00 USD"),
        row(ELSEWHERE, nodes=1, usd=119, region="westeurope", says=None),
        row(ELSEWHERE, nodes=1, usd=119, region="uksouth", says="cost 120.00 USD per hour (uksouth). At most 119"),
        row(ELSEWHERE, nodes=4, usd=99, region="uksouth", low_priority=True, says=None),
        row(ELSEWHERE, nodes=5, usd=99, region="uksouth", low_priority=True, says="120.00 USD per hour (uksouth, low"),
        row(
            ELSEWHERE,
            nodes=1,
            usd=99,
            region="eastus",
            says="100.00 USD per hour (westeurope, none is known of eastus)",
        ),
        row(ELSEWHERE, nodes=1, usd=99, low_priority=True, says="100.00 USD per hour (westeurope, dedicated nodes)"),
        row(H100, nodes=1, usd=99, region="uksouth", low_priority=True, says="no price of"),
    ],
    "job_cost": [
        row(PRICED, nodes=2, timeout=3600, usd=200, says=None),
        row(PRICED, nodes=2, timeout=3601, usd=200, says="cost 200.06 USD until the timeout"),
        row(PRICED, nodes=2, timeout=None, usd=200, says="nothing ends the job"),
        row(PRICED, nodes=2, timeout=None, usd=100, says="a timeout of 30 minutes or less"),
        row(PRICED, nodes=2, timeout=None, usd=None, says=None),
        row(H100, nodes=2, timeout=None, usd=100, says="no price of"),
        row(H100, nodes=2, timeout=None, usd=None, says=None),
        row(
            replace(PRICED, prices=(replace(PRICED.prices[0], usd=0.0),)),
            nodes=2,
            timeout=None,
            usd=1,
            says="a timeout of 0 minutes",
        ),
        row(ELSEWHERE, nodes=1, timeout=3600, usd=119, region="westeurope", says=None),
        row(ELSEWHERE, nodes=1, timeout=3600, usd=119, region="uksouth", says="120.00 USD until the timeout (uksouth)"),
        row(ELSEWHERE, nodes=1, timeout=3600, usd=24, region="uksouth", low_priority=True, says=None),
        row(ELSEWHERE, nodes=1, timeout=None, usd=23, region="uksouth", low_priority=True, says="hour (uksouth, low"),
    ],
}
