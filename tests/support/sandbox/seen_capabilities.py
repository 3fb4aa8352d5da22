"""Findings about a client, capability by capability.

Imports nothing of this project: scripts run it in environments of their own.
"""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class SeenCapabilities:
    """The result of each capability, or the words of its error."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def see(self, capability: str, what: Callable[[], Any]) -> None:
        """Notes what a capability gives."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self.seen[capability] = what()
        except Exception as error:  # noqa: BLE001 - the test shows it
            self.seen[capability] = f"{type(error).__name__}: {error}"[:600]
