"""Resources of others in a resource group or workspace: found, named, and their loss refused beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider.arm import ArmClient, Response
from amlstack.provider.stacks import foreign
from amlstack.rpc import UNKNOWN
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, Resource
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire

GROUP = WORKSPACE.partition("/providers/")[0]
GUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
OTHER = foreign.Foreign("storageAccounts", "stdata", f"{GROUP}/providers/Microsoft.Storage/storageAccounts/stdata")


def at(kind: str, name: str) -> str:
    return f"{GROUP}/providers/{kind}/{name}"


OWNED = (
    WORKSPACE,
    at("Microsoft.Insights/components", "appi-w"),
    at("Microsoft.Network/privateEndpoints", "pe-w"),
    at("Microsoft.Storage/storageAccounts", "stw"),
    f"{WORKSPACE}/computes/a100",
    f"{WORKSPACE}/environments/small/versions/0123456789abcdef",
)


class Listing(ArmClient):
    """A resource manager that has these lists, each of its items on a page of its own."""

    def __init__(self, lists: Mapping[str, list[dict[str, Any]]]) -> None:
        super().__init__("https://127.0.0.1:1")
        self.lists = lists

    def request(self, method: str, path: str, api_version: str | None = None, **options: Any) -> Response:
        name, _, rest = path.partition("#")
        items, number = self.lists.get(name), int(rest or 0)
        if items is None:
            return Response(404, {"error": {}})
        following = {"nextLink": f"{name}#{number + 1}"} if number + 1 < len(items) else {}
        return Response(200, {"value": items[number : number + 1], **following})


def resource(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"id": at(kind, name), "type": kind, "name": name, **more}


def in_group(*items: dict[str, Any]) -> list[str]:
    arm: Any = Listing({f"{GROUP}/resources": list(items)})
    return [str(one) for one in foreign.in_group(arm, GROUP, OWNED)]


@for_each(
    "item",
    [
        resource("Microsoft.Storage/storageAccounts", "STW"),
        resource("microsoft.alertsmanagement/smartDetectorAlertRules", "Failure Anomalies - appi-w"),
        resource("microsoft.insights/actiongroups", "Application Insights Smart Detection"),
        resource("Microsoft.Network/networkInterfaces", f"pe-w.nic.{GUID}"),
        resource("Microsoft.Network/networkSecurityGroups", f"{GUID}-azurebatch-cloudservicenetworksecuritygroup"),
        resource("Microsoft.Network/publicIPAddresses", f"{GUID}-azurebatch-cloudservicepublicip"),
        resource("Microsoft.EventGrid/systemTopics", f"stw-{GUID}"),
        resource("Microsoft.Compute/disks", "anything", managedBy=OWNED[0]),
    ],
)
def test_what_the_stack_owns_and_what_azure_makes_beside_it_blocks_nothing(item: dict[str, Any]) -> None:
    assert in_group(item) == []


@for_each(
    "item",
    [
        resource("Microsoft.Storage/storageAccounts", "stdata"),
        resource("microsoft.alertsmanagement/smartDetectorAlertRules", "Failure Anomalies - appi-of-others"),
        resource("microsoft.insights/actiongroups", "on call"),
        resource("Microsoft.Network/networkInterfaces", "nic-of-a-machine"),
        resource("Microsoft.EventGrid/systemTopics", "stw-to-the-data-team"),
        resource("Microsoft.Compute/disks", "disk", managedBy=at("Microsoft.Compute/virtualMachines", "vm")),
    ],
)
def test_what_others_have_put_into_the_group_is_found(item: dict[str, Any]) -> None:
    kind = item["type"].rpartition("/")[2]
    azures = resource("microsoft.insights/actiongroups", "Application Insights Smart Detection")
    assert in_group(azures, item, azures) == [f"{kind}/{item['name']}"]


def test_of_a_workspace_what_others_made_is_found_and_not_what_every_workspace_has() -> None:
    def inside(kind: str, *names: str) -> list[dict[str, Any]]:
        return [{"id": f"{WORKSPACE}/{kind}/{name}", "name": name, "properties": {}} for name in names]

    def job(name: str, **marks: str) -> dict[str, Any]:
        properties = {"properties": marks, "status": "Running" if "amlstack.owner" in marks else "Completed"}
        return {"id": f"{WORKSPACE}/jobs/{name}", "name": name, "properties": properties}

    ours = {"amlstack.owner": "train/dev", "amlstack.stack": "s1"}
    arm: Any = Listing(
        {
            f"{WORKSPACE}/computes": inside("computes", "a100", "of-others"),
            f"{WORKSPACE}/onlineEndpoints": inside("onlineEndpoints", "chat"),
            f"{WORKSPACE}/datastores": inside("datastores", "workspaceblobstore", "workspaceworkingdirectory", "lake"),
            f"{WORKSPACE}/environments": inside("environments", "small", "AzureML-acpt", "theirs"),
            f"{WORKSPACE}/jobs": [job("a", **ours), job("b"), job("c", **{**ours, "amlstack.stack": "s2"})],
        }
    )
    found = foreign.in_workspace(arm, WORKSPACE, OWNED, ("train/dev",), "s1")
    assert [str(one) for one in found] == [
        "computes/of-others", "onlineEndpoints/chat", "datastores/lake", "environments/theirs", "jobs/b", "jobs/c",
    ]  # fmt: skip
    assert [one.active for one in found if one.active] == ["run c of stack train/dev is Running"]
    assert foreign.unnamed(found, "JOBS/*, lake,onlineendpoints/chat,computes/of-others, theirs") == []
    assert [str(one) for one in foreign.unnamed(found, "jobs/b,la")][-2:] == ["environments/theirs", "jobs/c"]
    assert foreign.unnamed(found, "*") == []


def test_a_run_that_a_resource_of_the_stack_stands_for_is_its_own() -> None:
    def job(name: str, owner: str) -> dict[str, Any]:
        properties = {"properties": {"amlstack.owner": owner}, "status": "Running"}
        return {"id": f"{WORKSPACE}/jobs/{name}", "name": name, "properties": properties}

    def of_schedule(name: str, shown: str = "") -> dict[str, Any]:
        properties = {"status": "Completed", "displayName": shown}
        return {"id": f"{WORKSPACE}/jobs/{name}", "name": name, "properties": properties}

    jobs = [
        of_schedule("nightly-20261124T000000Z"),
        of_schedule("calm_sea_1", "Nightly-20261125T000000Z"),
        of_schedule("weekly-1"),
        of_schedule("nightly-of-a-colleague"),
        of_schedule("nightly-too-20261124T000000Z"),
        job("a", "train/former"),
        job("b", "train/other"),
    ]
    arm: Any = Listing({f"{WORKSPACE}/jobs": jobs})
    found = foreign.in_workspace(
        arm, WORKSPACE, [f"{WORKSPACE}/jobs/a", f"{WORKSPACE}/schedules/nightly"], ("train/dev",), "s1"
    )
    assert [str(one) for one in found] == [
        "jobs/weekly-1", "jobs/nightly-of-a-colleague", "jobs/nightly-too-20261124T000000Z", "jobs/b",
    ]  # fmt: skip


KEPT = {"group": GROUP, "owned": list(OWNED), "stackId": "s1"}


@pytest.fixture
def keeper(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> Resource:
    monkeypatch.setattr(foreign, "in_group", lambda *_: [OTHER])
    one = Resource(wire, "amlstack:stack:Keeper", "keeper")
    one.up(KEPT)
    return one


@pytest.mark.parametrize(
    "change",
    [{"group": UNKNOWN}, {"group": None}, {"group": f"{GROUP}-other"}],
    ids=["replaced", "removed", "another"],
)
def test_a_group_that_an_update_takes_away_is_refused_while_it_holds_something_of_others(
    keeper: Resource, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    inputs = {name: value for name, value in {**KEPT, **change}.items() if value is not None}
    with pytest.raises(Refused, match=r"what this stack does not own: storageAccounts/stdata\. Nothing was deleted"):
        keeper.diff(inputs)
    monkeypatch.setenv(foreign.VARIABLE, "stdata")
    assert not keeper.diff(inputs).replaces


def test_the_end_of_the_stack_is_refused_until_what_goes_is_named(
    keeper: Resource, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keeper.up({**KEPT, "owned": []}) == "same"
    with pytest.raises(Refused, match="storageAccounts/stdata"):
        keeper.remove()
    monkeypatch.setenv(foreign.VARIABLE, "storageAccounts/stdata")
    keeper.remove()


def test_a_keeper_replaced_by_command_asks_nothing(keeper: Resource) -> None:
    keeper.up(KEPT)
    keeper._delete(keeper.id, keeper.inputs, keeper.outputs)


def test_the_end_of_a_stack_on_a_workspace_of_others_ends_no_run_of_others_on_its_clusters(
    wire: Wire, arm: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"a100": 2}
    others = arm.answer

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        count = counts.get(path.rpartition("/computes/")[2])
        inner = {"nodeStateCounts": {"runningNodeCount": count}}
        return others(method, path, query, body) if count is None else (200, {"properties": {"properties": inner}})

    monkeypatch.setattr(arm, "answer", answer)
    one = Resource(wire, "amlstack:stack:Keeper", "keeper")
    one.up({"owned": [f"{WORKSPACE}/computes/a100", f"{WORKSPACE}/computes/gone"], "stackId": "s" * 32})
    with pytest.raises(Refused, match=r"2 nodes are at work on cluster a100 .* would be deleted.*Nothing was deleted"):
        one.remove()
    counts["a100"] = 0
    one.remove()
