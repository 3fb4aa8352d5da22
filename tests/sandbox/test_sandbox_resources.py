"""Resources come to be and go as the service lets them: states, names, parents, what can change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox import kinds
from amlstack.sandbox.service.manager import advance_all
from tests.support.sandbox.sandbox_client import ML, ROOT, Arm, cluster, job, workspace_bodies

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

STORAGE = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}


def test_a_new_resource_is_creating_until_it_was_polled_to_its_end(manager: Manager) -> None:
    group = f"{ROOT}/resourceGroups/lro"
    manager.call("PUT", group, {"location": "eastus"})
    path = f"{group}/providers/Microsoft.Network/virtualNetworks/lronet"

    body = {"location": "eastus", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}
    assert manager.call("PUT", path, body)[0] == 201
    states = [manager.call("GET", path)[1]["properties"]["provisioningState"] for _ in range(4)]

    assert states[0] == "Updating"
    assert states[-1] == "Succeeded"


def test_a_client_is_asked_to_poll_again_soon(arm: Arm) -> None:
    made = arm.put(arm.make_group("lro") + "/providers/Microsoft.Storage/storageAccounts/lrostore", STORAGE)

    assert (made.status, made.body) == (202, None)
    assert int(made.headers["retry-after-ms"]) > 0
    assert "Retry-After" not in made.headers, "zero would count as absent, one second is slow"
    assert "Azure-AsyncOperation" not in made.headers, "Azure was recorded to answer the place of the result alone"
    assert arm.finish(made)[-1] == "Succeeded"
    answer = arm.get(made.headers["Location"])
    assert (answer.status, answer.body["properties"]["provisioningState"]) == (200, "Succeeded")


def test_a_deleted_group_takes_everything_with_it(arm: Arm) -> None:
    workspace = arm.make_workspace("cascade")
    arm.make_cluster(workspace)
    group = workspace.partition("/providers/")[0]

    gone = arm.call("DELETE", group)

    assert gone.status == 202
    assert "Azure-AsyncOperation" not in gone.headers
    assert arm.finish(gone)[-1] == "Succeeded"
    answer = arm.get(gone.headers["Location"])
    assert (answer.status, answer.body) == (200, None)
    assert arm.get(group).error[:2] == (404, "ResourceGroupNotFound")
    arm.make_group("cascade")
    assert arm.get(workspace).error[:2] == (404, "ResourceNotFound")
    assert arm.get(f"{workspace}/computes/gpu").error[:2] == (404, "ParentResourceNotFound")


def test_a_lost_job_a_lost_workspace_and_a_lost_group_are_three_answers(manager: Manager) -> None:
    codes = [
        manager.call("GET", path)[1]["code"]
        for path in (
            f"{manager.workspace}/jobs/lost",
            f"{manager.workspace}x/jobs/lost",
            f"{ROOT}/resourceGroups/other/providers/{ML}/space-1/jobs/lost",
        )
    ]

    assert codes == ["UserError", "ParentResourceNotFound", "ResourceGroupNotFound"]


def test_ids_ignore_letter_case_and_keep_the_letters_of_their_maker(manager: Manager) -> None:
    status, answer = manager.call(
        "GET", manager.workspace.replace("resourceGroups/rg", "resourcegroups/RG").replace("space-1", "SPACE-1")
    )

    assert (status, answer["id"]) == (200, manager.workspace)


@pytest.mark.parametrize(
    ("kind", "name", "rule"),
    [
        ("Microsoft.Storage/storageAccounts", "Has-Hyphen", "3 to 24 lower-case letters and digits"),
        ("Microsoft.Storage/storageAccounts", "a" * 25, "3 to 24 lower-case letters and digits"),
        ("Microsoft.KeyVault/vaults", "kv--1", "single hyphens"),
        ("Microsoft.KeyVault/vaults", "kv-", "no hyphen at the end"),
        ("Microsoft.ContainerRegistry/registries", "a-b-c-d", "5 to 50 letters and digits"),
        (ML, "ws", "3 to 33 letters"),
        (f"{ML}/space-1/computes", "1st", "a letter first"),
        (f"{ML}/space-1/computes", "a" * 25, "3 to 24 letters"),
        (f"{ML}/space-1/computes", "gpu-", "no '-' at the end"),
        (f"{ML}/space-1/jobs", "a b", "letters, digits, hyphens and underscores"),
        (f"{ML}/space-1/environments/a b/versions", "1", "letters, digits, periods"),
    ],
)
def test_names_obey_the_rules_of_their_service(manager: Manager, kind: str, name: str, rule: str) -> None:
    group = manager.workspace.partition("/providers/")[0]
    bodies: dict[str, Any] = {
        "Microsoft.KeyVault/vaults": {
            "location": "e",
            "properties": {"tenantId": "t", "sku": {"family": "A", "name": "standard"}},
        },
        "versions": {"properties": {"image": "x"}},
    }
    body = bodies.get(kind if kind.startswith("Microsoft.Key") else kind.rsplit("/", 1)[-1], {})

    status, error = manager.call("PUT", f"{group}/providers/{kind}/{name}", body)

    assert (status, error["code"]) == (400, "InvalidResourceName")
    assert rule in error["message"]


@pytest.mark.parametrize(
    "closed", [{"ipAllowlist": ["20.1.2.3"]}, {"networkAcls": {"defaultAction": "Deny"}}], ids=["list", "rules"]
)
def test_a_workspace_for_some_addresses_is_refused_by_name(manager: Manager, closed: dict[str, Any]) -> None:
    status, error = manager.call("PATCH", manager.workspace, {"properties": closed})
    assert (status, error["code"]) == (501, "SandboxNotEmulated")


def test_a_workspace_answers_its_vault_in_azures_letters(manager: Manager) -> None:
    whole = manager.call("GET", manager.workspace)[1]
    shown, group = whole["properties"], manager.workspace.partition("/providers/")[0]
    assert shown["keyVault"].startswith(f"{group}/providers/Microsoft.Keyvault/vaults/")
    assert shown["applicationInsights"].startswith(f"{group}/providers/Microsoft.insights/components/")
    assert (shown["friendlyName"], shown["privateLinkCount"], whole["etag"]) == ("", 0, None)


def test_a_group_answers_head_without_a_body(manager: Manager) -> None:
    group = manager.workspace.partition("/providers/")[0]
    assert manager.call("HEAD", group) == (204, None)
    assert manager.call("HEAD", f"{group}x")[0] == 404


def test_an_id_has_resource_groups_in_azures_letters(manager: Manager) -> None:
    asked = f"{ROOT}/resourcegroups/small"
    assert manager.call("PUT", asked, {"location": "eastus"})[1]["id"] == f"{ROOT}/resourceGroups/small"


def test_names_in_the_worlds_one_name_space_are_taken_once(arm: Arm) -> None:
    first, second = arm.make_group("first"), arm.make_group("second")
    path = "/providers/Microsoft.Storage/storageAccounts/takenonce"
    arm.put(first + path, STORAGE)

    assert arm.put(second + path, STORAGE).error[:2] == (409, "StorageAccountAlreadyTaken")
    assert arm.put(first + path, STORAGE).status == 200


def test_a_tracked_resource_has_a_location_that_stays(manager: Manager) -> None:
    path = manager.workspace.partition("/providers/")[0] + "/providers/Microsoft.Storage/storageAccounts/space1"
    moved = {**STORAGE, "location": "West US"}

    assert manager.call("PUT", path, {**STORAGE, "location": None})[1]["code"] == "LocationRequired"
    assert manager.call("PUT", path, moved)[1]["code"] == "InvalidResourceLocation"
    assert manager.call("PUT", path, {**STORAGE, "location": "East US"})[0] == 200


def test_a_workspace_needs_neighbours_that_exist(manager: Manager) -> None:
    _, workspace = manager.call("GET", manager.workspace)
    properties = {key: workspace["properties"][key] for key in ("storageAccount", "keyVault", "applicationInsights")}
    body: dict[str, Any] = {"location": "eastus", "properties": properties}
    swapped = {**properties, "keyVault": properties["storageAccount"]}

    errors = [
        manager.call("PUT", f"{manager.workspace}2", {**body, "properties": changed})[1]["message"]
        for changed in (
            {**properties, "storageAccount": None},
            {**properties, "applicationInsights": "/nowhere"},
            swapped,
        )
    ]

    assert "'properties.storageAccount': the required property is missing" in errors[0]
    assert "'properties.applicationInsights': '/nowhere' was not found" in errors[1]
    assert "expected the id of a Microsoft.KeyVault/vaults" in errors[2]


def test_a_workspace_is_born_with_its_datastores(manager: Manager) -> None:
    _, listed = manager.call("GET", f"{manager.workspace}/datastores", isDefault="true")

    (store,) = listed["value"]
    assert store["name"] == "workspaceblobstore"
    assert store["properties"]["containerName"].startswith("azureml-blobstore-")
    assert manager.call("DELETE", store["id"])[1]["code"] == "UserError"
    moved = {"properties": {**store["properties"], "containerName": "elsewhere"}}
    assert manager.call("PUT", store["id"], moved)[1]["code"] == "UserError"
    assert manager.call("PUT", store["id"], {"properties": store["properties"]})[0] == 200
    _, every = manager.call("GET", f"{manager.workspace}/datastores")
    assert {one["name"]: one["properties"]["datastoreType"] for one in every["value"]} == {
        "workspaceblobstore": "AzureBlob",
        "workspaceartifactstore": "AzureBlob",
        "workspacefilestore": "AzureFile",
        "workspaceworkingdirectory": "AzureFile",
    }


def test_only_the_scale_of_a_cluster_changes(manager: Manager) -> None:
    path = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", path, cluster())
    manager.settle()
    wanted = cluster("Standard_ND40rs_v2", maxNodeCount=4)
    wanted["properties"]["properties"] |= {"vmPriority": "LowPriority", "isolatedNetwork": True}

    status, answer = manager.call("PUT", path, wanted)

    assert (status, answer["properties"]["provisioningState"]) == (201, "Creating")
    properties = answer["properties"]["properties"]
    assert properties["vmSize"] == "STANDARD_ND96ISR_H100_V5"
    assert (properties["currentNodeCount"], properties["nodeStateCounts"]) == (None, None)
    assert (properties["vmPriority"], properties["isolatedNetwork"]) == ("Dedicated", False)
    assert properties["scaleSettings"] == {
        "minNodeCount": 0,
        "maxNodeCount": 4,
        "nodeIdleTimeBeforeScaleDown": "PT2M",
    }
    patch = {"properties": {"properties": {"scaleSettings": {"maxNodeCount": 3}}}}
    assert manager.call("PATCH", path, patch)[1]["properties"]["properties"]["scaleSettings"]["maxNodeCount"] == 3


@pytest.mark.parametrize(
    ("body", "code", "part"),
    [
        (cluster("Standard_ND96isr_H100"), "InvalidVmSize", "Did you mean 'Standard_ND96isr_H100_v5'"),
        (cluster("nonsense"), "InvalidVmSize", "The VM size 'nonsense' is not known in any region."),
        (cluster(minNodeCount=3), "InvalidRequestContent", "minNodeCount 3 and maxNodeCount 2"),
        (cluster(nodeIdleTimeBeforeScaleDown="120"), "InvalidRequestContent", "'120' is no ISO-8601 duration"),
        (cluster(nodeIdleTimeBeforeScaleDown="PT"), "InvalidRequestContent", "'PT' is no ISO-8601 duration"),
        (
            {"location": "eastus", "properties": {"computeType": "ComputeInstance"}},
            "SandboxNotEmulated",
            "'ComputeInstance'",
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(manager: Manager, body: dict[str, Any], code: str, part: str) -> None:
    _, error = manager.call("PUT", f"{manager.workspace}/computes/gpu", body)

    assert error["code"] == code
    assert part in error["message"]


def test_deleting_a_compute_says_what_becomes_of_it(manager: Manager) -> None:
    path = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", path, cluster())

    assert manager.call("DELETE", path)[0] == 400
    assert manager.call("DELETE", path, underlyingResourceAction="Detach")[0] == 400
    assert manager.call("DELETE", path, underlyingResourceAction="Delete")[0] == 202
    assert manager.call("DELETE", f"{path}2", underlyingResourceAction="Delete")[0] == 204


def test_a_cluster_goes_when_its_jobs_have_ended(manager: Manager) -> None:
    path = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", path, cluster())
    manager.call("PUT", f"{manager.workspace}/jobs/one", job(path))
    manager.store.jobs.set_runner("one", 1, 1)  # a runner has it: the server may not end it by itself
    manager.store.nodes.put(path, 0, "busy", "one")
    manager.call("DELETE", path, underlyingResourceAction="Delete")

    for _ in range(3):
        advance_all(manager.context)
    waiting = manager.call("GET", path)[1]["properties"]["provisioningState"]
    manager.store.jobs.move("one", "Canceled")
    advance_all(manager.context)

    assert waiting == "Deleting"
    assert manager.call("GET", path)[0] == 404
    assert manager.store.nodes.all() == ()
    assert manager.call("GET", f"{manager.workspace}/jobs/one")[1]["properties"]["status"] == "Canceled"


def test_the_node_counts_of_a_cluster_are_live(manager: Manager) -> None:
    path = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", path, cluster(maxNodeCount=3))
    for number, state in enumerate(("idle", "busy", "provisioning")):
        manager.store.nodes.put(path, number, state)

    properties = manager.call("GET", path)[1]["properties"]["properties"]

    assert (properties["currentNodeCount"], properties["targetNodeCount"]) == (2, 3)
    assert properties["allocationState"] == "Resizing"
    counts = properties["nodeStateCounts"]
    assert (counts["idleNodeCount"], counts["runningNodeCount"], counts["preparingNodeCount"]) == (1, 1, 1)


def test_a_patch_merges_and_replaces_tags_as_a_whole(manager: Manager) -> None:
    group = manager.workspace.partition("/providers/")[0]
    manager.call("PUT", group, {"location": "eastus", "tags": {"a": "1", "b": "2"}})

    _, answer = manager.call("PATCH", group, {"tags": {"c": "3"}})

    assert (answer["location"], answer["tags"]) == ("eastus", {"c": "3"})


def test_a_verb_that_is_not_emulated_is_refused(manager: Manager) -> None:
    account = manager.workspace.partition("/providers/")[0] + "/providers/Microsoft.Storage/storageAccounts/space1"

    assert manager.call("POST", f"{account}/listKeys", {})[1]["code"] == "SandboxNotEmulated"
    assert manager.call("PATCH", f"{manager.workspace}/jobs/x", {})[1]["code"] == "SandboxNotEmulated"


def test_every_kind_that_takes_a_patch_takes_one_of_what_a_get_answered(manager: Manager) -> None:
    """The service stores its own values with the rest; a merge with them is no body that a client wrote."""
    manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())
    manager.settle()
    patched = []
    for kind in kinds.ALL:
        if not kind.patches or kind.type.endswith("/computes"):
            continue
        rows = manager.store.resources.of_type(kind.type)
        for row in rows:
            before = manager.call("GET", row.id)[1]
            status, answer = manager.call("PATCH", row.id, {"tags": {"team": "a"}})
            assert (status, answer is None) == (kind.patch_status, kind.patch_status == 202), (kind.type, answer)
            manager.settle()
            answer = manager.call("GET", row.id)[1]
            assert answer["tags"] == {"team": "a"}, (kind.type, answer)
            assert answer["properties"] == before["properties"], kind.type
            if "properties" not in before:
                continue
            again, answer = manager.call("PATCH", row.id, {"properties": before["properties"]})
            manager.settle()
            assert again == kind.patch_status, (kind.type, answer)
            assert manager.call("GET", row.id)[1]["properties"] == before["properties"], kind.type
        patched += [kind.type] * bool(rows)

    assert "Microsoft.MachineLearningServices/workspaces" in patched
    assert "Microsoft.Storage/storageAccounts" in patched


def test_a_patch_of_a_workspace_changes_what_it_names(manager: Manager) -> None:
    assigned = manager.call("GET", manager.workspace)[1]["properties"]["workspaceId"]

    assert manager.call("PATCH", manager.workspace, {"properties": {"description": "ours"}}) == (202, None)
    manager.settle()

    answer = manager.call("GET", manager.workspace)[1]["properties"]
    assert (answer["description"], answer["workspaceId"]) == ("ours", assigned)


def test_a_new_resource_is_answered_with_a_status_that_microsofts_clients_take(manager: Manager) -> None:
    """azure-mgmt-storage takes 200 and 202, azure-mgmt-applicationinsights 200 alone; the others 201 too."""
    group = f"{ROOT}/resourceGroups/rg2"
    seen = {"groups": manager.call("PUT", group, {"location": "eastus"})[0]}
    for path, body in workspace_bodies(group, "space-2"):
        status, answer = manager.call("PUT", group + path, body)
        seen[path.split("/")[-2]] = status
        assert (answer is None) is (status == 202), path
    assert seen == {
        "groups": 201,
        "storageAccounts": 202,
        "vaults": 200,
        "components": 200,
        "registries": 200,
        "workspaces": 202,
    }


def test_a_diagnosis_names_what_a_workspace_stands_on_and_is_gone(manager: Manager) -> None:
    def found() -> dict[str, list[dict[str, str]]]:
        assert manager.call("POST", f"{manager.workspace}/diagnose", {"value": {}})[0] == 202
        (operation,) = manager.store.operations.running()
        path = f"{ROOT}/providers/Microsoft.MachineLearningServices/operationResults/{operation.id}"
        assert manager.call("GET", path)[0] == 202
        return dict(manager.call("GET", path)[1]["value"])

    assert not any(found().values())
    vault = manager.call("GET", manager.workspace)[1]["properties"]["keyVault"]
    assert manager.call("DELETE", vault)[0] == 200
    codes = [row["code"] for row in found()["keyVaultResults"]]
    assert codes == ["DependencyResourceNotExist", "UnableToCheckDependencyResource"]


def test_the_host_of_notebooks_has_as_much_of_a_name_as_its_label_takes(manager: Manager) -> None:
    body = manager.call("GET", manager.workspace)[1]
    long = manager.workspace.rpartition("/")[0] + "/a_workspace-of-thirty-letters"
    given = {"location": body["location"], "properties": {"storageAccount": body["properties"]["storageAccount"]}}
    given["properties"]["keyVault"] = body["properties"]["keyVault"]
    assert manager.call("PUT", long, {**given, "identity": {"type": "SystemAssigned"}})[0] == 202
    label = manager.call("GET", long)[1]["properties"]["notebookInfo"]["fqdn"].partition(".")[0]
    assert (len(label), label[:15]) == (63, "ml-aworkspace-o")
