"""A stack for all tests of a module: its life is played once, and each test looks at one side of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.harness import STAND_IN, Stack
from tests.support.running import running_sandbox
from tests.support.stack.small_jobs import Own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.running import Engine


@pytest.fixture(scope="module")
def own(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    """The project's stack on a sandbox of its own."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as sandbox:
        folder = tmp_path_factory.mktemp("stack")
        stack = Stack.of_project(folder, engine.folders, env=sandbox.environ, path=(STAND_IN,))
        try:
            yield Own(stack, sandbox.home)
        finally:
            stack.close()
