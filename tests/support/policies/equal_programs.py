"""A grammar of programs that mean one thing: a cluster or a job, written in every form that the pack reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Resource = tuple[str, dict[str, Any]]
    Program = list[Resource]

ML = "Microsoft.MachineLearningServices"
WITHOUT_FABRIC, WITH_FABRIC = "Standard_NC96ads_A100_v4", "Standard_ND96isr_H100_v5"
GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/group"


@dataclass(frozen=True)
class Meant:
    """The request of a program: a resource of a workspace in the resource manager's own layout.

    Attributes:
        kind: ``computes`` or ``jobs``.
        name: Its name.
        body: Its body.
        workspace: Its workspace.
        numbers: Paths of the values that a form may write through an expression.
    """

    kind: str
    name: str
    body: dict[str, Any]
    workspace: str = "west"
    numbers: tuple[tuple[str, ...], ...] = field(default=())

    @property
    def type(self) -> str:
        return f"{ML}/workspaces/{self.kind}"

    @property
    def id(self) -> str:
        return f"{GROUP}/providers/{ML}/workspaces/{self.workspace}/{self.kind}/{self.name}"


def cluster(size: str, nodes: Any, *, name: str = "train", workspace: str = "west", promised: bool = False) -> Meant:
    scale = {"minNodeCount": 0, "maxNodeCount": nodes}
    inner = {"vmSize": size, "scaleSettings": scale}
    tags = {"tags": {"amlstack:single_node_jobs": "true"}} if promised else {}
    at = ("properties", "properties")
    return Meant(
        "computes",
        name,
        {"location": "westeurope", **tags, "properties": {"computeType": "AmlCompute", "properties": inner}},
        workspace,
        ((*at, "vmSize"), (*at, "scaleSettings", "maxNodeCount")),
    )


def serverless(size: str, nodes: Any, *, workspace: str = "west", grows: bool = False) -> Meant:
    """A job on nodes of its own; one that grows begins on one of them."""
    count = "maxInstanceCount" if grows else "instanceCount"
    job = {
        "jobType": "Command",
        "command": "python t.py",
        "environmentId": "azureml:e:1",
        "resources": {"instanceType": size, "instanceCount": 1, count: nodes},
    }
    at = ("properties", "resources")
    return Meant("jobs", "run", {"properties": job}, workspace, ((*at, "instanceType"), (*at, count)))


def on_cluster(compute: str, nodes: Any, *, workspace: str = "west") -> Meant:
    job = {
        "jobType": "Command",
        "command": "python t.py",
        "environmentId": "azureml:e:1",
        "computeId": compute,
        "resources": {"instanceCount": nodes},
    }
    return Meant("jobs", "run", {"properties": job}, workspace, (("properties", "resources", "instanceCount"),))


@dataclass
class Grammar:
    """Writes what is meant in one of many forms, by the dice."""

    dice: Random
    taken: list[str] = field(default_factory=list)

    def chosen(self, *ways: Callable[..., Any], given: Any) -> Resource:
        way = self.dice.choice(ways)
        self.taken.append(way.__name__)
        made: Resource = way(given)
        return made

    def coin(self, of: int = 2) -> bool:
        return self.dice.randrange(of) == 0

    def written(self, meant: Meant) -> Resource:
        """One resource of a program, in any form."""
        ways: list[Callable[..., Any]] = [
            self.typed,
            self.generic,
            self.azapi,
            self.action,
            self.deployed,
            self.deployed,
        ]
        if meant.kind == "computes":
            ways.append(self.terraform)
        token, props = self.chosen(*ways, given=meant)
        return token, self.cased(props) if self.coin() else props

    def typed(self, meant: Meant) -> Resource:
        kind = {"computes": "Compute", "jobs": "Job"}[meant.kind]
        token = self.dice.choice(
            [
                "azure-native:machinelearningservices:",
                "azure-native:machinelearningservices/v20240401:",
                "azure-native_machinelearningservices_v20240401:machinelearningservices:",
                "azure-nextgen:machinelearningservices/latest:",
            ]
        )
        named: dict[str, Any] = {"computeName": meant.name} if meant.kind == "computes" else {"id": meant.name}
        body = dict(meant.body)
        if meant.kind == "jobs" and self.coin():
            body = {"jobBaseProperties": body["properties"]}
        return token + kind, {"resourceGroupName": "group", "workspaceName": meant.workspace, **named, **body}

    def generic(self, meant: Meant) -> Resource:
        return "azure-native:resources:Resource", {
            **self.address(meant.type, [meant.workspace, meant.name]),
            **meant.body,
        }

    def address(self, kind: str, names: list[str]) -> dict[str, Any]:
        """An address cut into the four properties of a generic resource in any way."""
        provider, *types = kind.split("/")
        parts = [provider, *(part for pair in zip(types, names, strict=True) for part in pair)]
        ends = sorted(self.dice.sample(range(1, len(parts)), 2))
        whole = [parts[: ends[0]], parts[ends[0] : ends[1]], parts[ends[1] : -1], parts[-1:]]
        if self.coin(3) and len(whole[2]) == 0:  # the name with more before it
            whole[3], whole[1] = [*whole[1], *whole[3]], []
        cut = ["/".join(each) for each in whole]
        if not cut[2]:  # a type is asked for
            cut[1], cut[2] = "", cut[1]
        keys = ("resourceProviderNamespace", "parentResourcePath", "resourceType", "resourceName")
        return {"resourceGroupName": "group", **{key: self.spelled(one) for key, one in zip(keys, cut, strict=True)}}

    def spelled(self, text: str) -> str:
        """An id or a part of one, as a server takes it."""
        if not text or self.coin():
            return text
        which = self.dice.randrange(5)
        if which == 0:
            at = self.dice.randrange(len(text))
            return text[:at] + quote(text[at], safe="").replace(text[at], f"%{ord(text[at]):02x}") + text[at + 1 :]
        if which == 1:
            return text.replace("/", "//", 1)
        if which == 2:
            return f"{text}/"
        return text.upper() if which == 3 else f"{text} "

    def azapi(self, meant: Meant) -> Resource:
        kind = self.dice.choice(
            ["azapi:index/resource:Resource", "azapi:resources:Resource", "azapi:index/updateResource:UpdateResource"]
        )
        parent, _, name = meant.id.rpartition(f"/{meant.kind}/")
        body: dict[str, Any] = dict(meant.body)
        outside: dict[str, Any] = {key: body.pop(key) for key in ("location", "tags") if key in body and self.coin()}
        where = {"resourceId": self.spelled(meant.id)} if "update" in kind else {"parentId": parent, "name": name}
        at = "body" if self.coin(4) is False else "sensitiveBody"
        return kind, {"type": f"{meant.type}@2024-04-01", **where, at: self.text_or_not(body), **outside}

    def action(self, meant: Meant) -> Resource:
        parent = meant.id.rpartition(f"/{meant.kind}/")[0]
        if self.coin():
            props = {"type": f"{meant.type}@2024-04-01", "resourceId": self.spelled(meant.id)}
        else:
            props = {
                "type": f"{ML}/workspaces@2024-04-01",
                "resourceId": parent,
                "action": f"{meant.kind}/{meant.name}",
            }
        return "azapi:index/resourceAction:ResourceAction", {
            **props,
            "method": "PUT",
            "body": self.text_or_not(meant.body),
        }

    def terraform(self, meant: Meant) -> Resource:
        inner = meant.body["properties"]["properties"]
        scale: Any = inner["scaleSettings"]
        token = self.dice.choice(
            [
                "azure:machinelearning/computeCluster:ComputeCluster",
                "azurerm:index/machineLearningComputeCluster:MachineLearningComputeCluster",
            ]
        )
        return token, {
            "name": meant.name,
            "machineLearningWorkspaceId": self.spelled(meant.id.rpartition("/computes")[0]),
            "vmSize": inner["vmSize"],
            "tags": meant.body.get("tags", {}),
            "scaleSettings": [scale] if token.startswith("azurerm") else scale,
        }

    def text_or_not(self, value: Any) -> Any:
        return json.dumps(self.cased(value)) if self.coin() else value

    # Templates.

    def deployed(self, meant: Meant) -> Resource:
        template = self.template(meant)
        for _ in range(self.dice.randrange(3)):
            template = self.within(template)
        return self.chosen(
            self.deployment,
            self.stack,
            self.specification,
            self.classic,
            self.generic_deployment,
            self.azapi_deployment,
            given=template,
        )

    def template(self, meant: Meant) -> dict[str, Any]:
        """A template that deploys what is meant, its values given in any plain way."""
        body = json.loads(json.dumps(meant.body))
        whole: dict[str, Any] = {"parameters": {}, "variables": {}}
        for number, path in enumerate(meant.numbers):
            at = body
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = self.indirect(at[path[-1]], f"Value{number}", whole)
        resource = {"type": meant.type, "apiVersion": "2024-04-01", "name": f"{meant.workspace}/{meant.name}", **body}
        if self.coin(3):
            resource["condition"] = self.dice.choice([True, "[equals(1, 1)]", "[not(false)]"])
        if self.coin(4):
            resource["existing"] = True  # means nothing without symbolic names
        if self.coin(4):
            resource["copy"] = {"name": "loop", "count": self.dice.choice([1, 2, "[length(createArray(1))]"])}
        if self.coin(4):
            whole["variables"]["Inner"] = resource["properties"]
            resource["properties"] = "[variables('inner')]"
        if self.coin(3):
            resource = {
                "type": f"{ML}/workspaces",
                "apiVersion": "2024-04-01",
                "name": meant.workspace,
                "resources": [{**resource, "type": meant.kind, "name": meant.name}],
            }
        if self.coin(3):
            symbol = {key: value for key, value in resource.items() if key != "existing"}
            listed: Any = {"symbol": symbol}
            whole["languageVersion"] = "2.0"
            if "resources" in symbol:
                symbol["resources"] = {
                    "inner": {key: value for key, value in symbol["resources"][0].items() if key != "existing"}
                }
        else:
            listed = [resource]
        return {"contentVersion": "1.0.0.0", "resources": listed, **whole}

    def indirect(self, value: Any, name: str, whole: dict[str, Any]) -> Any:
        which = self.dice.randrange(6)
        if which == 0:
            whole["parameters"][name] = {"type": "string", "defaultValue": value}
            return f"[parameters('{name.lower()}')]"
        if which == 1:
            whole["variables"][name] = value
            return f"[Variables('{name.upper()}')]"
        if which == 2 and isinstance(value, str):
            return f"[concat('{value[:5]}', '{value[5:]}')]"
        if which == 3:
            whole["variables"][name] = {"of": [value]}
            return f"[variables('{name}').OF[0]]"
        if which == 4:
            return f"[json('{json.dumps(value)}')]"
        return str(value) if isinstance(value, int) and self.coin() else value

    def within(self, template: dict[str, Any]) -> dict[str, Any]:
        """A template around a template: a deployment of its own, or a stack."""
        inner: Any = template
        if self.coin(3):
            inner = json.dumps(self.cased(template))
        elif self.coin(3):
            stack = {
                "type": "Microsoft.Resources/deploymentStacks",
                "apiVersion": "2024-03-01",
                "name": "stack",
                "properties": {"template": self.escaped(template)},
            }
            return {"resources": [stack]}
        elif not self.coin(4):
            options = {"expressionEvaluationOptions": {"scope": self.dice.choice(["inner", "Inner"])}}
            return {"resources": [self.nested({"template": inner, **options})]}
        else:
            return {
                **{key: value for key, value in template.items() if key in {"parameters", "variables"}},
                "resources": [self.nested({"template": inner})],
            }
        return {"resources": [self.nested({"template": inner, "expressionEvaluationOptions": {"scope": "inner"}})]}

    def nested(self, properties: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": self.dice.choice(["Microsoft.Resources/deployments", "microsoft.resources/DEPLOYMENTS"]),
            "apiVersion": "2024-03-01",
            "name": "inner",
            "properties": {"mode": "Incremental", **properties},
        }

    def escaped(self, value: Any) -> Any:
        """The same inside a resource of a template, whose expressions are not those of the template around it."""
        if isinstance(value, str):
            return f"[{value}" if value.startswith("[") else value
        if isinstance(value, list):
            return [self.escaped(one) for one in value]
        return {key: self.escaped(one) for key, one in value.items()} if isinstance(value, dict) else value

    def deployment(self, template: Any) -> Resource:
        at = self.dice.choice(["", "AtScope", "AtSubscriptionScope", "AtManagementGroupScope", "AtTenantScope"])
        return f"azure-native:resources:Deployment{at}", {
            "resourceGroupName": "group",
            "properties": {"mode": "Incremental", "template": self.text_or_not(template)},
        }

    def stack(self, template: Any) -> Resource:
        at = self.dice.choice(["ResourceGroup", "Subscription", "ManagementGroup"])
        return f"azure-native:resources:DeploymentStackAt{at}", {"template": self.text_or_not(template)}

    def specification(self, template: Any) -> Resource:
        return "azure-native:resources:TemplateSpecVersion", {"mainTemplate": self.text_or_not(template)}

    def classic(self, template: Any) -> Resource:
        token = self.dice.choice(
            [
                "azure:core/resourceGroupTemplateDeployment:ResourceGroupTemplateDeployment",
                "azurerm:index/subscriptionTemplateDeployment:SubscriptionTemplateDeployment",
            ]
        )
        return token, {"templateContent": json.dumps(self.cased(template))}

    def holder(self, template: Any) -> tuple[str, list[str], dict[str, Any]]:
        given = self.text_or_not(template)
        return self.dice.choice(
            [
                (
                    "Microsoft.Resources/deployments",
                    ["one"],
                    {"properties": {"mode": "Incremental", "template": given}},
                ),
                ("Microsoft.Resources/deploymentStacks", ["one"], {"properties": {"template": given}}),
                ("Microsoft.Resources/templateSpecs/versions", ["one", "1.0"], {"properties": {"mainTemplate": given}}),
            ]
        )

    def generic_deployment(self, template: Any) -> Resource:
        kind, names, body = self.holder(template)
        return "azure-native:resources:Resource", {**self.address(kind, names), **body}

    def azapi_deployment(self, template: Any) -> Resource:
        kind, names, body = self.holder(template)
        return "azapi:index/resource:Resource", {
            "type": f"{kind}@2024-03-01",
            "parentId": GROUP,
            "name": names[-1],
            "body": self.text_or_not(body),
        }

    # Letter case.

    def cased(self, value: Any, around: str = "") -> Any:
        """The same with keys in another letter case, but for names on the nodes."""
        if isinstance(value, list):
            return [self.cased(one) for one in value]
        if not isinstance(value, dict) or around.lower() == "environmentvariables":
            return value
        return {
            self.other_case(key) if around.lower() != "tags" else key: self.cased(one, key)
            for key, one in value.items()
        }

    def other_case(self, key: str) -> str:
        if self.coin():
            return key
        return self.dice.choice([key.upper(), key.lower(), key[:1].upper() + key[1:], key.swapcase()])
