"""``python -m amlstack.provider``: the provider as the engine starts it."""

from __future__ import annotations

import os
import sys

from amlstack.base import startup

startup.leave_out_sdk()  # before anything imports the SDK

from amlstack.provider.server import Provider  # noqa: E402
from amlstack.rpc import serve  # noqa: E402


def main() -> None:
    """Serves until the engine ends it."""
    status = serve(Provider)
    sys.stdout.flush()
    # Not `sys.exit`: it would wait for the threads of the storage client, and what they send is not needed any more.
    os._exit(status)


if __name__ == "__main__":
    main()
