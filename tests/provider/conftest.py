"""The provider on its wire: gRPC's bytes in front and the fake ARM behind; sockets, TLS and gRPC in some modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.provider.fake_arm import FakeArm
from tests.support.provider.provider_wire import Log, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REAL = {"test_signing_in", "test_code_and_environments", "test_state_of_a_run"}
"""Modules whose calls, answers, partial failures, messages and requests to ARM go over sockets."""


@pytest.fixture
def arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeArm]:
    home = tmp_path / "arm"
    home.mkdir()
    fake = FakeArm(home)
    for name, value in fake.environ().items():
        monkeypatch.setenv(name, value)
    yield fake
    fake.close()


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def wire(arm: FakeArm, log: Log, request: pytest.FixtureRequest) -> Iterator[Wire]:
    real = request.path.stem in REAL
    wire = Wire(log, real=real, near=None if real else arm)
    yield wire
    wire.stop()
