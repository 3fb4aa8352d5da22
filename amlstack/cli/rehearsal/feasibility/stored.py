"""What the workspace of rehearsals holds already; nothing where no sandbox has ever run."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Stored:
    """The resources of a home's sandbox, read when they are first asked for."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def properties(self, resource: str) -> Mapping[str, Any] | None:
        """The properties of a resource by its ARM id; None where it is not there."""
        from amlstack.sandbox.store.database import StateError
        from amlstack.sandbox.store.places import folder
        from amlstack.sandbox.store.store import Store

        if not (folder(self._home) / "state.db").is_file():
            return None
        try:
            with closing(Store(self._home)) as store:
                row = store.resources.get(resource)
        except StateError:
            return None
        return None if row is None else row.body.get("properties", {})
