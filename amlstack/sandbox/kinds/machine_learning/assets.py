"""Assets of a workspace with their versions, which never change once they are registered.

They are code, environments, data (a name for a place where data lie) and models (files that a job left or somebody
brought); the components are in a module of their own.

Source of the answers' form: recordings of azure-ai-ml's tests, 2022-09 to 2026-03 (``azure-sdk-assets`` in
``amlstack/catalog/data/sources.json``, and a fork of azure-sdk-for-python of June 2023).
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote, urlsplit

from amlstack.sandbox.files import storage
from amlstack.sandbox.files.storage import account_and_container, grant
from amlstack.sandbox.kinds.machine_learning import workspaces
from amlstack.sandbox.orchestration import pipeline
from amlstack.sandbox.protocol import requests
from amlstack.sandbox.protocol.addresses import BLOB, ML, ArmPath
from amlstack.sandbox.protocol.kind import Body, KindContext, Reply, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid, not_emulated

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables import Operation

DOCKERFILE = "Dockerfile"
"""Path of the Dockerfile in a build context that names none."""
LABELS = frozenset({"description", "isArchived", "tags", "properties"})


class Containers(ResourceKind):
    """The container that all versions of one asset lie in.

    Attributes:
        newest_first: The order of the list; else the oldest is first.
    """

    newest_first: ClassVar[bool] = False

    def __init__(self, word: str, noun: str) -> None:
        self.type = f"{ML}/workspaces/{word}"  # type: ignore[misc]
        self.noun = noun  # type: ignore[misc]

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The newest version, and the number that a client gives to one without a version: clients count by it."""
        names = [row.name for row in context.store.resources.under(resource.key, f"{self.type}/versions")]
        following = str(max((int(name) for name in names if name.isdecimal()), default=0) + 1)
        return {"latestVersion": names[-1] if names else None, "nextVersion": following}

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """Those that are not archived, unless the others or all are asked for (``listViewType``)."""
        rows = super().select(context, path, query)
        shown = tuple(row for row in rows if _seen(query, archived=is_archived(row)))
        return shown[::-1] if self.newest_first else shown

    def absent(self, path: ArmPath) -> Refused:
        """The service's words for an asset that is not there."""
        return _absent(path)


class Versions(ResourceKind):
    """One version of an asset: a second PUT must say the same, but for its labels.

    Attributes:
        word: The asset in messages.
        address: The property with the address of the asset's files, which may lie among a job's; empty for none.
    """

    word: ClassVar[str]
    address: ClassVar[str] = ""

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A new version is judged by its kind; of one that is registered nothing but the labels changes."""
        properties = body["properties"]
        if uri := properties.get(self.address):
            properties[self.address] = pipeline.registered_address(context.store, _workspace(path), uri)
        if before is None:
            self.check_new(context, path, properties)
        elif _fixed(before.body["properties"]) != _fixed(properties):
            version = f"{path.names[-2]}:{path.name}"
            message = f"The specified {self.word} {version} is already registered and cannot be changed."
            raise Refused(409, "UserError", message)

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """Refuses the properties of a version that cannot be registered."""

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """Only the labels are taken over."""
        labels = {key: value for key, value in body["properties"].items() if key in LABELS}
        return {**before.body, "properties": {**before.body["properties"], **labels}}

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """Those that are not archived, unless asked otherwise (``listViewType``); newest first, so many if asked."""
        container = context.store.resources.get(path.parent)
        whole = container is not None and is_archived(container)
        rows = [row for row in super().select(context, path, query) if _seen(query, archived=whole or is_archived(row))]
        rows = [row for row in rows if _asked_for(query, row)]
        if not query.get("$orderBy", "").lower().startswith("createdtime asc"):
            rows.reverse()
        return tuple(rows[: requests.count(query)])

    def absent(self, path: ArmPath) -> Refused:
        """The service's words for a version that is not there."""
        return _absent(path)


class CodeVersions(Versions):
    """Code versions: uploaded folders."""

    type = f"{ML}/workspaces/codes/versions"
    word = "code"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The same content at another address is the same version, which stays where it is."""
        given = body["properties"]
        kept: Body = {} if before is None else before.body["properties"]
        digest = (given.get("properties") or {}).get("hash_sha256")
        if digest and digest == kept.get("properties", {}).get("hash_sha256"):
            given["codeUri"] = kept["codeUri"]
        super().check(context, path, body, before)

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """The address must be a folder that holds something."""
        uri = properties.get("codeUri")
        if not uri:
            raise invalid("properties.codeUri", "the required property is missing.")
        place = storage.locate_blob(uri)
        if place is None or not _holds_account(context, path, place[0]):
            raise invalid("properties.codeUri", f"'{uri}' is no https blob folder of the workspace's storage account.")
        if context.store.blobs.get(*place) is not None:
            raise invalid("properties.codeUri", f"'{uri}' is a file; a code asset is a folder.")
        if not context.store.blobs.under(place[0], place[1], f"{place[2]}/" if place[2] else ""):
            raise invalid("properties.codeUri", f"there are no files at '{uri}'.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The address under Azure's own name of the account: azure-ai-ml downloads code from no other."""
        del context
        uri = str(resource.body["properties"]["codeUri"])
        place = storage.locate_blob(uri)
        if place is None or urlsplit(uri).hostname == f"{place[0]}{BLOB}":
            return {"isAnonymous": False}  # whatever was sent
        account, container, name = place
        return {"isAnonymous": False, "codeUri": f"https://{account}{BLOB}:443/{container}/{quote(name)}"}

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """The versions of one name; asked for a hash, those of all names in the workspace that have it."""
        wanted = query.get("hash")
        if wanted is None:
            return super().select(context, path, query)
        workspace = f"{_workspace(path)}/".lower()
        return tuple(
            row
            for row in context.store.resources.of_type(self.type)
            if row.key.startswith(workspace)
            and row.body["properties"].get("properties", {}).get("hash_sha256") == wanted
        )

    def act(self, context: KindContext, path: ArmPath, name: str, body: Body) -> Reply | Operation | None:
        """``startPendingUpload``: a container of its own and a SAS for it."""
        if name.lower() != "startpendingupload":
            return super().act(context, path, name, body)
        kind = body.get("pendingUploadType", "TemporaryBlobReference")
        if kind != "TemporaryBlobReference":
            raise not_emulated(f"pendingUploadType '{kind}', only TemporaryBlobReference")
        account_id = _account_id(context, path)
        account = account_id.rpartition("/")[2]
        space = str(context.store.resources[_workspace(path)].body["properties"]["workspaceId"])
        container = context.store.blobs.make_container(account, f"{space[:10]}-{uuid.uuid4()}").name
        uri = f"{context.base}/blob/{account}/{container}"
        credential = {"credentialType": "SAS", "sasUri": f"{uri}?{grant(context.key, account, container, 'racwl')}"}
        reference = {"blobUri": uri, "storageAccountArmId": account_id, "credential": credential}
        upload = {"pendingUploadId": str(uuid.uuid4()), "pendingUploadType": "None"}
        return Reply(200, {**upload, "blobReferenceForConsumption": reference})


class EnvironmentVersions(Versions):
    """Environment versions: an image, with or without packages on top."""

    type = f"{ML}/workspaces/environments/versions"
    word = "environment"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The address of a build context has Azure's own name of its account."""
        build = body["properties"].get("build") or {}
        if uri := build.get("contextUri"):
            build["contextUri"] = _context_uri(context, path, uri)
        super().check(context, path, body, before)

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """It needs something to run in."""
        if not properties.get("image") and not properties.get("build"):
            raise invalid("properties", "an environment needs either 'image' or 'build'.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults, also of a build."""
        given = _with_dockerfile(body["properties"])
        stage = {"stage": "Logged"} if given.get("isAnonymous") else {}
        return super().fill(context, path, {**body, "properties": {**stage, **given}})

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its conda file as JSON, and whether it is the newest version."""
        properties = resource.body["properties"]
        newest = context.store.resources.under(resource.parent, self.type)[-1].key == resource.key
        latest = newest and not properties.get("isAnonymous")
        labels = {**properties.get("properties", {}), "azureml.labels": "latest" if latest else ""}
        return {"condaFile": _conda(properties.get("condaFile") or ""), "properties": labels}

    def absent(self, path: ArmPath) -> Refused:
        """Its own words."""
        message = f"No environment exists for name: {path.names[-2]}, version: {path.name}"
        return Refused(404, "UserError", message, inner=("NotFoundError",))


_CONTEXT = re.compile(r"https://(?:127\.0\.0\.1|localhost)(?::\d+)?/blob/(?P<rest>.+)")


def _context_uri(context: KindContext, path: ArmPath, uri: str) -> str:
    """The address of a build context in this sandbox, as Azure's clients write it.

    azure-ai-ml joins the account's address here, which has a path, and the container's name in such a way that the
    account is lost; the datastore with that container has it.
    """
    found = _CONTEXT.fullmatch(uri)
    if found is None:
        return uri
    first, _, rest = found["rest"].partition("/")
    stores = context.store.resources.under(_workspace(path), workspaces.Datastores.type)
    named = {
        container: account for account, container in (account_and_container(row.body["properties"]) for row in stores)
    }
    if first in named:
        return f"https://{named[first]}{BLOB}/{first}/{rest}"
    return f"https://{first.partition('.')[0]}{BLOB}/{rest}"


def _conda(text: str) -> str:
    """A conda file as the service answers it: JSON; what is no YAML stays."""
    import yaml  # noqa: PLC0415 - of environments alone

    try:
        return json.dumps(yaml.safe_load(text), indent=2, ensure_ascii=False) if text else ""
    except (yaml.YAMLError, TypeError):
        return text


class EnvironmentContainers(Containers):
    """The container of an environment."""

    newest_first = True

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """One that holds nothing but anonymous versions calls none of them the latest."""
        shown = super().show(context, resource)
        rows = context.store.resources.under(resource.key, f"{self.type}/versions")
        anonymous = bool(rows) and all(row.body["properties"].get("isAnonymous") for row in rows)
        return {**shown, "latestVersion": "0"} if anonymous else shown

    def absent(self, path: ArmPath) -> Refused:
        """Its own words."""
        message = f"No environment exists for name: {path.name}, version: , label: "
        return Refused(404, "UserError", message, inner=("NotFoundError",))


def _with_dockerfile(properties: Body) -> Body:
    build = properties.get("build")
    return {**properties, "build": {"dockerfilePath": DOCKERFILE, **build}} if build else properties


def _absent(path: ArmPath) -> Refused:
    del path
    return Refused(404, "UserError", "The specified resource was not found.")


def is_archived(row: ResourceRow) -> bool:
    """True where lists leave an asset out."""
    return bool(row.body["properties"].get("isArchived"))


def _seen(query: Mapping[str, str], *, archived: bool) -> bool:
    """True where a list shows an asset: the active ones unless ``listViewType`` is ``ArchivedOnly`` or ``All``."""
    view = query.get("listViewType", "ActiveOnly").lower()
    return view == "all" or archived is (view == "archivedonly")


def _asked_for(query: Mapping[str, str], row: ResourceRow) -> bool:
    """True where a version has what a list is narrowed to: version, description, stage, tags, properties."""
    properties = row.body["properties"]
    if query.get("version", row.name) != row.name:
        return False
    if any(query.get(name) not in (None, "", properties.get(name)) for name in ("description", "stage")):
        return False
    labels = ("tags", "properties")
    return all(requests.holds(query.get(name, ""), properties.get(name) or {}) for name in labels)


def _fixed(properties: Body) -> Body:
    """The part that cannot change, with the service's defaults taken away so that both sides compare."""
    defaults = {**EnvironmentVersions.defaults, **ModelVersions.defaults, "condaFile": ""}
    given = _with_dockerfile(properties)
    normal = {
        "codeUri": lambda uri: storage.locate_blob(uri) or uri,
        "condaFile": _conda,
        "dataUri": _short,
        "modelUri": _short,
    }
    given = {key: normal[key](value) if key in normal and value else value for key, value in given.items()}
    return {
        key: value
        for key, value in given.items()
        if key not in LABELS
        and value is not None
        and defaults.get(key) != value
        and (key, value) != ("stage", "Logged")
    }


_LONG = re.compile(
    r"azureml://subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/datastores/",
    re.IGNORECASE,
)


def _short(uri: str) -> str:
    """The address in a datastore without its workspace and the slash at its end."""
    return _LONG.sub("azureml://datastores/", uri).rstrip("/")


def _long(resource: ResourceRow, uri: str, group_word: str) -> str:
    """The address in a datastore with the workspace of the version that has it, and the service's word for groups."""
    rest = uri.removeprefix("azureml://datastores/")
    if rest == uri:
        return re.sub(
            r"(?<=^azureml://subscriptions/)([^/]+)/resourcegroups/", rf"\1/{group_word}/", uri, flags=re.IGNORECASE
        )
    _, _, subscription, _, group, _, _, _, workspace, *_ = resource.id.split("/")
    root = f"azureml://subscriptions/{subscription}/{group_word}/{group}/workspaces/{workspace}"
    return f"{root}/datastores/{rest}"


def _workspace(path: ArmPath) -> str:
    """The id of a version's workspace."""
    return path.parent.rsplit("/", 2)[0]


def _account_id(context: KindContext, path: ArmPath) -> str:
    return str(context.store.resources[_workspace(path)].body["properties"]["storageAccount"])


def _holds_account(context: KindContext, path: ArmPath, account: str) -> bool:
    """True where an account is the workspace's own, or that of one of its datastores."""
    stores = context.store.resources.under(_workspace(path), workspaces.Datastores.type)
    names = {row.body["properties"]["accountName"] for row in stores}
    return account in {_account_id(context, path).rpartition("/")[2], *names}


def _without_hand(stamp: Body, resource: ResourceRow) -> Body:
    """The dates of data, of which an answer says who changed them last where somebody has."""
    changed = resource.changed > resource.created
    return {name: value for name, value in stamp.items() if changed or not name.startswith("lastModifiedBy")}


class DataContainers(Containers):
    """The container of a data asset; it knows the type of its versions."""

    def stamp(self, resource: ResourceRow) -> Body:
        """With who changed it last where it was changed."""
        return _without_hand(super().stamp(resource), resource)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The type is that of its newest version, unless a request has given another."""
        versions = context.store.resources.under(resource.key, f"{self.type}/versions")
        kinds = [row.body["properties"]["dataType"] for row in versions]
        data_type = resource.body["properties"].get("dataType") or (kinds[-1] if kinds else None)
        return {**super().show(context, resource), **({"dataType": data_type} if data_type else {})}


class DataVersions(Versions):
    """Data versions: where the data lie, and whether they are a file, a folder or a table."""

    type = f"{ML}/workspaces/data/versions"
    word = "data"
    address = "dataUri"

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """It has an address."""
        if not properties["dataUri"]:
            raise invalid("properties.dataUri", "the required property is empty.")
        if properties.get("autoDeleteSetting"):
            # Source: azure-sdk-assets, test_data_auto_delete_setting, 2026-03-27. No datastore here is a managed one.
            raise Refused(400, "UserError", "AutoDeleteSetting is only supported for assets in managed datastore.")

    def stamp(self, resource: ResourceRow) -> Body:
        """With who changed it last where it was changed."""
        return _without_hand(super().stamp(resource), resource)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The address with its workspace, and of a folder with a slash at its end; no data are anonymous.

        Source: test_image_classification_multiclass_run of azure-ai-ml, 2022-08-31.
        """
        del context
        properties = resource.body["properties"]
        uri = _long(resource, properties["dataUri"], "resourcegroups")
        whole = properties["dataType"] == "uri_file" or uri.endswith("/") or not uri.startswith("azureml:")
        end = "" if whole else "/"
        return {"dataUri": uri + end, "isAnonymous": False}


class ModelVersions(Versions):
    """Model versions: where the files lie and what wrote them."""

    type = f"{ML}/workspaces/models/versions"
    word = "model"
    address = "modelUri"

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """It has an address."""
        if not properties.get("modelUri"):
            raise invalid("properties.modelUri", "the required property is missing.")

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """Those of a model that is there."""
        if context.store.resources.get(path.parent) is None:
            raise _absent(path)
        return super().select(context, path, query)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The address with its workspace."""
        del context
        return {"modelUri": _long(resource, resource.body["properties"]["modelUri"], "resourceGroups")}


class ModelContainers(Containers):
    """The container of a model."""

    def absent(self, path: ArmPath) -> Refused:
        """Its own words below the common ones."""
        message = f"Model container with name: {path.name} not found."
        below = {"code": "ModelNotFound", "message": message, "details": [], "additionalInfo": []}
        return Refused(404, "UserError", "The specified resource was not found.", details=(below,))


MODELS = ModelContainers("models", "a model")
KINDS = (
    *(Containers("codes", "a code asset"), CodeVersions()),
    *(EnvironmentContainers("environments", "an environment"), EnvironmentVersions()),
    *(DataContainers("data", "a data asset"), DataVersions()),
    *(MODELS, ModelVersions()),
)
"""The kinds of this module; a new one is a row here."""
