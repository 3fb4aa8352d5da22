"""Stand-ins that end with their test, and a small server for answers that no sandbox gives."""

from __future__ import annotations

import dataclasses
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from amlstack.sandbox.azure_native.arm import Arm, Patience
from tests.support.azure_native.small_arm import SmallArm
from tests.support.azure_native.stand_in_wire import StandIn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from amlstack.sandbox.azure_native.arm import SandboxTarget
    from tests.support.azure_native.make_stand_in import MakeStandIn


@pytest.fixture
def stand_in() -> Iterator[MakeStandIn]:
    """Starts configured stand-ins with a clean environment and the given variables."""
    started: list[StandIn] = []

    def make(environ: Mapping[str, str], **config: str) -> StandIn:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("AZURE_", "ARM_", "AMLSTACK_"))}
        started.append(StandIn({**clean, **environ}, config))
        return started[-1].configure()

    yield make
    for one in started:
        if one.process.poll() is None:
            one.stop()


@pytest.fixture
def small_arm(tmp_path: Path) -> Iterator[SmallArm]:
    arm = SmallArm(tmp_path)
    yield arm
    arm.close()


@pytest.fixture
def arm(small_arm: SmallArm) -> Iterator[Arm]:
    """A client of the small server."""
    client = Arm(small_arm.target())
    yield client
    client.close()


@pytest.fixture
def small_environ(small_arm: SmallArm, tmp_path: Path) -> dict[str, Any]:
    return {**small_arm.environ(), "AMLSTACK_HOME": str(tmp_path / "home")}


@pytest.fixture
def progress() -> list[str]:
    """The progress that was reported."""
    return []


@pytest.fixture
def patience(progress: list[str]) -> Patience:
    return Patience(threading.Event(), 300, progress.append)


@pytest.fixture
def elsewhere(small_arm: SmallArm, tmp_path: Path) -> SandboxTarget:
    """The small server with an authority that did not sign it."""
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    return dataclasses.replace(small_arm.target(), bundle=other)
