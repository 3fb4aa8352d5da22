from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider.arm import ArmClient, ArmError, InterruptedWaitError, Response, endpoint
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.rows import for_each

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm


def test_the_endpoint_is_configured_then_from_the_environment_then_azures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AMLSTACK_ARM_ENDPOINT", raising=False)
    assert endpoint() == "https://management.azure.com"
    monkeypatch.setenv("AMLSTACK_ARM_ENDPOINT", "https://127.0.0.1:1/")
    assert endpoint() == "https://127.0.0.1:1"
    assert endpoint("https://other") == "https://other"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:1", "https://host/path", "ftp://x"])
def test_tokens_are_sent_over_https_to_a_host_only(url: str) -> None:
    with pytest.raises(ArmError, match="is no ARM endpoint"):
        endpoint(url)
    with pytest.raises(ArmError, match="is no https URL"):
        ArmClient("https://127.0.0.1:1").get("http://127.0.0.1:1/x")


def test_errors_are_typed_and_carry_the_services_words(arm: FakeArm) -> None:
    arm.fail("GET", "/jobs/", 403, code="AuthorizationFailed", message="you may not")
    with pytest.raises(ArmError) as caught:
        ArmClient(arm.url).get(f"{WORKSPACE}/jobs/a")
    assert (caught.value.status, caught.value.code) == (403, "AuthorizationFailed")
    # The service's own words first, then the right that is missing.
    assert caught.value.message.startswith("you may not. It needs the right Microsoft.MachineLearningServices/")


def test_allowed_statuses_are_answers(arm: FakeArm) -> None:
    assert ArmClient(arm.url).get(f"{WORKSPACE}/jobs/a", allow=(404,)).status == 404


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_be_repeated_is_repeated(arm: FakeArm, status: int) -> None:
    arm.fail("GET", "/workspaces/w$", status)
    assert ArmClient(arm.url).get(WORKSPACE).status == 200
    assert len(arm.asked) == 2


def test_our_bytes_go_on_the_wire_unchanged(arm: FakeArm) -> None:
    body = {"properties": {"image": "ä", "z": None, "a": [1, 1.5, True], "n": {"$x": "${{inputs.y}}"}}}
    ArmClient(arm.url).put(f"{WORKSPACE}/environments/e/versions/1", body)
    assert arm.asked[-1].body == body


@for_each(
    "headers, seconds",
    [
        ({"retry-after-ms": "20"}, 0.02),
        ({"x-ms-retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0"}, None),
        ({"retry-after": "100000"}, 60),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}, None),
        ({}, None),
    ],
)
def test_the_delay_is_the_services(headers: dict[str, str], seconds: float | None) -> None:
    assert Response(200, {}, headers).delay == seconds


class Scripted(ArmClient):
    """Answers from a list, so that operations can be walked through."""

    def __init__(self, *answers: Response) -> None:
        super().__init__("https://127.0.0.1:1")
        self.answers = list(answers)
        self.urls: list[str] = []

    def request(self, method: str, path: str, api_version: str | None = None, **options: Any) -> Response:
        self.urls.append(path)
        return self.answers.pop(0)


SOON = {"retry-after-ms": "1"}


def test_an_asynchronous_operation_is_followed_to_its_end() -> None:
    begun = Response(201, {}, {**SOON, "azure-asyncoperation": "https://127.0.0.1:1/op"}, "https://127.0.0.1:1/x")
    client = Scripted(Response(200, {"status": "InProgress"}, SOON), Response(200, {"status": "Succeeded"}, SOON))
    assert client.finish(begun).body == {"status": "Succeeded"}
    assert client.urls == ["https://127.0.0.1:1/op"] * 2


def test_a_failed_operation_is_an_error_with_its_reason() -> None:
    begun = Response(202, {}, {**SOON, "azure-asyncoperation": "/op"}, "https://127.0.0.1:1/x")
    failed = {"status": "Failed", "error": {"code": "QuotaExceeded", "message": "no cores left"}}
    with pytest.raises(ArmError, match="no cores left"):
        Scripted(Response(200, failed, SOON)).finish(begun)


def test_a_location_is_followed_until_it_is_no_202() -> None:
    begun = Response(202, {}, {**SOON, "location": "/later"}, "https://127.0.0.1:1/x")
    client = Scripted(Response(202, {}, SOON, "https://127.0.0.1:1/later"), Response(200, {"id": "a"}, {}))
    assert client.finish(begun).body == {"id": "a"}
    assert client.urls == ["https://127.0.0.1:1/later"] * 2


def test_an_answer_without_an_operation_is_final() -> None:
    done = Response(200, {"id": "a"}, {})
    assert Scripted().finish(done) is done


def test_following_can_be_interrupted() -> None:
    cancelled = threading.Event()
    cancelled.set()
    begun = Response(202, {}, {"location": "/later"}, "https://127.0.0.1:1/x")
    with pytest.raises(InterruptedWaitError):
        Scripted().finish(begun, cancelled)
