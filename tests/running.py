"""What the fixtures of the root conftest give: importable from every test folder, as ``conftest`` is not."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness import Stack


@dataclass(frozen=True)
class Engine:
    """The engine under test: what to put on PATH, its version, and where it came from (path, release, build)."""

    folders: tuple[Path, ...]
    version: str
    source: str


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox with a home of its own; ``environ`` is all that a client needs to talk to it."""

    home: Path
    endpoint: Any
    environ: dict[str, str]


class MakeStack(Protocol):
    """``stack("two_boxes")`` or ``stack(PROJECT)``; see ``harness.Stack``."""

    def __call__(
        self,
        program: str | Path,
        *,
        sandbox: Sandbox | None = None,
        name: str = "test",
        env: dict[str, str] | None = None,
    ) -> Stack: ...


@contextmanager
def running_sandbox(home: Path) -> Iterator[Sandbox]:
    """The daemon with ``AMLSTACK_HOME`` set to ``home``, here and for its clients, until the context ends."""
    from amlstack.sandbox import daemon

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMLSTACK_HOME", str(home))
        endpoint = daemon.up()
    try:
        yield Sandbox(home, endpoint, {**endpoint.environ(), "AMLSTACK_HOME": str(home)})
    finally:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AMLSTACK_HOME", str(home))
            daemon.down()
