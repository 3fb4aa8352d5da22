"""The workspace of the fake ARM: assets, jobs, schedules and run history."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.support.provider.fake_network import FakeNetwork

if TYPE_CHECKING:
    from pathlib import Path

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
STORAGE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/account"
SIGNATURE = "x" * 43 + "%3D"
IMMUTABLE = "Only description, tags, displayName, properties, and isArchived can be updated."


KINDS = ("computes", "datastores", "environments", "schedules", "onlineEndpoints", "batchEndpoints")
LISTS = frozenset(f"/{kind}" for kind in KINDS)
"""Lists that are empty here: nothing of others lies in a workspace."""


@dataclass
class FakeWorkspace:
    home: Path
    workspaces: set[str] = field(default_factory=lambda: {WORKSPACE})
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    marks: dict[str, dict[str, str]] = field(default_factory=dict)
    """Metadata of blobs."""
    statuses: dict[str, deque[str]] = field(default_factory=dict)
    script: tuple[str, ...] = ("Queued",)
    """The statuses of each new run: one further with every look at it."""
    cancelled: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    """Runs that really began, in order."""
    tag_removal: bool = True
    page: int = 2
    """The number of jobs on a page of the list."""
    created: list[str] = field(default_factory=list)
    """Paths of all runs and schedules that were ever made, one entry for each time."""
    network: FakeNetwork = field(default_factory=FakeNetwork)

    url: str = field(init=False)

    def job(self, name: str) -> dict[str, Any]:
        properties: dict[str, Any] = self.jobs[f"{WORKSPACE}/jobs/{name}".lower()]["properties"]
        return properties

    def set_status(self, name: str, *statuses: str) -> None:
        """The status now, and those that each further GET moves on to."""
        self.job(name)["status"] = statuses[0]
        self.statuses[name] = deque(statuses[1:])

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path in {"/discovery", STORAGE}:
            blobs = {"primaryEndpoints": {"blob": f"{self.url}/blobs/account/"}}
            return 200, {"api": self.url} if path == "/discovery" else {"id": path, "properties": blobs}
        if found := re.fullmatch(
            r"/history/v1\.0(/subscriptions/.+?/workspaces/[^/]+)/experiments/([^/]+)/runs/(.+)", path
        ):
            assert method == "PATCH"
            return self._history(found[1], found[2], found[3], body)
        if re.fullmatch(r"/subscriptions/[^/]+/resourceGroups/[^/]+/resources", path):
            return 200, {"value": []}
        if query.get("api-version") != "2025-12-01":
            return 400, {"error": {"code": "MissingApiVersionParameter", "message": "api-version"}}
        workspace = re.match(r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/[^/]+/workspaces/[^/]+", path)
        if workspace is None or workspace[0] not in self.workspaces:
            return 404, {"error": {"code": "ResourceNotFound", "message": "no such workspace"}}
        rest = path[len(workspace[0]) :]
        return self.network.answer(method, rest, body) or self._inside(method, path, rest, query, body)

    def _inside(self, method: str, path: str, rest: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        """The workspace itself, and what is in it."""
        if not rest:
            return 200, {
                "id": path,
                "properties": {
                    "discoveryUrl": f"{self.url}/discovery",
                    "storageAccount": STORAGE,
                    **self.network.shown(),
                },
            }
        if rest == "/jobs":
            return self._list(method, path, query)
        if rest in LISTS:
            return 200, {"value": []}
        if rest.startswith("/jobs/"):
            return self._jobs(method, path, body)
        if rest.startswith("/schedules/"):
            return self._schedules(method, path, body)
        if rest.startswith("/datastores/") or rest.endswith("/startPendingUpload"):
            return self._places(rest, body)
        if rest.endswith("/versions"):
            prefix = (path if "/environments/" in path else path.rsplit("/codes/", 1)[0] + "/codes/").lower()
            known = [{"id": key, **value} for key, value in self.resources.items() if key.lower().startswith(prefix)]
            if "hash" in query:
                assert query["hashVersion"] == "202208"
                known = [one for one in known if one["properties"]["properties"]["hash_sha256"] == query["hash"]]
            return 200, {"value": known[::-1]}
        return self._asset(method, path, body)

    def _places(self, rest: str, body: Any) -> tuple[int, Any]:
        """A container for an upload; datastores that hand out a signature for theirs, whatever their name."""
        if rest.endswith("/startPendingUpload"):
            assert body == {"pendingUploadType": "TemporaryBlobReference"}
            container = f"{self.url}/blobs/account/upload"
            sas = {"credentialType": "SAS", "sasUri": f"{container}?sv=2024-01-01&sig={SIGNATURE}"}
            return 200, {"blobReferenceForConsumption": {"blobUri": container, "credential": sas}}
        if rest.endswith("/listSecrets"):
            return 200, {"secretsType": "Sas", "sasToken": f"sv=2024-01-01&sig={SIGNATURE}"}
        store = {"datastoreType": "AzureBlob", "accountName": "account", "containerName": "data"}
        return 200, {"properties": {**store, "credentials": {"credentialsType": "Sas"}}}

    def _asset(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        assert re.search(r"/(codes|components|data|environments)/[^/]+/versions/[^/]+$", path), path
        if method == "GET":
            if path not in self.resources:
                return 404, {"error": {"code": "NotFound", "message": "no such version"}}
            return 200, {"id": path, **self.resources[path]}
        assert method == "PUT", "assets are never deleted"
        if path in self.resources and _without_labels(path, self.resources[path]) != _without_labels(path, body):
            return 400, {"error": {"code": "UserError", "message": "already registered and cannot be changed"}}
        self.resources[path] = body
        return 201, {"id": path, **body}

    def _schedules(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Whole bodies in place, with the service's own words in the answer; only a disabled one can be deleted."""
        known = self.schedules.get(path)
        if method == "PUT":
            assert "provisioningState" not in body["properties"], "read-only"
            properties = {"isEnabled": True, "tags": {}, **body["properties"], "provisioningState": "Succeeded"}
            trigger = properties["trigger"]
            if "startTime" in trigger:
                properties["trigger"] = {**trigger, "startTime": trigger["startTime"].replace(" ", "T")}
            if known is None:
                self.created.append(path)
            self.schedules[path] = properties
            return (200 if known else 201), {"id": path, "properties": properties}
        if known is None:
            return 404, {"error": {"code": "NotFound", "message": "no such schedule"}}
        if method == "DELETE":
            if known["isEnabled"]:
                return 409, {"error": {"code": "UserError", "message": "A schedule must be disabled to be deleted."}}
            del self.schedules[path]
            return 200, None
        assert method == "GET"
        return 200, json.loads(json.dumps({"id": path, "properties": known}))

    def _list(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Records that have a property of that name, in pages, whatever their status; a look at it moves no status."""
        assert method == "GET"
        assert query["listViewType"] == "All"
        known = [
            {"id": key, "name": key.rsplit("/", 1)[-1], "properties": job["properties"]}
            for key, job in sorted(self.jobs.items())
            if key.startswith(f"{path}/".lower()) and query["properties"] in job["properties"].get("properties", {})
        ]
        start = int(query.get("$skip", "0"))
        page: dict[str, Any] = {"value": json.loads(json.dumps(known[start : start + self.page]))}
        if start + self.page < len(known):
            page["nextLink"] = f"{self.url}{path}?{urlencode({**query, '$skip': start + self.page})}"
        return 200, page

    def _jobs(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        cancel = path.endswith("/cancel")
        key = path.removesuffix("/cancel").lower()
        name = key.rsplit("/", 1)[-1]
        missing = 404, {"error": {"code": "ResourceNotFound", "message": "no such job"}}
        job = self.jobs.get(key)
        if method == "PUT":
            if job is not None and body["properties"] != job["sent"]:
                return 400, {"error": {"code": "JobPropertyImmutable", "message": IMMUTABLE}}
            if job is None:
                services = {"Studio": {"jobServiceType": "Studio", "endpoint": f"https://ml.azure.com/runs/{name}"}}
                properties = {**body["properties"], "status": self.script[0], "services": services}
                self.statuses[name] = deque(self.script[1:])
                self.created.append(path)
                job = self.jobs[key] = {"properties": properties, "sent": body["properties"]}
                self.begun.append(name)
            return 201, {"id": path, "name": name, "properties": job["properties"]}
        if job is None:
            return missing
        if cancel:
            if job["properties"]["status"] in ("Completed", "Failed", "Canceled"):
                return 400, {"error": {"code": "UserError", "message": "the job has ended"}}
            self.cancelled.append(name)
            if job["properties"]["status"] != "CancelRequested":
                job["properties"]["status"] = "CancelRequested"
                self.statuses.setdefault(name, deque()).extend(["CancelRequested", "Canceled"])
            return 200, None
        if method == "DELETE":
            del self.jobs[key]
            return 200, None
        assert method == "GET"
        answer = 200, json.loads(json.dumps({"id": path, "name": name, "properties": job["properties"]}))
        if self.statuses.get(name):
            job["properties"]["status"] = self.statuses[name].popleft()
        return answer

    def _history(self, workspace: str, experiment: str, run: str, body: dict[str, Any]) -> tuple[int, Any]:
        name, _, tags = run.partition("/")
        job = self.jobs.get(f"{workspace}/jobs/{name}".lower())
        if job is None:
            return 404, {"error": {"code": "UserError", "message": "no such run"}}
        properties = job["properties"]
        assert experiment == properties.get("experimentName", "Default")
        if tags:
            if not self.tag_removal:
                return 404, {"error": {"code": "UserError", "message": "no such route"}}
            properties["tags"] = {k: v for k, v in properties["tags"].items() if k not in body["tagsToDelete"]}
            return 200, {}
        assert set(body) <= {"displayName", "description", "tags"}, body
        properties.setdefault("tags", {}).update(body.get("tags", {}))
        properties.update({key: value for key, value in body.items() if key != "tags"})
        return 200, {"runId": name}


def _without_labels(path: str, body: Any) -> Any:
    """The unchanging part of a version; of data its labels change."""
    labels = {"tags", "description", "isArchived"} if "/data/" in path else set()
    return {key: value for key, value in body["properties"].items() if key not in labels}
