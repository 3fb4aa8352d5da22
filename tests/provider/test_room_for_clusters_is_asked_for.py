"""The provider's questions about quota: two requests for each region, never repeated, and no failure of any of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from pulumi.runtime.proto import provider_pb2

from amlstack.provider.arm import client
from amlstack.rpc import bare, decode, encode
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire

SIZE = "Standard_ND96asr_v4"
ROOT = "/subscriptions/sub/providers/Microsoft.MachineLearningServices/locations"
USAGE = {
    "id": "/subscriptions/sub/usages",
    "type": "Microsoft.MachineLearningServices/dedicatedCores/usages",
    "currentValue": 14,
    "limit": 24,
    "name": {"localizedValue": "Total Cluster Dedicated Regional vCPUs", "value": "Total …"},
    "unit": "Count",
}
OFFERED = {"name": "STANDARD_ND96ASR_V4", "family": "standardNDAS", "vCPUs": 96, "lowPriorityCapable": False}
OTHER = {"name": "Standard_DS1_v2", "family": "standardDSv2Family", "vCPUs": 1, "lowPriorityCapable": True}


def asked(wire: Wire, token: str = "amlstack:capacity:ofRegions", **args: Any) -> dict[str, Any]:
    args = args or {"subscription": "sub", "regions": {"westeurope": [SIZE], "northeurope": [SIZE]}}
    answer = wire.call("Invoke", provider_pb2.InvokeRequest(tok=token, args=encode(args)))
    found: dict[str, Any] = bare(decode(getattr(answer, "return")))
    return found


@pytest.fixture
def service(arm: FakeArm, monkeypatch: pytest.MonkeyPatch) -> FakeArm:
    """Answers what regions and a workspace are asked for."""
    lists = {"usages": [USAGE], "vmSizes": [OTHER, OFFERED], "computes": [cluster("train"), {"name": "vm"}]}
    others = arm.answer

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        what = path.rsplit("/", 1)[-1]
        return (200, {"value": lists[what]}) if what in lists else others(method, path, query, body)

    monkeypatch.setattr(arm, "answer", answer)
    return arm


def cluster(name: str) -> dict[str, Any]:
    inner = {"vmSize": SIZE, "scaleSettings": {"maxNodeCount": 4}}
    return {"name": name, "location": "West Europe", "properties": {"computeType": "AmlCompute", "properties": inner}}


def test_each_region_is_asked_twice_and_once_is_enough(wire: Wire, service: FakeArm) -> None:
    found = asked(wire)["regions"]

    expected = {
        "usages": [{"name": "Total …", "label": "Total Cluster Dedicated Regional vCPUs", "current": 14, "limit": 24}],
        "sizes": {SIZE: {"family": "standardNDAS", "vcpus": 96, "lowPriority": False}},
        "listed": 2,
        "problem": "",
    }
    assert found == {"westeurope": expected, "northeurope": expected}
    assert sorted(one.path for one in service.asked) == sorted(
        f"{ROOT}/{region}/{what}" for region in ("westeurope", "northeurope") for what in ("usages", "vmSizes")
    )
    assert len(service.signed_in) == 1


def test_the_part_of_a_workspace_is_asked_for_and_other_workspaces_are_left_out(
    wire: Wire, service: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "Standard_DSv2_Family_Cluster_Dedicated_vCPUs"
    rows = [
        {"id": f"{WORKSPACE.upper()}/quotas/{name}", "limit": 100, "unit": "Count", "name": {"value": "DSv2"}},
        {"id": f"{WORKSPACE}2/quotas/{name}", "limit": 200, "unit": "Count", "name": {"value": "DSv2"}},
        {"id": f"/subscriptions/sub/quotas/{name}", "limit": 300, "unit": "Count"},
    ]
    others = service.answer

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        return (200, {"value": rows}) if path.endswith("/quotas") else others(method, path, query, body)

    monkeypatch.setattr(service, "answer", answer)
    args = {"subscription": "sub", "regions": {"westeurope": [SIZE]}, "workspace": WORKSPACE}
    found = asked(wire, **args)["regions"]["westeurope"]
    assert found["granted"] == [{"name": "DSv2", "label": name, "current": 0, "limit": 100}]
    assert (found["grantedProblem"], found["listed"]) == ("", 2)

    service.fail("GET", "/quotas$", 403, code="Refused", message="not today")
    found = asked(wire, **args)["regions"]["westeurope"]
    assert (found["granted"], found["listed"]) == ([], 2)
    assert "not today" in found["grantedProblem"]


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_what_is_refused_is_a_problem_in_words_and_is_not_asked_again(
    wire: Wire, service: FakeArm, status: int
) -> None:
    service.fail("GET", "northeurope/vmSizes", status, code="Refused", message="not today")
    found = asked(wire)["regions"]
    assert "not today" in found["northeurope"]["problem"]
    assert found["northeurope"]["sizes"] == {}
    assert found["westeurope"]["problem"] == ""
    assert service.count("GET", "northeurope/vmSizes") == 1


def test_who_does_not_answer_the_first_request_is_asked_nothing_more(wire: Wire, service: FakeArm) -> None:
    service.fail("GET", "usages", 0)
    found = asked(wire)["regions"]
    assert {one["problem"].split(":")[0] for one in found.values()} == {"no answer"}
    assert len(service.asked) == 1


def test_an_answer_that_does_not_come_is_not_waited_for(
    wire: Wire, service: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "SECONDS", 0.0)
    late = threading.Event()
    service.fail("GET", "usages", 0, hold=late)
    try:
        assert "no answer within" in asked(wire)["regions"]["westeurope"]["problem"]
    finally:
        late.set()
        for thread in threading.enumerate():  # who still asks must not outlive the connections of this test
            if thread.name.endswith("(_into)"):
                thread.join(30)


def test_the_clusters_of_a_workspace_are_its_aml_computes(wire: Wire, service: FakeArm) -> None:
    found = asked(wire, "amlstack:capacity:ofWorkspace", workspace=WORKSPACE)
    train = {"name": "train", "location": "westeurope", "size": SIZE, "priority": "Dedicated", "max": 4}
    assert found == {"clusters": [train], "problem": ""}
    assert service.count("GET", "/computes$") == 1


def test_a_workspace_that_is_not_there_has_no_clusters(wire: Wire, service: FakeArm) -> None:
    service.fail("GET", "/computes", 404, code="ResourceGroupNotFound", message="no group")
    assert asked(wire, "amlstack:capacity:ofWorkspace", workspace=WORKSPACE) == {"clusters": [], "problem": ""}


def test_the_states_of_resource_providers_are_asked_for_one_by_one(
    wire: Wire, service: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = service.answer
    states = {"Microsoft.Storage": "Registered", "Microsoft.Network": "NotRegistered"}

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        name = path.rsplit("/", 1)[-1]
        if not name.startswith("Microsoft."):
            return others(method, path, query, body)
        return (200, {"registrationState": states[name]}) if name in states else (404, {})

    monkeypatch.setattr(service, "answer", answer)
    token = "amlstack:capacity:ofProviders"
    found = asked(wire, token, subscription="sub", namespaces=[*states, "Microsoft.Moon"])
    assert found == {"states": {**states, "Microsoft.Moon": ""}, "problem": ""}

    service.fail("GET", "Microsoft.Network$", 403, code="Refused", message="not today")
    found = asked(wire, token, subscription="sub", namespaces=list(states))
    assert found["states"] == {"Microsoft.Storage": "Registered"}
    assert "not today" in found["problem"]


def test_a_function_that_there_is_not_is_refused_by_name(wire: Wire) -> None:
    with pytest.raises(Refused, match="there is no function amlstack:capacity:ofMoon"):
        asked(wire, "amlstack:capacity:ofMoon")
