"""A sandbox in Azure's place that answers one thing otherwise: an ASGI application in front of it, by a table.

``change.txt`` in the sandbox's folder names the changes that are in force, one a line; an empty or absent file is none.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.store.folders import folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRAPPER: Final = "AMLSTACK_SANDBOX_WRAPPER", "tests.support.prove.changed_azure:ChangedAzure"
CUT: Final = 0
"""A status that stands for a connection that is cut."""


@dataclass
class Answer:
    """An answer that may be changed; ``body`` is parsed JSON."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Change:
    """One thing that this Azure answers otherwise.

    Attributes:
        step: The step that meets it.
        asked: Expression of ``METHOD path``.
        named: What the page must say of it.
        make: Changes the answer; None where `instead` comes without asking.
        instead: Status and code of an answer in the service's place, to the first such request or to all.
        always: Whether `instead` is the answer each time.
    """

    step: str
    asked: str
    named: str
    make: Callable[[Answer], None] | None = None
    instead: tuple[int, str] | None = None
    always: bool = False


def put(path: str, value: Any) -> Callable[[Answer], None]:
    """Sets a key of the body, ``properties.sku.tier``; of each row of a list."""

    def make(answer: Answer) -> None:
        body = answer.body
        *above, last = path.split(".")
        for row in body["value"] if isinstance(body, dict) and isinstance(body.get("value"), list) else [body]:
            at = row
            for word in above:
                at = at.setdefault(word, {})
            at[last] = value

    return make


def drop(path: str) -> Callable[[Answer], None]:
    """Takes a key away."""

    def make(answer: Answer) -> None:
        at = answer.body
        *above, last = path.split(".")
        for word in above:
            at = at.get(word) or {}
        at.pop(last, None)

    return make


def header(name: str, value: str | None) -> Callable[[Answer], None]:
    """Sets a header, or takes it away."""

    def make(answer: Answer) -> None:
        answer.headers.pop(name, None)
        if value is not None:
            answer.headers[name] = value

    return make


def status(number: int) -> Callable[[Answer], None]:
    """Another status."""

    def make(answer: Answer) -> None:
        answer.status = number

    return make


def code(name: str) -> Callable[[Answer], None]:
    """Another error code."""

    def make(answer: Answer) -> None:
        if isinstance(answer.body, dict) and "error" in answer.body:
            answer.body["error"]["code"] = name

    return make


def turned(answer: Answer) -> None:
    """A list in the other order."""
    answer.body["value"].reverse()


def shouted(answer: Answer) -> None:
    """An id in other letters."""
    answer.body["id"] = answer.body["id"].replace("resourceGroups", "RESOURCEGROUPS")


def good(make: Callable[[Answer], None]) -> Callable[[Answer], None]:
    """Changes only what is no error and has a body."""

    def only(answer: Answer) -> None:
        if answer.status < 300 and answer.body:
            make(answer)

    return only


ML: Final = r".*/Microsoft\.MachineLearningServices/workspaces/[^/]+"
WORKSPACE: Final = rf"PUT {ML}"
CLUSTER: Final = rf"{ML}/computes/[^/]+"
STORAGE: Final = r".*/Microsoft\.Storage/storageAccounts/[^/]+"
VAULT: Final = r".*/Microsoft\.KeyVault/vaults/[^/]+"
REGISTRY: Final = r".*/Microsoft\.ContainerRegistry/registries/[^/]+"
LOGS: Final = r".*/Microsoft\.OperationalInsights/workspaces/[^/]+"
ROLE: Final = r".*/providers/Microsoft\.Authorization/roleAssignments/[^/]+"
IDENTITY: Final = r".*/userAssignedIdentities/[^/]+"
GROUP: Final = r"/subscriptions/[^/]+/resourceGroups/[^/]+"

CHANGES: Final[dict[str, Change]] = {
    "a role that is unknown": Change(
        "open", f"PUT {ROLE}", "RoleDefinitionDoesNotExist", instead=(400, "RoleDefinitionDoesNotExist"), always=True
    ),
    "a throttle": Change("open", WORKSPACE, "[429, ", instead=(429, "TooManyRequests")),
    "a cut connection": Change("open", f"PUT {STORAGE}", '[0, ""]', instead=(CUT, "")),
    "a fault of the service": Change("open", f"PUT {VAULT}", "[500, ", instead=(500, "InternalServerError")),
    "a region that is not available": Change(
        "open", WORKSPACE, "LocationNotAvailable", instead=(400, "LocationNotAvailableForResourceType"), always=True
    ),
    "a right that is missing": Change(
        "policy",
        r"PUT .*/policyAssignments/[^/]+",
        "AuthorizationFailed",
        instead=(403, "AuthorizationFailed"),
        always=True,
    ),
    "a quota that is used up": Change(
        "cluster", f"PUT {CLUSTER}", "ClusterCoreQuotaReached", instead=(409, "ClusterCoreQuotaReached"), always=True
    ),
    "a default of workspaces": Change(
        "open", f"(PUT|GET) {ML}", "properties.storageHnsEnabled", good(put("properties.storageHnsEnabled", True))
    ),
    "a default of storage accounts": Change(
        "open",
        f"(PUT|GET) {STORAGE}",
        "properties.largeFileSharesState",
        good(put("properties.largeFileSharesState", "Enabled")),
    ),
    "a default of vaults": Change(
        "open", f"PUT {VAULT}", "properties.publicNetworkAccess", good(put("properties.publicNetworkAccess", "Other"))
    ),
    "a default of registries": Change("open", f"PUT {REGISTRY}", "sku.tier", good(put("sku.tier", "Classic"))),
    "a default of log analytics": Change(
        "open", f"PUT {LOGS}", "retentionInDays", good(put("properties.retentionInDays", 31))
    ),
    "a default of clusters": Change(
        "cluster", f"GET {CLUSTER}", "properties.properties.osType", good(put("properties.properties.osType", "Other"))
    ),
    "a state of registries": Change(
        "open", f"PUT {REGISTRY}", '"Accepted"', good(put("properties.provisioningState", "Accepted"))
    ),
    "a state of operations": Change(
        "open", r"GET .*/Microsoft\.MachineLearningServices/.*operation.*", '"Finished"', good(put("extra", "Finished"))
    ),
    "a key that is missing": Change(
        "open", f"(PUT|GET) {ML}", "properties.workspaceId", good(drop("properties.workspaceId"))
    ),
    "a key that is new": Change(
        "open", f"PUT {IDENTITY}", "properties.isolationScope", good(put("properties.isolationScope", "None"))
    ),
    "null in place of nothing": Change("open", f"PUT {GROUP}", "managedBy", good(put("managedBy", None))),
    "a header that is missing": Change(
        "open", f"PUT {LOGS}", "header azure-asyncoperation", header("azure-asyncoperation", None)
    ),
    "a header that is new": Change("open", f"PUT {GROUP}", "header x-ms-error-code", header("x-ms-error-code", "None")),
    "a list's order": Change("cluster", r"GET .*/locations/[^/]+/usages", "value[0].", good(turned)),
    "a name of a quota": Change(
        "cluster", r"GET .*/locations/[^/]+/usages", "value[0].name.value", good(put("name.value", "other"))
    ),
    "an error's code": Change("open", f"GET {VAULT}", "VaultNotFound", code("VaultNotFound")),
    "a status of success": Change("open", f"PUT {VAULT}", "[202, ", good(status(202))),
    "letters of an id": Change("open", f"PUT {GROUP}", "RESOURCEGROUPS", good(shouted)),
    "letters of a type": Change(
        "open",
        f"PUT {REGISTRY}",
        "microsoft.containerregistry/REGISTRIES",
        good(put("type", "microsoft.containerregistry/REGISTRIES")),
    ),
    "a job's first state": Change(
        "environment", f"PUT {ML}/jobs/[^/]+", '"Provisioning"', good(put("properties.status", "Provisioning"))
    ),
    "a job's last state": Change(
        "environment",
        f"GET {ML}/jobs/hello[^/]*",
        "ended Failed",
        good(lambda answer: answer.body["properties"].update(status="Failed")),
    ),
    "an asset that changes": Change(
        "environment",
        f"(PUT|GET) {ML}/environments/[^/]+/versions/[^/]+",
        "properties.stage",
        good(put("properties.stage", "Production")),
    ),
    "a link of a job": Change(
        "environment",
        f"PUT {ML}/jobs/[^/]+",
        "services.Studio.endpoint",
        good(put("properties.services.Studio.endpoint", "https://other")),
    ),
}
"""Name → change: thirty."""


class ChangedAzure:
    """See the module."""

    def __init__(self, app: Any, context: Any) -> None:
        self._app, self._file = app, folder(context.store.home) / "change.txt"
        self._met: set[str] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        names = self._file.read_text("utf-8").splitlines() if scope["type"] == "http" and self._file.exists() else []
        asked = f"{scope.get('method')} {scope.get('path')}"
        name = next((each for each in names if re.fullmatch(CHANGES[each].asked, asked, re.IGNORECASE)), "")
        change = CHANGES.get(name)
        if change is None:
            await self._app(scope, receive, send)
            return
        if change.instead is not None:
            if change.always or name not in self._met:
                self._met.add(name)
                await _instead(send, *change.instead)
                return
            await self._app(scope, receive, send)
            return
        assert change.make is not None
        said: list[Any] = []

        async def kept(message: Any) -> None:
            said.append(message)

        await self._app(scope, receive, kept)
        await _changed(send, said, change.make)


async def _instead(send: Any, number: int, code: str) -> None:
    if number == CUT:  # announced, and it does not come: the server closes the connection
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        return
    body = json.dumps({"error": {"code": code, "message": "Changed."}}).encode()
    headers = [(b"content-type", b"application/json"), (b"retry-after", b"1"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": number, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _changed(send: Any, said: list[Any], make: Callable[[Answer], None]) -> None:
    raw = b"".join(message.get("body", b"") for message in said)
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = None
    headers = {name.decode().lower(): value.decode() for name, value in said[0]["headers"]}
    answer = Answer(said[0]["status"], headers, body)
    make(answer)
    content = json.dumps(answer.body).encode() if body is not None else raw
    answer.headers["content-length"] = str(len(content))
    pairs = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})


def change(home: Path, *names: str) -> None:
    """From now on a sandbox answers so; as ever without a name."""
    (folder(home) / "change.txt").write_text("\n".join(names), "utf-8")
