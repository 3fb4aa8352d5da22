"""azure-core, loaded late and by one thread at a time, and its connections."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from azure.core.pipeline.transport import RequestsTransport

_CONNECTIONS: Final = 32
"""Kept open for each host; the engine asks for this many operations at once on eight cores."""
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


def transport(ca: str | None = None) -> RequestsTransport:
    """azure-core's transport, over connections that are kept. Safe for use by several threads.

    Args:
        ca: PEM file of the authorities to trust, whose hosts are asked directly; when not given, authorities and
            proxies are those of the environment.
    """
    load()
    from azure.core.pipeline.transport import RequestsTransport  # noqa: PLC0415
    from requests.adapters import HTTPAdapter  # noqa: PLC0415

    made = RequestsTransport(connection_verify=ca or True, use_env_settings=ca is None)
    made.open()
    session: Any = made.session
    session.auth = _unchanged
    session.mount("https://", HTTPAdapter(pool_maxsize=_CONNECTIONS))
    return made


def _unchanged(request: Any) -> Any:
    """Keeps ``~/.netrc`` from taking the place of the token."""
    return request
