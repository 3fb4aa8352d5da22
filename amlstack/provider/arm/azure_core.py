"""azure-core, loaded late and by one thread at a time."""

from __future__ import annotations

import threading

LOADING = threading.RLock()
"""Held while modules of Azure's clients are loaded. They import each other in circles, and Python gives a second
thread that imports one of them meanwhile half a module, and with that an ImportError."""
_loaded = threading.Event()


def load() -> None:
    """Load all of it that requests need; called before what imports parts of it, in any thread.

    It is not loaded with this package: a preview that asks Azure nothing should not pay for it.
    """
    if _loaded.is_set():
        return
    with LOADING:
        import azure.core.credentials  # noqa: PLC0415
        import azure.core.exceptions  # noqa: PLC0415
        import azure.core.pipeline.policies  # noqa: PLC0415
        import azure.core.pipeline.transport  # noqa: PLC0415
        import azure.core.rest  # noqa: F401, PLC0415

        _loaded.set()
