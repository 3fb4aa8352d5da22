"""Starts the policy pack; run by Pulumi, by path. The only place that may construct a PolicyPack, which blocks."""

from __future__ import annotations

from pulumi_policy import EnforcementLevel, PolicyPack

from policies.pack import NAME, policies

PolicyPack(name=NAME, enforcement_level=EnforcementLevel.MANDATORY, policies=policies())
