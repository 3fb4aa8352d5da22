"""``python -m amlstack.provider``: the provider as the engine starts it."""

from __future__ import annotations

import os
import sys

from amlstack.provider.server import Provider
from amlstack.rpc import serve

if __name__ == "__main__":
    status = serve(Provider)
    sys.stdout.flush()
    # Not `sys.exit`: it would wait for the threads of the storage client, and what they send is not needed any more.
    os._exit(status)
