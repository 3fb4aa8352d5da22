"""Rules on every Azure resource: where it lies, how it is tagged."""

from __future__ import annotations

from policies.checks.resource import region, required_tags

RULES = (
    region.RULE,
    required_tags.RULE,
)
