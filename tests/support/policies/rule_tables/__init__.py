"""Every rule as a table: arguments → whether it finds something. The mutation test runs the same tables."""

from __future__ import annotations

from tests.support.policies.rule_tables import cluster_rules, cost_rules, job_rules, resource_rules, size_rules
from tests.support.policies.rule_tables.rows import Row

__all__ = ["TABLES", "Row"]

TABLES: dict[str, list[Row]] = {
    **size_rules.TABLES,
    **cluster_rules.TABLES,
    **cost_rules.TABLES,
    **resource_rules.TABLES,
    **job_rules.TABLES,
}
