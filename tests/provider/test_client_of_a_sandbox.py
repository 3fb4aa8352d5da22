"""The client of the verbs: the provider's own, signed in to a sandbox by the sandbox's token."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.cli.sandbox_arm import SandboxArm
from amlstack.provider.arm import ArmClient, ArmError
from amlstack.sandbox.server.daemon import Endpoint
from tests.support.provider.fake_workspace import WORKSPACE

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm


def sandbox(arm: FakeArm) -> Endpoint:
    """The announcement of a sandbox at the fake's address."""
    ca = arm.home / "ca.pem"
    names = {"tenant": "tenant", "client": "client", "subscription": "s", "cloud": "c"}
    return Endpoint(Path("/home"), arm.url, os.getpid(), 0, ca, ca, arm.home / "token", **names)


def test_a_client_of_a_sandbox_puts_the_bytes_of_the_provider_on_the_wire(arm: FakeArm) -> None:
    body = {"properties": {"image": "ä", "z": None, "a": [1, 1.5, True], "n": {"$x": "${{inputs.y}}"}}}
    path = f"{WORKSPACE}/environments/e f/versions/1"
    answers = [ArmClient(arm.url).put(path, body), SandboxArm(sandbox(arm)).put(path, body)]
    assert arm.asked[0] == arm.asked[1]
    assert arm.asked[1].body == body
    assert answers[0].body == answers[1].body


def test_a_token_is_asked_for_once_when_it_lasts(arm: FakeArm) -> None:
    credential = SandboxArm(sandbox(arm)).credential
    first = credential.get_token(f"{arm.url}/.default")
    assert credential.get_token(f"{arm.url}/.default") is first
    assert credential.get_token("https://ml.azure.com/.default") is not first


def test_a_missing_token_is_a_typed_error(arm: FakeArm) -> None:
    (arm.home / "token").unlink()
    with pytest.raises(ArmError, match="the federated token cannot be read") as caught:
        SandboxArm(sandbox(arm)).get(WORKSPACE)
    assert caught.value.code == "NoCredential"


def test_tokens_go_nowhere_else(arm: FakeArm) -> None:
    with pytest.raises(ArmError, match=r"management\.azure\.com is not the sandbox"):
        SandboxArm(sandbox(arm)).get("https://management.azure.com/subscriptions/s")
    assert arm.asked == []
