"""The sandbox's answers about a region: usages, sizes, and limits that were set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from amlstack.cli.commands.sandbox import app
from amlstack.sandbox.kinds.machine_learning import computes
from amlstack.sandbox.store.store import Store
from tests.support.sandbox.sandbox_client import ROOT, cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.sandbox.manager import Manager

FAMILY, SIZE = "Standard NDASv4_A100 Family", "Standard_ND96asr_v4"
LOCATIONS = f"{ROOT}/providers/Microsoft.MachineLearningServices/locations"


def usages(manager: Manager, region: str = "eastus") -> dict[str, dict[str, Any]]:
    status, body = manager.call("GET", f"{LOCATIONS}/{region}/usages")
    assert status == 200
    return {row["name"]["value"]: row for row in body["value"] if "/lowPriorityCores/" not in row["type"]}


def dedicated(least: int = 0, most: int = 4, **more: Any) -> dict[str, Any]:
    body = cluster()
    inner = body["properties"]["properties"]
    inner |= {"vmSize": SIZE, "scaleSettings": {"minNodeCount": least, "maxNodeCount": most}, **more}
    return body


def test_usages_have_the_rows_that_azure_answers(manager: Manager) -> None:
    rows = manager.call("GET", f"{LOCATIONS}/eastus/usages")[1]["value"]
    kinds = [row["type"].split("/", 1)[1] for row in rows]
    count = (len(rows) - 3) // 2
    dedicated, low = ["vmFamily/dedicatedCores/usages"] * count, ["vmFamily/lowPriorityCores/usages"] * count
    totals = ["totalClusters/usages", "totalDedicatedCores/usages", "totalLowPriorityCores/usages"]
    assert kinds == [*totals[:2], *dedicated, totals[2], *low]
    assert rows[0] == {
        "id": ROOT,
        "type": "Microsoft.MachineLearningServices/totalClusters/usages",
        "unit": "Count",
        "currentValue": 0,
        "limit": 200,
        "name": {"value": "TotalClusters", "localizedValue": "Total Clusters"},
    }
    row = usages(manager)[FAMILY]
    assert row["id"] == f"{ROOT}/usages/Standard_NDASv4_A100_Family"
    assert row["name"]["localizedValue"] == "Standard  NDASv4_A100  Family Cluster Dedicated vCPUs"
    assert (row["currentValue"], row["limit"]) == (0, computes.LIMIT)
    assert {row["limit"] for row in rows if "/lowPriorityCores/" in row["type"]} == {-1}


def test_nodes_that_there_are_count_for_their_family_and_region(manager: Manager) -> None:
    compute = f"{manager.workspace}/computes/a100"
    assert manager.call("PUT", compute, {**dedicated(), "location": "eastus"})[0] == 201
    for number in range(3):
        manager.context.store.nodes.put(compute, number, "idle")

    assert usages(manager)[FAMILY]["currentValue"] == 288
    assert usages(manager)["TotalDedicatedCores"]["currentValue"] == 288
    assert usages(manager)["TotalClusters"]["currentValue"] == 1
    assert usages(manager, "westeurope")["TotalDedicatedCores"]["currentValue"] == 0


def test_sizes_are_those_of_the_catalogue_but_what_is_withheld(manager: Manager) -> None:
    def names() -> set[str]:
        return {row["name"] for row in manager.call("GET", f"{LOCATIONS}/eastus/vmSizes")[1]["value"]}

    assert SIZE in names()
    manager.context.store.set_quota({"eastus": {"withheld": [SIZE.lower()]}})
    assert SIZE not in names()
    status, error = manager.call("PUT", f"{manager.workspace}/computes/a100", {**dedicated(), "location": "eastus"})
    assert (status, error["code"]) == (400, "InvalidVmSize")


@pytest.mark.parametrize(("limit", "least", "nodes"), [(192, 3, 3), (0, 0, 1)])
def test_a_cluster_whose_smallest_scale_has_no_room_fails_and_is_made_again(
    manager: Manager, limit: int, least: int, nodes: int
) -> None:
    manager.context.store.set_quota({"eastus": {"families": {FAMILY: limit}}})
    path = f"{manager.workspace}/computes/a100"
    assert manager.call("PUT", path, {**dedicated(least), "location": "eastus"})[0] == 201
    manager.settle()
    failed = manager.call("GET", path)[1]["properties"]
    (error,) = (each["error"] for each in failed["provisioningErrors"])
    assert (failed["provisioningState"], error["code"]) == ("Failed", "ClusterMinNodesExceedCoreQuota")
    assert f"quota of {limit} and cannot accomodate for at least {nodes} requested" in error["message"]
    assert failed["properties"]["currentNodeCount"] is None
    manager.context.store.set_quota({})
    assert manager.call("PUT", path, {**dedicated(least), "location": "eastus"})[0] == 201
    manager.settle()
    made = manager.call("GET", path)[1]["properties"]
    assert (made["provisioningState"], made["provisioningErrors"]) == ("Succeeded", None)
    assert made["properties"]["scaleSettings"]["nodeIdleTimeBeforeScaleDown"] == "PT2M"


def test_an_administrator_needs_a_key_and_local_accounts(manager: Manager) -> None:
    path = f"{manager.workspace}/computes/a100"
    body = {**dedicated(userAccountCredentials={"adminUserName": "me"}), "location": "eastus"}
    assert manager.call("PUT", path, body)[1]["code"] == "InvalidRequestContent"
    account = {"adminUserName": "me", "adminUserSshPublicKey": "ssh-rsa AAAA", "adminUserPassword": "hidden"}
    body = {**dedicated(userAccountCredentials=account), "location": "eastus"}
    body["properties"]["disableLocalAuth"] = True
    assert "local account" in manager.call("PUT", path, body)[1]["message"]
    body["properties"]["disableLocalAuth"] = False
    assert manager.call("PUT", path, body)[0] == 201
    assert "hidden" not in str(manager.call("GET", path))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--region", "westeuropa", "--limit", "4"], "got `westeuropa`. Did you mean `westeurope`?"),
        (["--region", "westeurope", "--family", "standardNDv5H10Family", "--limit", "4"], "standardNDv5H100Family"),
        (["--region", "westeurope", "--family", "standardNDv5H100Family"], "--family needs --limit"),
        (["--region", "westeurope", "--withhold", "Standard_ND96asr_v5"], "is no size"),
    ],
)
def test_what_cannot_be_set_is_refused_in_words(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["quota", *words])
    assert done.exit_code != 0
    assert message in " ".join(done.output.split())


def test_limits_are_set_shown_and_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path))
    Store(tmp_path).close()

    def quota(*words: str) -> str:
        done = CliRunner().invoke(app, ["quota", *words])
        assert done.exit_code == 0, done.output
        return done.output

    assert quota() == "no limits are set\n"
    quota("--region", "westeurope", "--family", FAMILY.upper(), "--limit", "96")
    quota("--region", "westeurope", "--low-priority", "0", "--withhold", SIZE)
    made = Store(tmp_path)
    known = made.quota()
    made.close()
    assert known == {"westeurope": {"families": {FAMILY: 96}, "low_priority": 0, "withheld": [SIZE]}}
    assert quota("--clear") == "no limits are set\n"


def test_a_workspace_is_given_a_part_of_a_family(manager: Manager) -> None:
    def parts() -> dict[str, int]:
        rows = manager.call("GET", f"{LOCATIONS}/eastus/quotas")[1]["value"]
        return {
            row["id"]: row["limit"] for row in rows if "/workspaces/" in row["type"] and row["name"]["value"] == FAMILY
        }

    own = f"{manager.workspace}/quotas/Standard_NDASv4_A100_Family"
    assert parts() == {own: computes.LIMIT}
    name = manager.workspace.rpartition("/")[2]
    change = computes.QuotaChange(FAMILY.lower(), 96, workspace=name)
    assert computes.wrong("eastus", change) is None
    manager.context.store.set_quota(computes.changed({}, "eastus", change))
    assert parts() == {own: 96}
    assert usages(manager)[FAMILY]["limit"] == computes.LIMIT
    assert "needs --family" in str(computes.wrong("eastus", computes.QuotaChange(workspace=name)))
