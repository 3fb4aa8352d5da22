"""Starts the policy pack; run by Pulumi, by path. The only place that may construct a PolicyPack, which blocks."""

from __future__ import annotations

import io
import sys

from pulumi_policy import EnforcementLevel, PolicyPack

from policies.pack import NAME, policies

try:
    enforced = policies()
except ValueError as error:  # a day that is none: the user's mistake
    sys.exit(f"policy pack {NAME}: {error}")

# The SDK prints its port without flushing: through a buffered pipe the engine would wait for it forever.
sys.stdout = io.TextIOWrapper(io.FileIO(sys.stdout.fileno(), "w", closefd=False), write_through=True)

PolicyPack(name=NAME, enforcement_level=EnforcementLevel.MANDATORY, policies=enforced)
