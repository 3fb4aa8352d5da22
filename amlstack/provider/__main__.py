"""``python -m amlstack.provider``: the provider as the engine starts it."""

from __future__ import annotations

import sys

from amlstack.provider.server import Provider
from amlstack.rpc import serve

if __name__ == "__main__":
    sys.exit(serve(Provider))
