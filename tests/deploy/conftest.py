"""A team's way into Azure, played once: a local stack, a place for states, the move there, work on it, the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.deploy import state_place
from tests.support.deploy.state_story import Story
from tests.support.harness import STAND_IN, Stack
from tests.support.running import running_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.running import Engine


@pytest.fixture(scope="module")
def story(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Two stacks on a sandbox: the one of deploy/state, and the project's own, whose state is on this machine."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as sandbox:
        env = state_place.environ(sandbox)
        with state_place.unmade(engine, sandbox, tmp_path_factory.mktemp("place")) as place:
            stack = Stack.of_project(
                tmp_path_factory.mktemp("stack"), engine.folders, name="dev", env=env, path=(STAND_IN,)
            )
            try:
                yield Story(place, stack, sandbox)
            finally:
                stack.close()
