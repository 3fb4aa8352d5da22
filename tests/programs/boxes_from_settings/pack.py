"""A policy pack with one mandatory rule: a box must not hold gold."""

from __future__ import annotations

from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)


def no_gold(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Components reach a pack without their inputs; their name is what a rule can see."""
    if args.resource_type == "scenario:index:Box" and args.name == "gold":
        report(f"box {args.name} must not be made")


PolicyPack("test-pack", [ResourceValidationPolicy("no-gold", "No gold.", no_gold, EnforcementLevel.MANDATORY)])
