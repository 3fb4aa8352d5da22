"""The client against answers that a healthy sandbox never gives."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from amlstack.rpc import ErrorCode, ProviderError
from amlstack.sandbox.azure_native.arm import AcceptedError, Arm, Patience, ServiceError
from tests.support.azure_native.small_arm import Answer, SmallArm

if TYPE_CHECKING:
    from amlstack.sandbox.azure_native.arm import SandboxTarget

SOON = {"retry-after-ms": "1"}
DONE = {"id": "/Thing", "properties": {"provisioningState": "Succeeded"}}


def operation(small_arm: SmallArm) -> dict[str, str]:
    return {**SOON, "Azure-AsyncOperation": f"{small_arm.url}/operations/1"}


def test_an_operation_is_followed_to_its_end_with_progress(
    small_arm: SmallArm, arm: Arm, patience: Patience, progress: list[str]
) -> None:
    small_arm.answers("PUT", "/thing", Answer(201, {"id": "/Thing"}, operation(small_arm)))
    small_arm.answers(
        "GET",
        "/operations/1",
        Answer(200, {"status": "InProgress"}, SOON),
        Answer(200, {"status": "Provisioning"}, SOON),
        Answer(200, {"status": "Succeeded"}),
    )
    assert arm.put("/thing", "v", {"a": 1}, patience) == "/Thing"
    assert progress == ["InProgress…", "Provisioning…"]
    assert small_arm.asked[0] == ("PUT", "/thing", {"a": 1})


def test_a_failed_operation_is_shown_in_its_own_words_and_the_resource_is_kept(
    small_arm: SmallArm, arm: Arm, patience: Patience
) -> None:
    small_arm.answers("PUT", "/thing", Answer(201, {"id": "/Thing"}, operation(small_arm)))
    error = {"code": "QuotaExceeded", "message": "no cores left"}
    small_arm.answers("GET", "/operations/1", Answer(200, {"status": "Failed", "error": error}))
    with pytest.raises(AcceptedError) as failed:
        arm.put("/thing", "v", {}, patience)
    assert failed.value.resource_id == "/Thing"
    assert failed.value.cause.message == 'Status=200 Code="QuotaExceeded" Message="no cores left"'


def test_a_second_put_waits_for_the_first_one_by_the_resource_itself(
    small_arm: SmallArm, arm: Arm, patience: Patience
) -> None:
    creating = {"id": "/thing", "properties": {"provisioningState": "Creating"}}
    small_arm.answers("PUT", "/thing", Answer(200, creating, SOON))
    small_arm.answers("GET", "/thing", Answer(200, creating), Answer(200, DONE))
    arm.put("/thing", "v", {}, patience)
    assert small_arm.calls("GET") == ["/thing", "/thing"]


def test_a_deletion_is_followed_by_its_location(small_arm: SmallArm, arm: Arm, patience: Patience) -> None:
    headers = {**SOON, "Location": f"{small_arm.url}/results/1"}
    small_arm.answers("DELETE", "/thing", Answer(202, None, headers))
    small_arm.answers("GET", "/results/1", Answer(202, None, headers), Answer(204))
    arm.delete("/thing", "v", {}, patience)
    assert small_arm.calls("GET") == ["/results/1", "/results/1"]


def test_what_is_not_there_is_deleted(small_arm: SmallArm, arm: Arm, patience: Patience) -> None:
    arm.delete("/thing", "v", {}, patience)
    assert small_arm.calls("DELETE") == ["/thing"]


def test_a_busy_service_is_asked_again_and_a_refusal_is_not(small_arm: SmallArm, arm: Arm, patience: Patience) -> None:
    small_arm.answers("GET", "/busy", Answer(429, None, SOON), Answer(503, None, SOON), Answer(200, DONE))
    small_arm.answers("GET", "/no", Answer(409, {"error": {"code": "Conflict", "message": "no"}}))
    assert arm.read("/busy", "v", patience) == DONE
    with pytest.raises(ServiceError, match='Status=409 Code="Conflict" Message="no"'):
        arm.read("/no", "v", patience)
    assert small_arm.calls("GET") == ["/busy"] * 3 + ["/no"]


def test_a_service_that_stays_busy_is_given_up(small_arm: SmallArm, arm: Arm, patience: Patience) -> None:
    small_arm.answers("GET", "/busy", Answer(503, "overloaded", SOON))
    with pytest.raises(ServiceError, match='Status=503 Message="overloaded"'):
        arm.read("/busy", "v", patience)


def test_a_connection_that_was_closed_meanwhile_is_opened_again(
    small_arm: SmallArm, arm: Arm, patience: Patience
) -> None:
    small_arm.answers("GET", "/thing", Answer(200, DONE), Answer(0, hangs_up=True), Answer(200, DONE))
    assert arm.read("/thing", "v", patience) == DONE
    assert arm.read("/thing", "v", patience) == DONE
    assert len(small_arm.calls("GET")) == 3


def test_a_sandbox_that_is_gone_gives_an_error(small_arm: SmallArm, arm: Arm, patience: Patience) -> None:
    small_arm.answers("GET", "/thing", Answer(0, hangs_up=True))
    with pytest.raises(ProviderError, match=r"does not answer .*amlstack sandbox status") as gone:
        arm.read("/thing", "v", patience)
    assert gone.value.code is ErrorCode.UNAVAILABLE


def test_a_token_is_taken_once_and_again_when_it_runs_out(small_arm: SmallArm, arm: Arm, patience: Patience) -> None:
    small_arm.answers("GET", "/thing", Answer(200, DONE))
    arm.read("/thing", "v", patience)
    arm.read("/thing", "v", patience)
    assert small_arm.tokens == 1
    arm._token = (arm._token[0], 0.0)
    arm.read("/thing", "v", patience)
    assert small_arm.tokens == 2


def test_waiting_ends_when_the_engine_gives_up_or_the_time_is_over(small_arm: SmallArm, arm: Arm) -> None:
    small_arm.answers("PUT", "/thing", Answer(201, {"id": "/thing"}, operation(small_arm)))
    small_arm.answers("GET", "/operations/1", Answer(200, {"status": "InProgress"}, SOON))
    cancelled = threading.Event()
    impatient = Patience(cancelled, 60, lambda _: cancelled.set())
    with pytest.raises(AcceptedError) as ended:
        arm.put("/thing", "v", {}, impatient)
    assert ended.value.cause.code is ErrorCode.CANCELLED
    with pytest.raises(AcceptedError, match="operation timed out"):
        arm.put("/thing", "v", {}, Patience(threading.Event(), 0, lambda _: None))


def test_threads_do_not_share_a_connection(small_arm: SmallArm, arm: Arm, patience: Patience) -> None:
    small_arm.answers("GET", "/thing", Answer(200, DONE))
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(arm.read("/thing", "v", patience))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [DONE] * 8
    assert small_arm.tokens == 1


def test_a_certificate_of_another_authority_is_refused(
    small_arm: SmallArm, patience: Patience, elsewhere: SandboxTarget
) -> None:
    with pytest.raises(ProviderError, match="CERTIFICATE_VERIFY_FAILED"):
        Arm(elsewhere).read("/thing", "v", patience)
    assert small_arm.asked == []
