"""Deployments of templates: expressions worked out, resources put in their order, what is wrong refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.protocol.entra import SUBSCRIPTION
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.service import deployments
from amlstack.sandbox.service.deployments import Template
from tests.support.rows import for_each

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
CONTENT = {
    "parameters": {"name": {"defaultValue": "[concat(parameters('stem'), 'x')]"}, "stem": {}, "none": {}},
    "variables": {"pair": {"first": "[parameters('stem')]", "list": [1, 2]}, "broken": "[parameters('none')]"},
}


def template(**given: Any) -> Template:
    known = {"/one": {"location": "eastus", "properties": {"state": "on"}}}
    return Template(CONTENT, {"stem": "aml", **given}, GROUP, "westeurope", known.get)


@for_each(
    "expression, value",
    [
        ("plain", "plain"),
        ("[[literal]", "[literal]"),
        ("[parameters('name')]", "amlx"),
        ("[variables('pair').first]", "aml"),
        ("[variables('pair').list[1]]", 2),
        ("[if(equals(1, 1), 'yes', variables('broken'))]", "yes"),
        ("[or(true(), equals(variables('broken'), 1))]", True),
        ("[and(false(), equals(variables('broken'), 1))]", False),
        ("[resourceGroup().location]", "westeurope"),
        ("[resourceId('Microsoft.X/a', 'n')]", f"{GROUP}/providers/Microsoft.X/a/n"),
        ("[resourceId('g', 'Microsoft.X/a/b', 'n', 'm')]", f"{GROUP[:-2]}g/providers/Microsoft.X/a/n/b/m"),
        ("[reference('/one').state]", "on"),
        ("[reference('/one', '2020-01-01', 'Full').location]", "eastus"),
        ("[length(uniqueString('a'))]", 13),
        ("[equals(guid('a', 'b'), guid('a', 'b'))]", True),
    ],
)
def test_an_expression_has_its_value(expression: str, value: Any) -> None:
    assert template().worked_out(expression) == value


@for_each(
    "expression, part",
    [
        ("[parameters('none')]", "the parameter `none` has no value"),
        ("[listKeys('a', 'b')]", "`listkeys`"),
        ("[reference('/two')]", "there is no resource `/two`"),
        ("[concat(]", "concat("),
        ("[variables('pair').third]", "variables('pair').third"),
    ],
)
def test_an_expression_that_cannot_be_worked_out_is_named(expression: str, part: str) -> None:
    with pytest.raises(Refused) as refused:
        template().worked_out(expression)
    assert refused.value.code == "InvalidTemplate"
    assert part in refused.value.message


def deploy(manager: Manager, *resources: dict[str, Any], **more: Any) -> tuple[int, Any]:
    content = {"resources": list(resources), "outputs": {"where": {"type": "string", "value": "[resourceGroup().id]"}}}
    body = {"properties": {"mode": "Incremental", "template": content, **more}}
    return manager.call("PUT", f"{GROUP}/providers/Microsoft.Resources/deployments/d", body)


def identity(name: str, **more: Any) -> dict[str, Any]:
    kind, version = "Microsoft.ManagedIdentity/userAssignedIdentities", "2023-01-31"
    return {"type": kind, "apiVersion": version, "name": name, "location": "[resourceGroup().location]", **more}


def test_resources_are_put_behind_those_that_they_depend_on(manager: Manager) -> None:
    late = identity("late", dependsOn=["[resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', 'early')]"])
    left_out = identity("left-out", condition="[equals(1, 2)]")

    status, answer = deploy(manager, late, left_out, identity("early"))

    assert (status, answer["properties"]["provisioningState"]) == (201, "Accepted"), answer
    assert [each["resourceName"] for each in answer["properties"]["dependencies"][0]["dependsOn"]] == ["early"]
    done = manager.call("GET", f"{GROUP}/providers/Microsoft.Resources/deployments/d")[1]["properties"]
    made = [each["id"].rpartition("/")[2] for each in done["outputResources"]]
    assert (made, done["outputs"]["where"]["value"]) == (["early", "late"], GROUP)
    status, operations = manager.call("GET", f"{GROUP}/deployments/d/operations")
    told = [each["properties"] for each in operations["value"]]
    assert [each["targetResource"]["resourceName"] for each in told[:-1]] == made
    assert told[-1]["provisioningOperation"] == "EvaluateDeploymentOutput"
    assert manager.call("GET", f"{GROUP}/providers/Microsoft.Resources/deployments/d")[1]["name"] == "d"


def test_a_refused_resource_is_named_with_its_reason(manager: Manager) -> None:
    status, error = deploy(manager, identity("x", properties={"odd": 1}))
    assert (status, error["code"]) == (400, "DeploymentFailed")
    assert "/userAssignedIdentities/x: " in error["message"]
    assert manager.call("GET", f"{GROUP}/providers/Microsoft.Resources/deployments/d")[0] == 404


def test_resources_in_a_circle_and_links_to_templates_are_refused(manager: Manager) -> None:
    circle = [identity("a", dependsOn=["b"]), identity("b", dependsOn=["a"])]
    assert "in a circle" in deploy(manager, *circle)[1]["message"]
    path = f"{GROUP}/providers/Microsoft.Resources/deployments/d"
    body = {"properties": {"templateLink": {"uri": "https://example.org/t.json"}}}
    assert "links are not followed" in manager.call("PUT", path, body)[1]["message"]


def test_a_template_is_validated_and_nothing_made(manager: Manager) -> None:
    account = {"type": "Microsoft.Storage/storageAccounts", "name": "[concat('st', 'one')]", "apiVersion": "2024-01-01"}
    path = f"{GROUP}/providers/{deployments.TYPE}/d/validate"
    body = {"properties": {"mode": "Incremental", "template": {"resources": [account]}}}

    status, answer = manager.call("POST", path, body)
    refused, error = manager.call(
        "POST", path, {"properties": {"template": {"resources": [{**account, "type": "Microsoft.Web/sites"}]}}}
    )

    one = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/stone"
    assert (status, answer["properties"]["validatedResources"]) == (200, [{"id": one}])
    assert manager.store.resources.get(one) is None
    assert (refused, error["code"]) == (501, "SandboxNotEmulated")


def test_what_has_no_effect_is_left_out_and_what_has_one_stays() -> None:
    kind = "Microsoft.MachineLearningServices/workspaces"
    body = {"properties": {"hbiWorkspace": "true", "softDeleteEnabled": "false", "description": "", "encryption": None}}
    assert deployments.read(kind, body) == {"properties": {"hbiWorkspace": True}}
    assert deployments.read(kind, {"properties": {"softDeleteEnabled": "true"}}) == {
        "properties": {"softDeleteEnabled": "true"}
    }
