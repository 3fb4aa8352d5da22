"""Rules on costs as tables: arguments → what they find."""

from __future__ import annotations

from dataclasses import replace

from tests.support.policies.rule_tables.rows import CPU, H100, PRICED, UNDOCUMENTED, Row, row

TABLES: dict[str, list[Row]] = {
    "cost.cluster_budget": [
        row(H100, nodes=8, gpus=64, says=None),
        row(H100, nodes=9, gpus=64, says="9 nodes of Standard_ND96isr_H100_v5 have 72 GPUs"),
        row(H100, nodes=9, gpus=64, vcpus=1, says="Write 8 nodes or less"),
        row(H100, nodes=1, gpus=64, vcpus=95, says="have 96 vCPUs. One cluster may have 95"),
        row(H100, nodes=1, vcpus=96, says=None),
        row(H100, nodes=999, says=None),
        row(CPU, nodes=999, gpus=0, says=None),
        row(UNDOCUMENTED, nodes=999, vcpus=0, says=None),
    ],
    "cost.stack_budget": [
        row([(H100, 8), (CPU, 4)], gpus=64, nodes=12, vcpus=784, says=None),
        row([(H100, 8), (H100, 1)], gpus=64, says="may grow to 72 GPUs"),
        row([(H100, 8), (CPU, 4)], nodes=11, says="may grow to 12 nodes"),
        row([(H100, 8), (CPU, 4)], vcpus=783, says="may grow to 784 vCPUs"),
        row([(UNDOCUMENTED, 8)], vcpus=0, says=None),
        row([(PRICED, 2)], usd_per_hour=200.0, says=None),
        row([(PRICED, 3)], usd_per_hour=200.0, says="may grow to 300 USD per hour"),
        row([(H100, 3)], usd_per_hour=200.0, says="no price of Standard_ND96isr_H100_v5"),
        row([(H100, 3)], gpus=64, says=None),
        row([(PRICED, 3)], says=None),
        row([], gpus=0, usd_per_hour=0.0, says=None),
    ],
    "cost.hourly_cost": [
        row(PRICED, nodes=5, usd=500, says=None),
        row(PRICED, nodes=6, usd=500, says="cost 600.00 USD per hour (westeurope)"),
        row(PRICED, nodes=6, usd=499, says="Write 4 nodes or less"),
        row(PRICED, nodes=6, usd=None, says=None),
        row(H100, nodes=6, usd=1, says="no price of"),
        row(H100, nodes=6, usd=None, says=None),
        row(PRICED, nodes=1, usd=0, says="At most 0.00 USD"),
    ],
    "cost.job_cost": [
        row(PRICED, nodes=2, timeout=3600, usd=200, says=None),
        row(PRICED, nodes=2, timeout=3601, usd=200, says="cost 200.06 USD until the timeout"),
        row(PRICED, nodes=2, timeout=None, usd=200, says="nothing ends the job"),
        row(PRICED, nodes=2, timeout=None, usd=100, says="a timeout of 30 minutes or less"),
        row(PRICED, nodes=2, timeout=None, usd=None, says=None),
        row(H100, nodes=2, timeout=None, usd=100, says="no price of"),
        row(H100, nodes=2, timeout=None, usd=None, says=None),
        row(
            replace(PRICED, price_per_hour=replace(PRICED.price_per_hour, usd=0.0)),  # type: ignore[type-var]
            nodes=2,
            timeout=None,
            usd=1,
            says="a timeout of 0 minutes",
        ),
    ],
}
