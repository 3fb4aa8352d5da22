"""The client that a rehearsal asks the sandbox with says and hears what azure-core's pipeline does."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from amlstack.cli.loopback import LoopbackArm

from amlstack.cli import loopback
from amlstack.provider.arm import ArmClient, ArmError
from amlstack.sandbox.server.daemon import Endpoint
from tests.support.provider.fake_arm import WORKSPACE

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm


def sandbox(arm: FakeArm) -> Endpoint:
    """What a sandbox at the fake's address would announce."""
    ca = arm.home / "ca.pem"
    names = {"tenant": "tenant", "client": "client", "subscription": "s", "cloud": "c"}
    return Endpoint(Path("/home"), arm.url, os.getpid(), 0, ca, ca, arm.home / "token", **names)


def test_both_clients_put_the_same_bytes_on_the_wire(arm: FakeArm) -> None:
    body = {"properties": {"image": "ä", "z": None, "a": [1, 1.5, True], "n": {"$x": "${{inputs.y}}"}}}
    path = f"{WORKSPACE}/environments/e f/versions/1"
    with closing(LoopbackArm(sandbox(arm))) as client:
        answers = [ArmClient(arm.url).put(path, body), client.put(path, body)]
    assert arm.asked[0] == arm.asked[1]
    assert arm.asked[1].body == body
    assert answers[0].body == answers[1].body
    assert {answer.headers["retry-after-ms"] for answer in answers} == {"5"}


def test_errors_are_typed_and_allowed_statuses_are_answers(arm: FakeArm) -> None:
    arm.fail("GET", "/jobs/", 403, code="AuthorizationFailed", message="you may not")
    with closing(LoopbackArm(sandbox(arm))) as client:
        with pytest.raises(ArmError) as caught:
            client.get(f"{WORKSPACE}/jobs/a")
        assert client.get(f"{WORKSPACE}/jobs/a", allow=(404,)).status == 404
    assert (caught.value.status, caught.value.code) == (403, "AuthorizationFailed")
    # The service's own words first, then the right that is missing.
    assert caught.value.message.startswith("you may not. It needs the right Microsoft.MachineLearningServices/")


def test_a_connection_that_broke_while_it_was_idle_is_made_anew(arm: FakeArm) -> None:
    request = {"pendingUploadType": "TemporaryBlobReference"}
    with closing(LoopbackArm(sandbox(arm))) as client:
        client.get(WORKSPACE)
        kept = client._connection
        assert kept is not None
        kept.sock.shutdown(socket.SHUT_RDWR)
        client.post(f"{WORKSPACE}/codes/h/versions/1/startPendingUpload", request)
        assert client._connection is not kept
    assert arm.count("POST", "startPendingUpload") == 1


def test_one_token_and_one_connection_serve_all_requests(arm: FakeArm) -> None:
    with closing(LoopbackArm(sandbox(arm))) as client:
        client.get(WORKSPACE)
        kept, token = client._connection, client._token
        client.get(WORKSPACE)
        assert (client._connection, client._token) == (kept, token)


def test_a_server_that_is_gone_is_told(arm: FakeArm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "_PAUSES", (0.0, 0.0, None))
    with closing(LoopbackArm(sandbox(arm))) as client:
        client.get(WORKSPACE)
        client.close()
        arm.close()
        with pytest.raises(ArmError, match=r"no answer from 127\.0\.0\.1") as caught:
            client.get(WORKSPACE)
    assert caught.value.code == "ConnectionFailed"


def test_tokens_go_to_the_sandbox_alone(arm: FakeArm) -> None:
    with pytest.raises(ArmError, match=r"management\.azure\.com is not the sandbox"):
        LoopbackArm(sandbox(arm)).get("https://management.azure.com/subscriptions/s")
    assert arm.asked == []
