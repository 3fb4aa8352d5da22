"""The provider over its real wire: gRPC in front, TLS and Entra ID behind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import grpc
import pytest
from pulumi.runtime.proto import engine_pb2_grpc

from tests.support.provider.fake_arm import FakeArm
from tests.support.provider.provider_wire import Log, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
def wire(arm: FakeArm, log: Log) -> Iterator[Wire]:
    server = grpc.server(ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(log, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    wire = Wire(f"127.0.0.1:{port}")
    yield wire
    wire.stop()
    server.stop(None).wait()
