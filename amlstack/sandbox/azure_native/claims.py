"""Resources that this stack began to create and has not yet recorded.

The real plugin refuses to create what exists, and so does this one. But a plugin or an engine that is killed between
the service's answer and the state file leaves a resource that no state knows, and then the refusal would be final.
So the stand-in notes, before it creates, which URN is about to own which id. The note goes as soon as the engine shows
that it has the resource in its state. A create that finds the resource and its own note goes on where the killed one
stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING

from amlstack.base import paths

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Claims:
    """The notes of one backend: stacks of the same name in two backends are two stacks.

    Args:
        environ: The plugin's environment, which it has from the engine.
        folder: Where the notes lie; the sandbox's home by default, so that they go with it.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> None:
        self._backend = environ.get("PULUMI_BACKEND_URL", "")
        self._folder = folder or paths.home() / "sandbox" / "azure-native"

    def make(self, urn: str, resource_id: str) -> None:
        """Notes that ``urn`` is about to own ``resource_id``."""
        path = self._path(urn)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"urn": urn, "id": resource_id}), "utf-8")
        fresh.replace(path)

    def holds(self, urn: str, resource_id: str) -> bool:
        """True where an earlier create of ``urn`` began on ``resource_id`` and may have been cut off."""
        try:
            noted = json.loads(self._path(urn).read_text("utf-8"))["id"]
        except (OSError, ValueError, KeyError):
            return False
        return str(noted).lower() == resource_id.lower()

    def settle(self, urn: str) -> None:
        """The engine knows the resource (or it was never made): nothing is left to heal."""
        with contextlib.suppress(FileNotFoundError):
            self._path(urn).unlink()

    def _path(self, urn: str) -> Path:
        name = hashlib.sha256(f"{self._backend}\n{urn}".encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"
