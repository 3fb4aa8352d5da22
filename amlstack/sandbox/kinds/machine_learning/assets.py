"""Assets of a workspace with their versions, which never change once they are registered.

They are code, environments, components (what a pipeline's steps run), data (a name for a place where data lie) and
models (files that a job left or somebody brought).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, ClassVar

from amlstack.sandbox.files import storage
from amlstack.sandbox.files.datastores import grant
from amlstack.sandbox.kinds.machine_learning import workspaces
from amlstack.sandbox.orchestration import pipeline, pipeline_body
from amlstack.sandbox.protocol import requests
from amlstack.sandbox.protocol.addresses import ML
from amlstack.sandbox.protocol.kind import Body, KindContext, NameRule, Reply, ResourceKind, Schema
from amlstack.sandbox.protocol.refusals import Refused, invalid, not_emulated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

ASSET = NameRule(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}",
    "1 to 255 letters, digits, periods, hyphens and underscores, a letter or digit first",
)
DOCKERFILE = "Dockerfile"
"""Path of the Dockerfile in a build context that names none."""
LABELS = frozenset({"description", "isArchived", "tags", "properties"})


class Containers(ResourceKind):
    """The container that all versions of one asset lie in."""

    names = ASSET
    tracked = False

    def __init__(self, word: str, noun: str, args: str) -> None:
        self.type = f"{ML}/workspaces/{word}"  # type: ignore[misc]
        self.noun = noun  # type: ignore[misc]
        self.schema = Schema("machinelearningservices", args, wrapped=True)  # type: ignore[misc]

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The newest version, and the number that a client gives to one without a version: clients count by it."""
        names = [row.name for row in context.store.resources.under(resource.key, f"{self.type}/versions")]
        following = str(max((int(name) for name in names if name.isdecimal()), default=0) + 1)
        return {"nextVersion": following, **({"latestVersion": names[-1]} if names else {})}

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """Those that are not archived, unless the others or all are asked for (``listViewType``)."""
        return tuple(row for row in super().select(context, path, query) if _seen(query, archived=_archived(row)))


class Versions(ResourceKind):
    """One version of an asset: a second PUT must say the same, but for its labels.

    Attributes:
        word: The asset in messages.
        address: The property with the address of the asset's files, which may lie among a job's; empty for none.
    """

    word: ClassVar[str]
    address: ClassVar[str] = ""
    names = ASSET
    defaults: ClassVar[Body] = {"isAnonymous": False, "isArchived": False, "tags": {}, "properties": {}}
    tracked = False
    makes_parent = True

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
        """Those that are not archived, unless asked otherwise (``listViewType``); newest first and so many if asked."""
        container = context.store.resources.get(path.parent)
        whole = container is not None and _archived(container)
        rows = [row for row in super().select(context, path, query) if _seen(query, archived=whole or _archived(row))]
        rows = [row for row in rows if _asked_for(query, row)]
        if query.get("$orderBy", "").lower().startswith("createdtime desc"):
            rows.reverse()
        return tuple(rows[: requests.count(query)])

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """An asset is done as soon as it is there."""
        return {"provisioningState": "Succeeded"}


class CodeVersions(Versions):
    """Code versions: uploaded folders."""

    type = f"{ML}/workspaces/codes/versions"
    noun = "a code version"
    word = "code"
    actions = ("startPendingUpload",)
    schema = Schema("machinelearningservices", "CodeVersionArgs", wrapped=True)

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

    def act(self, context: KindContext, path: ArmPath, name: str, body: Body) -> Reply | None:
        """``startPendingUpload``: a container of its own and a SAS for it."""
        if name.lower() != "startpendingupload":
            return super().act(context, path, name, body)
        kind = body.get("pendingUploadType", "TemporaryBlobReference")
        if kind != "TemporaryBlobReference":
            raise not_emulated(f"pendingUploadType '{kind}', only TemporaryBlobReference")
        account_id = _account_id(context, path)
        account = account_id.rpartition("/")[2]
        container = context.store.blobs.make_container(account, f"code-{uuid.uuid4()}").name
        uri = f"{context.base}/blob/{account}/{container}"
        credential = {"credentialType": "SAS", "sasUri": f"{uri}?{grant(context.key, account, container, 'racwl')}"}
        reference = {"blobUri": uri, "storageAccountArmId": account_id, "credential": credential}
        upload = {"pendingUploadId": str(uuid.uuid4()), "pendingUploadType": kind}
        return Reply(200, {**upload, "blobReferenceForConsumption": reference})


class EnvironmentVersions(Versions):
    """Environment versions: an image, with or without packages on top."""

    type = f"{ML}/workspaces/environments/versions"
    noun = "an environment version"
    word = "environment"
    defaults: ClassVar[Body] = Versions.defaults | {
        "osType": "Linux",
        "environmentType": "UserCreated",
        "autoRebuild": "Disabled",
    }
    schema = Schema("machinelearningservices", "EnvironmentVersionArgs", wrapped=True)

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """It needs something to run in."""
        if not properties.get("image") and not properties.get("build"):
            raise invalid("properties", "an environment needs either 'image' or 'build'.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults, also of a build."""
        return super().fill(context, path, {**body, "properties": _with_dockerfile(body["properties"])})


def _with_dockerfile(properties: Body) -> Body:
    build = properties.get("build")
    return {**properties, "build": {"dockerfilePath": DOCKERFILE, **build}} if build else properties


def _archived(row: ResourceRow) -> bool:
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
    defaults = {**EnvironmentVersions.defaults, **ModelVersions.defaults}
    return {
        key: value
        for key, value in _with_dockerfile(properties).items()
        if key not in LABELS and value is not None and defaults.get(key) != value
    }


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


DEFAULT_VERSION = "azureml_default"
"""Under this name azure-ai-ml asks for a component without a version: the newest one that is not archived."""


class ComponentVersions(Versions):
    """Component versions: a command, a parallel task or a pipeline, with declared inputs and outputs."""

    type = f"{ML}/workspaces/components/versions"
    noun = "a component version"
    word = "component"
    schema = Schema("machinelearningservices", "ComponentVersionArgs", wrapped=True)

    def meant(self, context: KindContext, path: ArmPath) -> str:
        """The default version's own id, where it is asked for by its other name."""
        if path.name.lower() != DEFAULT_VERSION:
            return path.text
        rows = context.store.resources.under(path.parent, self.type)
        active = [row for row in rows if not _archived(row)]
        return active[-1].id if active else path.text

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """It has a specification; what that runs in must be there when a job is made of it."""
        where, spec = "properties.componentSpec", properties.get("componentSpec")
        if spec is None:
            raise invalid(where, "the required property 'componentSpec' of a component version is missing.")
        pipeline_body.check(spec, where)
        for name, step in (spec.get("jobs") or {}).items():
            # They come first, so that no component can be a step of itself.
            if isinstance(step, dict) and isinstance(step.get("componentId"), str):
                pipeline_body.find(context.store, step["componentId"], f"{where}.jobs.{name}")


class DataContainers(Containers):
    """The container of a data asset; it knows the type of its versions."""

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The type is that of its newest version, unless a request has given another."""
        versions = context.store.resources.under(resource.key, f"{self.type}/versions")
        kinds = [row.body["properties"]["dataType"] for row in versions]
        data_type = resource.body["properties"].get("dataType") or (kinds[-1] if kinds else None)
        return {**super().show(context, resource), **({"dataType": data_type} if data_type else {})}


class DataVersions(Versions):
    """Data versions: where the data lie, and whether they are a file, a folder or a table."""

    type = f"{ML}/workspaces/data/versions"
    noun = "a data version"
    word = "data"
    address = "dataUri"
    schema = Schema("machinelearningservices", "DataVersionArgs", wrapped=True)

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """It has an address."""
        if not properties["dataUri"]:
            raise invalid("properties.dataUri", "the required property is empty.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Nothing more: a data version has no provisioning state."""
        return {}


class ModelVersions(Versions):
    """Model versions: where the files lie and what wrote them."""

    type = f"{ML}/workspaces/models/versions"
    noun = "a model version"
    word = "model"
    address = "modelUri"
    defaults: ClassVar[Body] = Versions.defaults | {"flavors": {}}  # clients go through the flavors of every model
    schema = Schema("machinelearningservices", "ModelVersionArgs", wrapped=True)

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """It has an address."""
        if not properties.get("modelUri"):
            raise invalid("properties.modelUri", "the required property is missing.")


MODELS = Containers("models", "a model", "ModelContainerArgs")
KINDS = (
    *(Containers("codes", "a code asset", "CodeContainerArgs"), CodeVersions()),
    *(Containers("environments", "an environment", "EnvironmentContainerArgs"), EnvironmentVersions()),
    *(Containers("components", "a component", "ComponentContainerArgs"), ComponentVersions()),
    *(DataContainers("data", "a data asset", "DataContainerArgs"), DataVersions()),
    *(MODELS, ModelVersions()),
)
"""The kinds of this module; a new one is a row here."""
