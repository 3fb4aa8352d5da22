"""The ground of a recording: its workspace, and all that it reads or names before it has written it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from amlstack.catalog import sizes
from amlstack.prove import forms
from amlstack.sandbox.kinds.machine_learning.workspaces import NEIGHBOURS
from tests.support.recordings import answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.recordings.stories import Exchange, Story

Request = tuple[str, str, Any]
LENGTH: Final = "content-length"
"""The header of a blob that is set up that says how long it is; one byte without."""
COUNT: Final = "x-ms-blob-committed-block-count"
"""The header of a blob that is set up, and appended to, that says in how many blocks."""
LEASED: Final = "x-ms-lease-duration"
"""The header of a container that is leased as soon as it is set up."""
GROUP: Final = "/subscriptions/<sub>/resourceGroups/<group>"
WORKSPACE: Final = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/<workspace>"
_ORDER: Final = (
    "blob",
    "datastores",
    "computes",
    "codes",
    "environments",
    "data",
    "models",
    "components",
    "jobs",
    "schedules",
)
_KIND: Final = re.compile(
    r"(?i)^/subscriptions/<sub>/resourcegroups/<group>/providers/Microsoft\.MachineLearningServices/workspaces/<workspace>"
    r"/(?P<kind>\w+)/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?$"
)
_IMAGE: Final = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04"
_CURATED: Final = "azureml://registries/azureml/environments/sklearn-1.5/versions/1"
_KEY: Final = {"secretsType": "AccountKey", "key": answers.SECRET}
_VERSIONED: Final = frozenset({"codes", "environments", "data", "models", "components"})
_TENANT: Final = "00000000-0000-0000-0000-000000000000"
_LEAST: Final[dict[str, Any]] = {
    "microsoft.managedidentity/userassignedidentities": {},
    "microsoft.keyvault/vaults": {"properties": {"tenantId": _TENANT, "sku": {"family": "A", "name": "standard"}}},
    "microsoft.insights/components": {"kind": "web", "properties": {"Application_Type": "web"}},
    "microsoft.operationalinsights/workspaces": {},
    "microsoft.storage/storageaccounts": {"kind": "StorageV2", "sku": {"name": "Standard_LRS"}},
    "microsoft.containerregistry/registries": {"sku": {"name": "Standard"}},
}
"""The least bodies of neighbours, beside their place."""
_OTHERS: Final = re.compile(
    r"(/subscriptions/<sub>/resourceGroups/(?:[\w.-]+|<group>(?=/providers/Microsoft\.Storage)))(/providers/)"
    r"(Microsoft\.(?:OperationalInsights/workspaces|Storage/storageAccounts))(/[\w-]+)"
)
"""A log workspace in another group, or an account, that a template's parameters name."""
_SAID_BY_SERVICE: Final = frozenset({"provisioningState", "status", "services", "createdOn", "modifiedOn"})


APPLICATION: Final = "Application"
PERSON: Final = "User"


class Callers:
    """The kind of the principal who signed in where a story was recorded, as far as answers say it."""

    def __init__(self, story: Story) -> None:
        self._found: dict[str, str] = {}
        for one in story.exchanges:
            body = one.answer.body if isinstance(one.answer.body, dict) else {}
            rows = body["value"] if isinstance(body.get("value"), list) else [body]
            for row, path in zip(rows, one.ids or (one.path,), strict=False):
                said = row.get("systemData") if isinstance(row, dict) else None
                if path and isinstance(said, dict) and "createdByType" in said:
                    for name in (path, one.path):  # the service may have chosen another name
                        self._found.setdefault(name.lower(), said["createdByType"])
        made = {self._found.get(one.path.lower()) for one in story.exchanges if one.method == "PUT"} - {None}
        self._most = PERSON if PERSON in (made or {*self._found.values()}) else APPLICATION

    def of(self, path: str) -> str:
        """The caller who has made what lies at a path; of a container that of its first version, else of the story."""
        low = path.lower()
        inner = (who for name, who in self._found.items() if name.startswith(f"{low}/"))
        return self._found.get(low) or next(inner, self._most)


def version(path: str) -> str:
    """An api-version for what is set up."""
    last = path.rpartition("/providers/")[2].lower()
    for word, found in {
        "microsoft.managedidentity": "2023-01-31", "microsoft.operationalinsights": "2023-09-01",
        "microsoft.storage": "2024-01-01", "microsoft.keyvault": "2023-07-01", "microsoft.insights": "2020-02-02",
        "microsoft.containerregistry": "2023-07-01", "microsoft.machinelearningservices": "2024-10-01",
    }.items():  # fmt: skip
        if last.startswith(word):
            return found
    return "2024-03-01"


def workspace(story: Story) -> Iterator[Request]:
    """The group, the account, and the workspace with its vault and insights, as far as the story names them."""
    paths = {one.path for one in story.exchanges}
    by_template = any(one.kind == "PUT deployments" for one in story.exchanges)
    named = any("<workspace>" in path for path in paths) and not by_template
    location = next(_locations(story), "eastus2")
    base = {"location": location}
    account = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/<account>"
    vault = f"{GROUP}/providers/Microsoft.KeyVault/vaults/<group>"
    insights = f"{GROUP}/providers/Microsoft.Insights/components/<group>"
    first = next((one for one in story.exchanges if one.path.lower() == GROUP.lower()), None)
    makes_group = first is not None and first.method == "PUT"
    if named or (not makes_group and any("<group>" in path and path.count("/") > 3 for path in paths)):
        read = first.answer.body if first is not None and first.method == "GET" else None
        yield "PUT", GROUP, {**base, **{key: read[key] for key in ("location", "tags") if read and key in read}}
    if named or any(path.startswith("/blob/") for path in paths):
        yield "PUT", GROUP, base
        keys = {"allowSharedKeyAccess": True, "isHnsEnabled": _has_tree(story)}
        body = {**base, "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": keys}
        for name in ("<account>", *_accounts(story)):
            yield "PUT", f"{GROUP}/providers/Microsoft.Storage/storageAccounts/{name}", body
    if not named:
        return
    read = _read_workspace(story)
    needed = {"storageAccount": account, "keyVault": vault, "applicationInsights": insights}
    needed |= {key: _as_told(read[key]) for key in NEIGHBOURS if read.get(key)}
    for key, neighbour in needed.items():
        if key != "storageAccount" or neighbour != account:
            yield "PUT", neighbour, {**base, **_LEAST[NEIGHBOURS[key].lower()]}
    said: dict[str, Any] = {key: read[key] for key in ("description", "publicNetworkAccess") if key in read}
    if read.get("friendlyName"):
        said["friendlyName"] = read["friendlyName"].replace("<hidden>", "<workspace>")
    yield "PUT", WORKSPACE, {**base, "identity": {"type": "SystemAssigned"}, "properties": {**said, **needed}}
    for gone in _gone(story).values():
        yield "DELETE", gone, None


def unique_names(story: Story) -> list[str]:
    """The names of a story that only one in Azure can have: its other accounts, and neighbours of its workspace."""
    read = _read_workspace(story)
    named = [_as_told(str(read.get(key) or "").rpartition("/")[2]) for key in NEIGHBOURS]
    text = json.dumps([one.sent for one in story.exchanges if _names_neighbours(one)])
    named += [name.strip("/") for *_, of, name in _OTHERS.findall(text) if "storage" in of.lower()]
    found = {name for name in (*_accounts(story), *named) if name and "<" not in name}
    return sorted(found, key=lambda name: (-len(name), name))  # a name may begin as another does


def _accounts(story: Story) -> list[str]:
    named = (one.path.split("/")[2].partition(".")[0] for one in story.exchanges if one.path.startswith("/blob/"))
    return [name for name in dict.fromkeys(named) if name != "<account>"]


def _read_workspace(story: Story) -> dict[str, Any]:
    """The properties of the workspace where the story reads it before it writes it; empty where it does not."""
    first = next((one for one in story.exchanges if one.path.lower() == WORKSPACE.lower()), None)
    found = first is not None and first.method == "GET" and first.answer.status == 200
    return dict(first.answer.body["properties"]) if found and first is not None else _gone(story)


def _gone(story: Story) -> dict[str, str]:
    """The neighbours of the workspace that a diagnosis misses."""
    rows = [one.answer.body["value"] for one in story.exchanges if one.kind == "POLL diagnose"]
    texts = ((key, json.dumps(row.get(f"{key}Results"))) for row in rows for key in NEIGHBOURS)
    found = ((key, re.search(r"Resource (\S+) has been removed", text)) for key, text in texts)
    return {key: match[1] for key, match in found if match}


def _has_tree(story: Story) -> bool:
    """True where an answer says of a blob whether it is a file or a directory."""
    said = (one.answer for one in story.exchanges if one.path.startswith("/blob/"))
    return any("x-ms-resource-type" in one.headers or "'ResourceType'" in repr(one.body) for one in said)


def _locations(story: Story) -> Iterator[str]:
    """Regions of the workspace: of its answers, and of refusals in it."""
    for one in story.exchanges:
        body = one.answer.body if isinstance(one.answer.body, dict) else {}
        if one.path.lower() == WORKSPACE.lower() and "location" in body:
            yield body["location"]
        for info in (body.get("error") or {}).get("additionalInfo") or ():
            if info.get("type") == "Location":
                yield info["info"]["value"]


def quotas(story: Story) -> dict[str, Any]:
    """The quota of regions by which clusters failed that a story reads."""
    found: dict[str, Any] = {}
    for one in story.exchanges:
        body = one.answer.body if one.kind == "GET computes" and isinstance(one.answer.body, dict) else {}
        errors = body.get("properties", {}).get("provisioningErrors") or ()
        for said in (re.search(r"vCPU quota of (\d+)", each["error"]["message"]) for each in errors):
            size = sizes.get(body["properties"]["properties"]["vmSize"])
            if said and size is not None:
                found.setdefault(body["location"], {"families": {}})["families"][size.family] = int(said[1])
    return found


def by_story(story: Story) -> list[Request]:
    """Requests that make what the story reads, or names in what it writes, before it has made it."""
    made: set[str] = set()
    found: dict[str, Request] = {}
    containers: dict[str, Any] = {}
    put: set[str] = set()
    for one in story.exchanges:
        good, low = one.answer.status < 300, one.path.lower()
        if low.startswith("/blob/"):
            low, path = low.replace(".dfs/", "/"), one.path.replace(".dfs/", "/")
            if low not in made and (labels := _looked_at(one)) is not None:
                listed = found.get(low, ("PUT", path, {}))[2]
                found[low] = "PUT", path, {**labels, **listed, **({COUNT: labels[COUNT]} if COUNT in labels else {})}
            containers |= _listed(one, made | put, found)
            outer = "/".join(path.split("/")[:4])
            if one.method == "PUT" and good and low.count("/") == 3:
                put.add(low)
            elif outer.lower() not in put and one.answer.headers.get("x-ms-error-code") != "ContainerNotFound":
                containers.setdefault(outer, None)
            made.add(low)
            continue
        made |= _made_by_template(one)
        for request in _neighbours(one, made):
            found.setdefault(request[1].lower(), request)
        known = _KIND.match(one.path)
        if one.method == "PUT" and one.answer.status == 200 and low not in made and known and known["version"]:
            found.setdefault(low, ("PUT", one.path, one.sent))  # what is made is 201: this was there
        if good and one.method in {"PUT", "PATCH"}:
            _named(one.sent, made, found)
            made |= {low, low.rpartition("/versions/")[0]}
        if good and one.method == "GET" and isinstance(one.answer.body, dict):
            rows = one.answer.body.get("value")
            named = one.ids if isinstance(rows, list) and one.ids else (one.path,)
            for row, path in zip(rows if isinstance(rows, list) else [one.answer.body], named, strict=False):
                if isinstance(row, dict) and path and low not in made:
                    _read(path, row, one.query, made, found)
    order = {word: number for number, word in enumerate(_ORDER)}
    files = list(_code_files(found.values()))
    containers = {**dict.fromkeys("/".join(path.split("/")[:4]) for _, path, _ in files), **containers}
    blobs = [
        *(
            ("PUT", name, given)
            for name, given in sorted(containers.items())
            if name.count("/") == 3 and not name.endswith("<blobstore>")
        ),
        *files,
    ]
    listed = sorted(found.values(), key=lambda each: order.get(_word(each[1]), len(order)))
    return [*blobs, *listed]


def _looked_at(one: Exchange) -> dict[str, str] | None:
    """The headers by which a blob is set up that an exchange reads as a whole; None where it reads none."""
    if one.method not in {"HEAD", "GET"} or one.path.count("/") <= 3 or "comp" in one.query:
        return None
    if one.answer.status < 300:
        said = one.answer.headers
        kept = {"content-type": "x-ms-blob-content-type", "x-ms-blob-type": "x-ms-blob-type", COUNT: COUNT}
        return _metadata(said) | {name: said[key] for key, name in kept.items() if key in said}
    return {LENGTH: "0"} if one.answer.headers.get("content-range") == "bytes */0" else None


def _listed(one: Exchange, made: set[str], found: dict[str, Request]) -> dict[str, Any]:
    """Adds the blobs that a list shows and the story has not made before, and returns such containers."""
    body = one.answer.body if isinstance(one.answer.body, dict) else {}
    containers: dict[str, Any] = {}
    for outer, inner in (("Blobs", "Blob"), ("Containers", "Container")):
        rows = body[outer].get(inner, []) if isinstance(body.get(outer), dict) else []
        for row in rows if isinstance(rows, list) else [rows]:
            path, said = f"{one.path}/{_named_by(one, row['Name'])}", row.get("Properties", {})
            if path.lower() in made or {"Deleted", "Snapshot"} & {*row} or row["Name"].startswith("$"):
                continue
            if outer == "Containers":
                access = {"x-ms-blob-public-access": said["PublicAccess"]} if "PublicAccess" in said else {}
                containers[path] = access | ({LEASED: "-1"} if said.get("LeaseDuration") == "infinite" else {})
            elif said.get("BlobType") in {"BlockBlob", "AppendBlob"}:
                labels = row.get("Metadata") or {}
                given = {LENGTH: said["Content-Length"], "x-ms-blob-content-type": said.get("Content-Type", "")}
                given["x-ms-blob-type"] = said["BlobType"]
                given |= {} if "AccessTierInferred" in said else {"x-ms-access-tier": said.get("AccessTier", "")}
                given |= {f"x-ms-meta-{name}": _as_told(value) for name, value in labels.items()}
                found.setdefault(path.lower(), ("PUT", path, {name: value for name, value in given.items() if value}))
    return containers


def _named_by(one: Exchange, name: str) -> str:
    """The name of a blob in a list, with the ids that the list's prefix says."""
    prefix = one.query.get("prefix", "")
    shown = forms.written(prefix)
    return prefix + name[len(shown) :] if prefix and name.startswith(shown) else name


def _neighbours(one: Exchange, made: set[str]) -> Iterator[Request]:
    """Identities and other neighbours that were there when they were read, and names that were taken."""
    low, body = one.path.lower(), one.answer.body if isinstance(one.answer.body, dict) else {}
    if low.endswith("/checknameavailability") and body.get("reason") == "AlreadyExists":
        name = f"{GROUP}/providers/{one.sent['type']}/{one.sent['name']}"
        yield "PUT", name, {"location": "eastus2", **_LEAST.get(one.sent["type"].lower(), {})}
    if _names_neighbours(one):
        for group, within, of_type, name in dict.fromkeys(_OTHERS.findall(json.dumps(one.sent))):
            yield "PUT", group, {"location": "eastus2"}
            yield "PUT", f"{group}{within}{of_type}{name}", {"location": "eastus2", **_LEAST[of_type.lower()]}
    if one.kind == "PATCH workspaces":
        for key in NEIGHBOURS:
            name = str(one.sent.get("properties", {}).get(key) or "")
            if name and f"name {name.rpartition('/')[2]}" not in made:
                yield "PUT", name, {"location": "eastus2", **_LEAST[NEIGHBOURS[key].lower()]}
    kind = low.partition("/providers/")[2].rpartition("/")[0]
    if (
        one.method == "GET"
        and one.answer.status == 200
        and low not in made
        and kind in _LEAST
        and "storage" not in kind
    ):
        yield "PUT", one.path, {"location": body.get("location", "eastus2"), **_LEAST[kind]}
        made.add(low)


def _made_by_template(one: Exchange) -> set[str]:
    """The resources that the parameters of a deployment name: it makes them itself."""
    given = (one.sent["properties"].get("parameters") or {}) if one.kind == "PUT deployments" else {}
    return {f"name {each['value']}" for each in given.values() if isinstance(each.get("value"), str)}


def _names_neighbours(one: Exchange) -> bool:
    return one.kind in {"PUT deployments", "PATCH workspaces"}


def _word(path: str) -> str:
    found = _KIND.match(path)
    return found["kind"].lower() if found else "blob"


def _metadata(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: _as_told(value) for name, value in headers.items() if name.startswith("x-ms-meta-")}


def _code_files(requests: Any) -> Iterator[Request]:
    """A file at the address of each code asset that is there."""
    for _, path, body in list(requests):
        if _word(path) == "codes" and isinstance(body, dict):
            uri = str(body["properties"].get("codeUri", ""))
            place = re.match(r"https://([^./]+)\.blob\.core\.windows\.net(?::443)?/(.+)", uri)
            if place:
                yield "PUT", f"/blob/{place[1]}/{place[2].rstrip('/')}/file", {}


def _read(path: str, row: dict[str, Any], query: dict[str, str], made: set[str], found: dict[str, Request]) -> None:
    """A resource that was there, as it was read; of code that was asked for by its hash, with that."""
    known = _KIND.match(path)
    if known is None or path.lower() in made:
        return
    dummy = _dummy(known["kind"].lower(), known["name"])
    if path.lower() in found and found[path.lower()][2] != dummy:  # what is read says more than what only names it
        return
    properties = {key: value for key, value in row.get("properties", {}).items() if key not in _SAID_BY_SERVICE}
    kind, versioned = known["kind"].lower(), known["version"] is not None
    if kind in _VERSIONED and not versioned:
        newest = properties.get("latestVersion") or ("1" if kind == "components" else None)
        if newest and f"{path}/versions/{newest}".lower() not in made and dummy is not None:
            found.setdefault(f"{path}/versions/{newest}".lower(), ("PUT", f"{path}/versions/{newest}", dummy))
        return
    _named(properties, made, found)
    if kind == "computes":
        found[path.lower()] = "PUT", path, _compute(row, properties)
        for name in (row.get("identity") or {}).get("userAssignedIdentities") or {}:
            group = "/".join(name.split("/")[:5])
            found.setdefault(group.lower(), ("PUT", group, {"location": "eastus2"}))
            found.setdefault(name.lower(), ("PUT", name, {"location": "eastus2"}))
        return
    if "hash" in query:
        properties["properties"] = {"hash_sha256": query["hash"], "hash_version": query.get("hashVersion", "")}
    if (properties.get("credentials") or {}).get("credentialsType") == "AccountKey":
        properties["credentials"] = {**properties["credentials"], "secrets": _KEY}
    if kind in _ORDER and not (kind == "datastores" and path.rpartition("/")[2].startswith("workspace")):
        found[path.lower()] = "PUT", path, {"properties": _unwritten(properties)}


def _compute(row: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    inner = properties.get("properties") or {}
    kept = ("vmSize", "vmPriority", "scaleSettings", "osType", "remoteLoginPortPublicAccess", "enableNodePublicIp")
    named = {key: inner[key] for key in kept if inner.get(key) is not None}
    outer = {"computeType": properties.get("computeType"), "description": properties.get("description")}
    identity = row.get("identity") or {}
    users: dict[str, Any] = {name: {} for name in identity.get("userAssignedIdentities") or {}}
    given = {"identity": {"type": identity["type"], "userAssignedIdentities": users}} if users else {}
    return {"location": row.get("location", "eastus2"), **given, "properties": {**outer, "properties": named}}


def _unwritten(value: Any) -> Any:
    """A body without forms: a time or an id that is a word would be refused."""
    if isinstance(value, dict):
        return {key: _unwritten(inner) for key, inner in value.items() if inner != "<secret>"}
    if isinstance(value, list):
        return [_unwritten(inner) for inner in value]
    return _as_told(value) if isinstance(value, str) else value


def _as_told(text: str) -> str:
    text = (
        text.replace("<who>", "someone")
        .replace("<container>", "6e1f2a3b-0-<guid>")
        .replace("<guid>", "6e1f2a3b-0000-4000-8000-000000000001")
    )
    text = re.sub(r"<hex(\d+)>", lambda found: "a1" * (int(found[1]) // 2), text)
    return re.sub(r"<time[^>]*>", "2023-01-01T00:00:00Z", text)


def _named(value: Any, made: set[str], found: dict[str, Request]) -> None:
    """Finds the requests for all that a body names by its id, or as ``azureml:NAME:VERSION``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if (
                key == "environmentId"
                and isinstance(inner, str)
                and (short := re.fullmatch(r"azureml:([^:/]+):(\w+)", inner))
            ):
                _name(f"{WORKSPACE}/environments/{short[1]}/versions/{short[2]}", made, found)
            _named(inner, made, found)
    elif isinstance(value, list):
        for inner in value:
            _named(inner, made, found)
    elif isinstance(value, str) and value.lower().removeprefix("azureml:").startswith("/subscriptions/<sub>/"):
        _name(value.removeprefix("azureml:"), made, found)


def _name(path: str, made: set[str], found: dict[str, Request]) -> None:
    known, low = _KIND.match(path), path.lower()
    if known is None or low in made or low in found or known["name"].startswith("AzureML-"):
        return
    dummy = _dummy(known["kind"].lower(), known["name"])
    if dummy is not None and (known["version"] or known["kind"].lower() in {"computes", "datastores", "jobs"}):
        found[low] = "PUT", _as_told(path), dummy


def _dummy(kind: str, name: str) -> dict[str, Any] | None:
    """The least body of what a story only names."""
    files = f"azureml://datastores/workspaceblobstore/paths/{name}/"
    if kind == "computes":
        inner = {"vmSize": "STANDARD_DS2_V2", "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 4}}
        return {"location": "eastus2", "properties": {"computeType": "AmlCompute", "properties": inner}}
    properties = {
        "environments": {"image": _IMAGE},
        "codes": {"codeUri": f"https://<account>.blob.core.windows.net/<blobstore>/LocalUpload/{name}"},
        "jobs": {"jobType": "Command", "command": "echo", "environmentId": _CURATED},
        "data": {"dataUri": files, "dataType": "uri_folder"},
        "models": {"modelUri": files, "modelType": "custom_model"},
        "components": {
            "componentSpec": {
                "name": name, "version": "1", "type": "command", "command": "echo", "environment": f"azureml:{_IMAGE}",
            }
        },
    }.get(kind)  # fmt: skip
    return None if properties is None else {"properties": properties}
