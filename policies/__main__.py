"""Starts the policy pack; run by Pulumi, by path."""

from __future__ import annotations

import sys

from policies.pack import NAME, pack
from policies.server import serve

try:
    ready = pack()
except ValueError as error:  # a day that is none, a wrong configuration: the user's mistake
    sys.exit(f"policy pack {NAME}: {error}")

serve(ready)
