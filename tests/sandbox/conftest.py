"""Fixtures of the sandbox's own tests."""

from __future__ import annotations

import contextlib
import copy
import shutil
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


@pytest.fixture(scope="session")
def signed_in(sandbox: Sandbox) -> Arm:
    """A client that has signed in at the session's sandbox: two exchanges."""
    return Arm(sandbox.endpoint)


@pytest.fixture
def arm(signed_in: Arm) -> Arm:
    """A client of the session's sandbox, whose tokens a test may change."""
    return copy.copy(signed_in)


@pytest.fixture(scope="session")
def workspace_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home that holds a workspace, to be copied, and the workspace's id."""
    home = tmp_path_factory.mktemp("workspace-home")
    homes.claim(home)
    with contextlib.closing(Store(home)) as store:
        made = Manager(store)
        group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
        made.call("PUT", group, {"location": "eastus"})
        for path, body in workspace_bodies(group, "space-1"):
            status, answer = made.call("PUT", group + path, body)
            assert status in {200, 201, 202}, answer
        made.settle()
    return home, group + path


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store; with the fixture `manager`, one that holds a workspace."""
    if "manager" in request.fixturenames:
        shutil.copytree(request.getfixturevalue("workspace_home")[0], tmp_path, dirs_exist_ok=True)
    else:
        homes.claim(tmp_path)
    with contextlib.closing(Store(tmp_path)) as made:
        yield made


@pytest.fixture
def manager(store: Store, workspace_home: tuple[Path, str]) -> Manager:
    """A resource manager that holds a workspace."""
    made = Manager(store)
    made.workspace = workspace_home[1]
    return made
