"""Fixtures of the sandbox's own tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.base import home as homes
from amlstack.sandbox.protocol.entra import SUBSCRIPTION
from amlstack.sandbox.store.store import Store
from tests.support.sandbox.manager import Manager
from tests.support.sandbox.sandbox_client import Arm, workspace_bodies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Sandbox


@pytest.fixture
def arm(sandbox: Sandbox) -> Arm:
    """A client of the session's sandbox."""
    return Arm(sandbox.endpoint)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    homes.claim(tmp_path)
    made = Store(tmp_path)
    yield made
    made.close()


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
