"""``python -m amlstack.sandbox.azure_native ENGINE``: the plugin process that the engine starts."""

from __future__ import annotations

import sys

from amlstack.rpc import serve
from amlstack.sandbox.azure_native.server import AzureNative

if __name__ == "__main__":
    sys.exit(serve(AzureNative))
