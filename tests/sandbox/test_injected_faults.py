"""Faults on request: what a client sees, what the service has then, and that nothing fails without a rule."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.sandbox import injected_faults
from tests.support.sandbox.injected_faults import ALL, ANSWERS, CUT, HELD, HUNG_UP, LET_GO, OPERATION, STORED
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.running import Sandbox

pytestmark = pytest.mark.tools

BODY = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}


@pytest.fixture
def arm(own_sandbox: Sandbox) -> Iterator[Arm]:
    yield Arm(own_sandbox.endpoint)
    injected_faults.inject(own_sandbox.home)


def test_each_fault_is_seen_as_it_is_and_once_where_it_is_to_be_seen_once(own_sandbox: Sandbox, arm: Arm) -> None:
    group, home = arm.make_group("rg-faults"), own_sandbox.home
    done: list[tuple[str, str, str]] = []
    for number, fault in enumerate(ALL):
        account = f"{group}/providers/Microsoft.Storage/storageAccounts/stfault{number}"
        rule = {
            "fault": fault,
            "method": "PUT",
            "path": ".*/storageAccounts/.*",
            "times": 1,
            "headers": {"retry-after-ms": "5"},
        }
        injected_faults.inject(home, rule)
        if fault in ANSWERS:
            answer = arm.put(account, BODY)
            assert answer.error[:2] == ANSWERS[fault][:2]
            assert answer.headers["retry-after-ms"] == "5"
        elif fault == OPERATION:
            answer = arm.put(account, BODY)
            assert arm.finish(answer) == ["Failed"]
            # A storage account is followed by Location, which answers with the error itself.
            assert arm.get(answer.headers["Location"]).error[:2] == (400, "InternalOperationError")
            assert arm.get(account).body["properties"]["provisioningState"] == "Failed"
        else:
            with pytest.raises((http.client.HTTPException, OSError)):
                arm.put(account, BODY)
        assert (arm.get(account).status == 200) == (fault in {*STORED, OPERATION}), fault
        again = arm.put(account, BODY)
        assert again.status < 300, fault
        if "Location" in again.headers:
            assert arm.finish(again)[-1] == "Succeeded"
        done.append((fault, "PUT", account))
    assert injected_faults.injected(home) == done


def test_a_failed_deletion_leaves_the_resource_and_the_next_one_removes_it(own_sandbox: Sandbox, arm: Arm) -> None:
    workspace = arm.make_workspace("faulty")
    rule = {"fault": CUT, "method": "DELETE", "path": ".*/workspaces/faulty", "skip": 1}
    injected_faults.inject(own_sandbox.home, {**rule, "fault": OPERATION, "skip": 0, "times": 1})
    answer = arm.call("DELETE", workspace)
    assert arm.finish(answer) == ["Failed"]
    assert arm.get(workspace).body["properties"]["provisioningState"] == "Failed"
    injected_faults.inject(own_sandbox.home, rule)
    assert arm.finish(arm.call("DELETE", workspace))[-1] == "Succeeded"
    assert arm.get(workspace).status == 404


def test_reads_pass_while_writes_fail(own_sandbox: Sandbox, arm: Arm) -> None:
    group = arm.make_group("rg-reads")
    injected_faults.inject(own_sandbox.home, {"fault": CUT, "method": "PUT", "path": ".*"})
    assert arm.get(group).status == 200


def test_a_held_request_is_answered_when_its_rule_goes_and_is_nothing_when_its_client_has_gone(
    own_sandbox: Sandbox, arm: Arm
) -> None:
    home = own_sandbox.home
    rule = {"fault": HELD, "method": "PUT", "path": "/subscriptions/[^/]+/resourceGroups/rg-held"}
    group = f"/subscriptions/{own_sandbox.endpoint.subscription}/resourceGroups/rg-held"

    def seen() -> list[str]:
        return [fault for fault, _, path in injected_faults.injected(home) if path == group]

    def until(fault: str) -> None:
        while seen()[-1:] != [fault]:
            time.sleep(0.01)

    injected_faults.inject(home, rule)
    endpoint = own_sandbox.endpoint
    place = endpoint.url.removeprefix("https://")
    hasty = http.client.HTTPSConnection(place, context=ssl.create_default_context(cafile=str(endpoint.ca)))
    headers = {"Authorization": f"Bearer {arm.token}", "Content-Type": "application/json"}
    hasty.request("PUT", f"{group}?api-version=2024-03-01", '{"location": "eastus"}', headers)
    until(HELD)
    hasty.close()
    until(HUNG_UP)
    injected_faults.inject(home, {**rule, "path": "/nothing"}, rule)
    assert arm.get(group).status == 404

    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(arm.put(group, {"location": "eastus"}).status))
    asking.start()
    until(HELD)
    assert answers == []
    injected_faults.inject(home)
    asking.join()
    assert answers == [201]
    assert seen() == [HELD, HUNG_UP, HELD, LET_GO]
