"""``python -m amlstack.sandbox.azure_native ENGINE``: the plugin process that the engine starts."""

from __future__ import annotations

import sys

from amlstack.base import startup

startup.leave_out_sdk()  # before anything imports the SDK

from amlstack.rpc import serve  # noqa: E402
from amlstack.sandbox.azure_native.server import AzureNative  # noqa: E402

if __name__ == "__main__":
    sys.exit(serve(AzureNative))
