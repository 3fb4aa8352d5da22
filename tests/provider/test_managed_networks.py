"""Isolation is decided by what the workspace has; rules converge; provisioning is begun once and waited for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import empty_pb2

from amlstack.provider.types.network import APPROVED, OFF, OPEN, LiveNetwork, decide, same_rule
from amlstack.rpc import ProviderError
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, Resource
from tests.support.rows import for_each

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire

HOST = {"type": "FQDN", "destination": "files.example.com"}
TAG: dict[str, Any] = {
    "type": "ServiceTag",
    "destination": {"serviceTag": "DataFactory", "protocol": "TCP", "portRanges": "443"},
}


def isolation(wire: Wire) -> Resource:
    return Resource(wire, "amlstack:network:Isolation", "isolation")


def network(wire: Wire) -> Resource:
    return Resource(wire, "amlstack:network:Managed", "network")


def asks(wanted: str, *, given: bool = True, **more: Any) -> dict[str, Any]:
    return {"workspace": WORKSPACE, "wanted": wanted, "given": given, **more}


def has(mode: str = OPEN, **rules: Any) -> dict[str, Any]:
    return {"workspace": WORKSPACE, "mode": mode, "rules": rules}


@for_each(
    "found, wanted, given, mode",
    [
        (None, OPEN, False, OPEN),
        (None, APPROVED, True, APPROVED),
        (OFF, OPEN, False, OFF),
        (OPEN, OFF, False, OPEN),
        (APPROVED, OPEN, False, APPROVED),
        (OFF, OPEN, True, OPEN),
        (OPEN, APPROVED, True, APPROVED),
        (OPEN, OPEN, True, OPEN),
    ],
)
def test_a_workspace_gets_what_is_asked_for_or_keeps_what_it_has(
    found: str | None, wanted: str, given: bool, mode: str
) -> None:
    live = None if found is None else LiveNetwork(found, active=True)
    assert decide(live, wanted, given=given) == mode


@pytest.mark.parametrize(("found", "wanted"), [(OPEN, OFF), (APPROVED, OFF), (APPROVED, OPEN), ("Unheard", OPEN)])
def test_a_step_back_is_refused(found: str, wanted: str) -> None:
    with pytest.raises(ProviderError, match="Azure takes no step back"):
        decide(LiveNetwork(found, active=True), wanted, given=True)


def test_what_cannot_be_in_a_managed_network_is_refused_by_name() -> None:
    excluded = ["cluster a has a subnet of its own"]
    with pytest.raises(ProviderError, match="cluster a has a subnet of its own"):
        decide(LiveNetwork(OPEN, active=True), OFF, given=False, excluded=excluded)
    assert decide(None, OFF, given=False, excluded=excluded) == OFF


def test_a_preview_shows_the_isolation_of_a_new_workspace(wire: Wire, arm: FakeArm) -> None:
    arm.workspaces.clear()
    assert isolation(wire).preview(asks(OPEN, given=False))["mode"] == OPEN


def test_an_edit_is_judged_at_preview_and_nothing_is_asked_without_one(wire: Wire, arm: FakeArm) -> None:
    arm.network.mode = APPROVED
    one = isolation(wire)
    one.up(asks(APPROVED))
    before = len(arm.asked)
    assert one.up(asks(APPROVED)) == "same"
    assert len(arm.asked) == before
    with pytest.raises(Refused, match="from only_approved to allow_internet_outbound"):
        one.diff(one.check(asks(OPEN)))


def test_isolation_is_not_turned_on_beside_computes(wire: Wire, arm: FakeArm) -> None:
    arm.network.computes = ["gpu", "cpu"]
    with pytest.raises(Refused, match="computes: cpu, gpu"):
        isolation(wire).up(asks(OPEN))
    arm.network.computes = []
    assert isolation(wire).up(asks(OPEN)) == "create"


def test_a_preview_that_cannot_ask_leaves_it_open_and_an_update_does_not(wire: Wire, arm: FakeArm, log: Log) -> None:
    arm.fail("GET", "/workspaces/w$", 403, times=None)
    assert isolation(wire).preview(asks(OPEN)).get("mode") != OPEN
    assert any("cannot be asked" in message for message in log.messages("info"))
    with pytest.raises(Refused, match="403"):
        isolation(wire).up(asks(OPEN))


def test_rules_and_provisioning_converge_and_nothing_is_written_twice(wire: Wire, arm: FakeArm) -> None:
    arm.network.mode = APPROVED
    one = network(wire)
    one.up(has(APPROVED, host=HOST, tag=TAG))
    assert (set(arm.network.rules), arm.network.active) == ({"host", "tag"}, True)
    assert one.outputs["status"] == "Active"
    writes = arm.count("PUT", "/outboundRules/")
    assert one.up(has(APPROVED, host=HOST, tag=TAG)) == "same"
    assert one.up(has(APPROVED, host=HOST)) == "update"
    assert (set(arm.network.rules), arm.count("PUT", "/outboundRules/")) == ({"host"}, writes)
    assert arm.count("POST", "/provisionManagedNetwork$") == 1


def test_a_rule_that_somebody_added_or_changed_is_set_right(wire: Wire, arm: FakeArm) -> None:
    arm.network.mode = APPROVED
    one = network(wire)
    one.up(has(APPROVED, host=HOST))
    arm.network.rules["foreign"] = dict(TAG)
    arm.network.rules["host"] = {**HOST, "destination": "other.example.com"}
    assert set(one.diff(one.check(has(APPROVED, host=HOST))).diffs) == {"rules"}
    assert one.up(has(APPROVED, host=HOST)) == "update"
    assert {name: rule["destination"] for name, rule in arm.network.rules.items()} == {"host": "files.example.com"}


def test_a_killed_provisioning_is_gone_on_with(wire: Wire, arm: FakeArm) -> None:
    """The engine knows nothing of it: the operation that Azure is at ends it, or the next one."""
    arm.network.mode, arm.network.busy = OPEN, 2
    network(wire).up(has())
    assert arm.network.active
    assert arm.count("POST", "/provisionManagedNetwork$") == 3
    network(wire).up(has())
    assert arm.count("POST", "/provisionManagedNetwork$") == 3, "one that is active is left alone"


def test_ctrl_c_ends_the_wait_for_provisioning_in_words(wire: Wire, arm: FakeArm, log: Log) -> None:
    arm.network.mode, arm.network.busy = OPEN, 10**6
    refused: list[str] = []

    def up() -> None:
        try:
            network(wire).up(has())
        except Refused as error:
            refused.append(str(error))

    waiting = threading.Thread(target=up)
    waiting.start()
    while not any("at work on the network" in message for message in log.messages("status")):
        waiting.join(0.01)
    wire.call("Cancel", empty_pb2.Empty())
    waiting.join()
    assert refused == [
        "interrupted while the managed network was being made; Azure goes on, and the next `up` waits for it"
    ]


def test_a_network_that_does_not_become_active_is_an_error(wire: Wire, arm: FakeArm) -> None:
    arm.network.mode, arm.network.fails = OPEN, True
    with pytest.raises(Refused, match="the managed network is not active"):
        network(wire).up(has())


def test_a_workspace_without_a_managed_network_is_left_alone(wire: Wire, arm: FakeArm) -> None:
    one = network(wire)
    one.up(has(OFF))
    assert (one.outputs["status"], arm.asked) == (OFF, [])


def test_a_network_goes_with_its_workspace(wire: Wire, arm: FakeArm) -> None:
    arm.network.mode = OPEN
    decided, one = isolation(wire), network(wire)
    decided.up(asks(OPEN))
    one.up(has())
    arm.network.mode = APPROVED
    decided.refresh()
    assert decided.outputs["mode"] == APPROVED
    arm.workspaces.clear()
    decided.refresh()
    one.refresh()
    assert (decided.id, one.id) == ("", "")


@pytest.mark.parametrize(
    ("found", "equal"),
    [
        ({**TAG, "category": "UserDefined", "status": "Active"}, True),
        ({**TAG, "destination": {**TAG["destination"], "protocol": "tcp", "action": "Allow"}}, True),
        ({**TAG, "destination": {**TAG["destination"], "portRanges": "80, 443"}}, False),
        (HOST, False),
    ],
)
def test_rules_are_compared_by_what_is_declared(found: dict[str, Any], equal: bool) -> None:
    assert same_rule(TAG, found) is equal
