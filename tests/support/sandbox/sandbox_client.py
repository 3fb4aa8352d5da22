"""A small client of the sandbox for its own tests, and the bodies that most of them need."""

from __future__ import annotations

import copy
import json
import re
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from amlstack.sandbox.protocol import entra, requests

VERSIONS = {
    "managedidentity": "2023-01-31",
    "machinelearningservices": "2025-12-01",
    "storage": "2024-01-01",
    "keyvault": "2024-11-01",
    "insights": "2020-02-02",
    "operationalinsights": "2023-09-01",
    "containerregistry": "2023-01-01-preview",
    "authorization": "2025-01-01",
    "network": "2024-05-01",
}
"""By namespace, as azure-native speaks to them."""
ROOT = f"/subscriptions/{entra.SUBSCRIPTION}"
CURATED = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/1"
ML = "Microsoft.MachineLearningServices/workspaces"


def version_of(path: str) -> str:
    """The api-version for the innermost namespace of a path; that of resource groups when it has none."""
    if "/roleAssignments" in path:
        return "2022-04-01"
    if "/privateDnsZones" in path:
        return "2024-06-01"
    found = re.findall(r"/providers/Microsoft\.(\w+)", path)
    return VERSIONS.get(found[-1].lower(), "2024-03-01") if found else "2024-03-01"


@dataclass(frozen=True)
class Answer:
    """The answer that came back; ``body`` is JSON, or None."""

    status: int
    body: Any
    headers: Any

    @property
    def error(self) -> tuple[int, str, str]:
        """Status, code and message of a refusal."""
        return self.status, self.body["error"]["code"], self.body["error"]["message"]


class Arm:
    """Calls the resource manager of a running sandbox with a token of its own."""

    def __init__(self, endpoint: Any) -> None:
        self.url = endpoint.url
        context = ssl.create_default_context(cafile=str(endpoint.ca))
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)
        self.endpoint = endpoint
        self.token = self.login(endpoint.token.read_text())
        self.acting = self.login(endpoint.token.read_text(), audience="https://ml.azure.com")

    def login(self, assertion: str, tenant: str = entra.TENANT, audience: str = "") -> str:
        """An access token, as workload identity asks for it; for the resource manager if for nobody else."""
        scope = f"{audience or self.url}/.default"
        form = {"client_id": entra.CLIENT, "client_assertion": assertion, "scope": scope}
        data = urlencode({**form, "grant_type": "client_credentials"}).encode()
        request = urllib.request.Request(f"{self.url}/{tenant}/oauth2/v2.0/token", data, method="POST")
        answer = self.send(request)
        return str(answer.body.get("access_token", answer.body.get("error_description")))

    def send(self, request: urllib.request.Request) -> Answer:
        """One HTTP exchange; refusals come back as answers too."""
        try:
            with self._opener.open(request, timeout=300) as reply:
                return _answer(reply)
        except urllib.error.HTTPError as error:
            with error:
                return _answer(error)

    def call(self, method: str, path: str, body: Any = None, **query: str) -> Answer:
        """One call with the bearer token and an api-version; ``path`` may be a whole address."""
        words = {"api-version": version_of(path), **query}
        address = path if path.startswith("https://") else f"{self.url}{path}?{urlencode(words)}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if requests.acting_job(body) and self.acting:
            headers[requests.HEADER] = self.acting
        return self.send(urllib.request.Request(address.replace(" ", "%20"), data, headers, method=method))

    def get(self, path: str, **query: str) -> Answer:
        return self.call("GET", path, **query)

    def put(self, path: str, body: Any) -> Answer:
        return self.call("PUT", path, body)

    def finish(self, answer: Answer) -> list[str]:
        """Polls a long-running operation to its end; the statuses that were seen."""
        seen: list[str] = []
        status = answer.headers.get("Azure-AsyncOperation")
        while not seen or seen[-1] == "InProgress":
            found = self.get(status or answer.headers["Location"] or "")
            by_result = "InProgress" if found.status == 202 else "Succeeded" if found.status < 300 else "Failed"
            seen.append(found.body["status"] if status else by_result)
        return seen

    def make_group(self, name: str) -> str:
        """A resource group; its id."""
        group = f"{ROOT}/resourceGroups/{name}"
        assert self.put(group, {"location": "eastus"}).status in {200, 201}
        return group

    def make_workspace(self, name: str, *, keys: bool = False) -> str:
        """A resource group and a workspace with what it needs, all named after ``name``; its id.

        Args:
            name: One that no other workspace has.
            keys: The storage account has keys.
        """
        group = self.make_group(name)
        for path, body in workspace_bodies(group, name, keys=keys):
            answer = self.put(group + path, body)
            assert answer.status in {200, 201, 202}, answer
            if "Azure-AsyncOperation" in answer.headers:
                self.finish(answer)
        return f"{group}/providers/{ML}/{name}"

    def make_cluster(self, workspace: str, name: str = "gpu", nodes: int = 2) -> str:
        """A cluster; its id."""
        answer = self.put(f"{workspace}/computes/{name}", cluster(maxNodeCount=nodes))
        self.finish(answer)
        return f"{workspace}/computes/{name}"


def _answer(reply: Any) -> Answer:
    text = reply.read()
    is_json = "json" in reply.headers.get("Content-Type", "")
    return Answer(reply.status, json.loads(text) if is_json else None, reply.headers)


def workspace_bodies(group: str, name: str, *, keys: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Path below the group and body of everything that a workspace needs, and of itself."""
    base = {"location": "eastus"}
    word = name.replace("-", "")
    storage, vault = (
        f"/providers/Microsoft.Storage/storageAccounts/{word}",
        f"/providers/Microsoft.KeyVault/vaults/{name}",
    )
    insights, registry = (
        f"/providers/Microsoft.Insights/components/{name}",
        f"/providers/Microsoft.ContainerRegistry/registries/{word}",
    )
    neighbours = {
        "storageAccount": storage,
        "keyVault": vault,
        "applicationInsights": insights,
        "containerRegistry": registry,
    }
    return [
        (
            storage,
            {
                **base,
                "kind": "StorageV2",
                "sku": {"name": "Standard_LRS"},
                "properties": {"allowSharedKeyAccess": keys},
            },
        ),
        (vault, {**base, "properties": {"tenantId": entra.TENANT, "sku": {"family": "A", "name": "standard"}}}),
        (insights, {**base, "kind": "web", "properties": {"Application_Type": "web"}}),
        (registry, {**base, "sku": {"name": "Standard"}}),
        (
            f"/providers/{ML}/{name}",
            {
                **base,
                "identity": {"type": "SystemAssigned"},
                "properties": {key: group + path for key, path in neighbours.items()},
            },
        ),
    ]


def cluster(size: str = "Standard_ND96isr_H100_v5", **scale: Any) -> dict[str, Any]:
    """The body of an AmlCompute cluster."""
    properties = {"vmSize": size, "scaleSettings": {"maxNodeCount": 2, **scale}}
    return {"location": "eastus", "properties": {"computeType": "AmlCompute", "properties": properties}}


def job(compute: str | None, **more: Any) -> dict[str, Any]:
    """The body of a command job."""
    properties = {"jobType": "Command", "command": "python train.py", "environmentId": CURATED, "computeId": compute}
    return copy.deepcopy({"properties": {**properties, **more}})
