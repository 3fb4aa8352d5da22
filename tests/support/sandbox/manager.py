"""The sandbox's resource manager without a server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from amlstack.sandbox.protocol.kind import KindContext
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.service import manager
from tests.support.sandbox.sandbox_client import version_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from amlstack.sandbox.store.store import Store


class Manager:
    """The resource manager without a server or a scheduler: jobs stay where they are put."""

    def __init__(self, store: Store) -> None:
        self.context = KindContext(store, "https://127.0.0.1:1", "key", asyncio.Event(), scheduled=False)
        self.store = store
        self.workspace = ""

    def call(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **query: str
    ) -> tuple[int, Any]:
        """Status and body."""
        words = {"api-version": version_of(path), **query}
        try:
            reply = manager.answer(self.context, method, path, words, body, headers=headers or {})
        except Refused as refused:
            return refused.status, refused.body["error"]
        return reply.status, reply.body

    def settle(self) -> None:
        """Everything under way comes to its end."""
        manager.settle(self.context)
