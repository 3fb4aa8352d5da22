"""Fixtures of the sandbox's own tests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox.arm import provisioning, service
from amlstack.sandbox.arm.entra import SUBSCRIPTION
from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.kinds.base import Context
from amlstack.sandbox.store.store import Store
from tests.support.sandbox.sandbox_client import Arm, version_of, workspace_bodies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from tests.support.running import Sandbox


@pytest.fixture
def arm(sandbox: Sandbox) -> Arm:
    """A client of the session's sandbox."""
    return Arm(sandbox.endpoint)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    made = Store(tmp_path)
    yield made
    made.close()


class Manager:
    """The resource manager without a server or a scheduler: jobs stay where they are put."""

    def __init__(self, store: Store) -> None:
        self.context = Context(store, "https://127.0.0.1:1", "key", asyncio.Event(), scheduled=False)
        self.store = store
        self.workspace = ""

    def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        """Status and body."""
        try:
            reply = service.answer(self.context, method, path, {"api-version": version_of(path), **query}, body)
        except Refused as refused:
            return refused.status, refused.body["error"]
        return reply.status, reply.body

    def settle(self) -> None:
        """Everything under way comes to its end."""
        provisioning.settle(self.context)


@pytest.fixture
def manager(store: Store) -> Manager:
    """A resource manager that holds a workspace."""
    made = Manager(store)
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
    made.call("PUT", group, {"location": "eastus"})
    for path, body in workspace_bodies(group, "space-1"):
        status, answer = made.call("PUT", group + path, body)
        assert status in {200, 201, 202}, answer
        made.workspace = group + path
    made.settle()
    return made
