"""Starts the policy pack; run by Pulumi, by path."""

from __future__ import annotations

import sys

from amlstack.base import startup

startup.leave_out_sdk()  # before anything imports the SDK

from policies.pack.server import NAME, pack, serve  # noqa: E402


def main() -> None:
    """Serves the rules to the engine until it ends the pack."""
    try:
        ready = pack()
    except ValueError as error:  # the user named no day, or a wrong configuration
        sys.exit(f"policy pack {NAME}: {error}")
    serve(ready)


if __name__ == "__main__":
    main()
