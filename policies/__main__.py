"""Starts the policy pack; run by Pulumi, by path."""

from __future__ import annotations

import sys

from amlstack.base import pulumi_messages

pulumi_messages.alone()  # before anything imports the SDK

from policies.pack.definition import NAME, pack  # noqa: E402
from policies.pack.server import serve  # noqa: E402

try:
    ready = pack()
except ValueError as error:  # a day that is none, a wrong configuration: the user's mistake
    sys.exit(f"policy pack {NAME}: {error}")

serve(ready)
