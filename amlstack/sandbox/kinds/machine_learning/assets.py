"""Codes and environments with their versions, which never change once they are registered.

Components with their versions: what a pipeline's steps run.

Data assets with their versions: a name for a place where data lie.

Models with their versions: files that a job left or somebody brought, registered under a name.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

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
"""Where a build context has its Dockerfile unless it says otherwise."""
LABELS = frozenset({"description", "isArchived", "tags", "properties"})
PLACE = frozenset({"resourceGroupName", "workspaceName", "name"})


class Containers(ResourceKind):
    """The container that all versions of one asset lie in."""

    names = ASSET
    tracked = False

    def __init__(self, word: str, noun: str, args: str) -> None:
        self.type = f"{ML}/workspaces/{word}"  # type: ignore[misc]
        self.noun = noun  # type: ignore[misc]
        self.schema = Schema("machinelearningservices", args, PLACE, envelope=frozenset(), wrapped=True)  # type: ignore[misc]

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The newest version, and the number that a client gives to one without a version: clients count by it."""
        names = [row.name for row in context.store.resources.under(resource.key, f"{self.type}/versions")]
        following = str(max((int(name) for name in names if name.isdecimal()), default=0) + 1)
        return {"nextVersion": following, **({"latestVersion": names[-1]} if names else {})}

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """Those that are not archived, unless the others or all are asked for (``listViewType``)."""
        return tuple(row for row in super().select(context, path, query) if _seen(query, archived=_archived(row)))


class Versions(ResourceKind):
    """One version of an asset: a second PUT must say the same, but for its labels."""

    names = ASSET
    tracked = False
    makes_parent = True

    def check_same(self, body: Body, before: ResourceRow, noun: str, path_name: str) -> None:
        """Refuses to change what is registered."""
        old, new = before.body["properties"], body["properties"]
        if _fixed(old) != _fixed(new):
            message = f"The specified {noun} {path_name} is already registered and cannot be changed."
            raise Refused(409, "UserError", message)

    def take_address(self, context: KindContext, path: ArmPath, body: Body, key: str) -> None:
        """Writes an address among a job's files as that of the files themselves."""
        workspace = "/".join(path.text.split("/")[:9])
        if uri := body["properties"].get(key):
            body["properties"][key] = pipeline.registered_address(context.store, workspace, uri)

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """Only the labels are taken over."""
        labels = {key: value for key, value in body["properties"].items() if key in LABELS}
        return {**before.body, "properties": {**before.body["properties"], **labels}}

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults."""
        del context, path
        defaults: Body = {"isAnonymous": False, "isArchived": False, "tags": {}, "properties": {}}
        return {**body, "properties": {**defaults, **body["properties"]}}

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
        del context, resource
        return {"provisioningState": "Succeeded"}


class CodeVersions(Versions):
    """Code versions: uploaded folders."""

    type = f"{ML}/workspaces/codes/versions"
    noun = "a code version"
    actions = ("startPendingUpload",)
    schema = Schema(
        "machinelearningservices", "CodeVersionArgs", PLACE | {"version"}, envelope=frozenset(), wrapped=True
    )

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The address must be a folder that holds something."""
        properties = body["properties"]
        if before is not None:
            self.check_same(body, before, "code", f"{path.names[-2]}:{path.name}")
            return
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
        workspace = path.parent.rsplit("/", 2)[0].lower() + "/"
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
        account = _account(context, path)
        container = context.store.blobs.make_container(account, f"code-{uuid.uuid4()}").name
        uri = f"{context.base}/blob/{account}/{container}"
        credential = {"credentialType": "SAS", "sasUri": f"{uri}?{grant(context.key, account, container, 'racwl')}"}
        reference = {"blobUri": uri, "storageAccountArmId": _account_id(context, path), "credential": credential}
        return Reply(
            200,
            {
                "pendingUploadId": str(uuid.uuid4()),
                "pendingUploadType": kind,
                "blobReferenceForConsumption": reference,
            },
        )


class EnvironmentVersions(Versions):
    """Environment versions: an image, with or without packages on top."""

    type = f"{ML}/workspaces/environments/versions"
    noun = "an environment version"
    schema = Schema(
        "machinelearningservices", "EnvironmentVersionArgs", PLACE | {"version"}, envelope=frozenset(), wrapped=True
    )

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """It needs something to run in."""
        del context
        properties = body["properties"]
        if before is not None:
            self.check_same(body, before, "environment", f"{path.names[-2]}:{path.name}")
        elif not properties.get("image") and not properties.get("build"):
            raise invalid("properties", "an environment needs either 'image' or 'build'.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults."""
        filled = super().fill(context, path, body)
        defaults = {"osType": "Linux", "environmentType": "UserCreated", "autoRebuild": "Disabled"}
        build = filled["properties"].get("build")
        built = {"build": {"dockerfilePath": DOCKERFILE, **build}} if build else {}
        return {**filled, "properties": {**defaults, **filled["properties"], **built}}


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
    defaults: Body = {"osType": "Linux", "environmentType": "UserCreated", "autoRebuild": "Disabled"}
    defaults |= {"isAnonymous": False, "flavors": {}}
    if build := properties.get("build"):
        properties = {**properties, "build": {"dockerfilePath": DOCKERFILE, **build}}
    return {
        key: value
        for key, value in properties.items()
        if key not in LABELS and value is not None and defaults.get(key) != value
    }


def _workspace(context: KindContext, path: ArmPath) -> ResourceRow:
    words = path.text.split("/")
    found = context.store.resources.get("/".join(words[:9]))
    if found is None:
        message = f"The workspace of '{path.text}' could not be found."
        raise Refused(404, "ParentResourceNotFound", message)
    return found


def _account_id(context: KindContext, path: ArmPath) -> str:
    return str(_workspace(context, path).body["properties"]["storageAccount"])


def _account(context: KindContext, path: ArmPath) -> str:
    return _account_id(context, path).rsplit("/", 1)[-1]


def _holds_account(context: KindContext, path: ArmPath, account: str) -> bool:
    # The workspace's own account; the default datastores lie in it too.
    return account == _account(context, path) or account in {
        row.body["properties"]["accountName"]
        for row in context.store.resources.under(_workspace(context, path).key, workspaces.DATASTORES.type)
    }


CODES = Containers("codes", "a code asset", "CodeContainerArgs")
CODE_VERSIONS = CodeVersions()
ENVIRONMENTS = Containers("environments", "an environment", "EnvironmentContainerArgs")
ENVIRONMENT_VERSIONS = EnvironmentVersions()


DEFAULT_VERSION = "azureml_default"
"""Under this name azure-ai-ml asks for a component without a version: the newest one that is not archived."""


class ComponentVersions(Versions):
    """Component versions: a command, a parallel task or a pipeline, with declared inputs and outputs."""

    type = f"{ML}/workspaces/components/versions"
    noun = "a component version"
    schema = Schema(
        "machinelearningservices", "ComponentVersionArgs", PLACE | {"version"}, envelope=frozenset(), wrapped=True
    )

    def meant(self, context: KindContext, path: ArmPath) -> str:
        """The default version's own id, where it is asked for by its other name."""
        if path.name.lower() != DEFAULT_VERSION:
            return path.text
        rows = context.store.resources.under(path.parent, self.type)
        active = [row for row in rows if not row.body["properties"].get("isArchived")]
        return active[-1].id if active else path.text

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """It has a specification; what that runs in must be there when a job is made of it."""
        if before is not None:
            self.check_same(body, before, "component", f"{path.names[-2]}:{path.name}")
            return
        where = "properties.componentSpec"
        if body["properties"].get("componentSpec") is None:
            raise invalid(where, "the required property 'componentSpec' of a component version is missing.")
        pipeline_body.check(body["properties"]["componentSpec"], where)
        for name, step in (body["properties"]["componentSpec"].get("jobs") or {}).items():
            # They come first, so that no component can be a step of itself.
            if isinstance(step, dict) and isinstance(step.get("componentId"), str):
                pipeline_body.find(context.store, step["componentId"], f"{where}.jobs.{name}")


CONTAINERS = Containers("components", "a component", "ComponentContainerArgs")
VERSIONS = ComponentVersions()


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
    schema = Schema(
        "machinelearningservices", "DataVersionArgs", PLACE | {"version"}, envelope=frozenset(), wrapped=True
    )

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """It has an address; one among a job's files is that of the files themselves."""
        self.take_address(context, path, body, "dataUri")
        if before is not None:
            self.check_same(body, before, "data", f"{path.names[-2]}:{path.name}")
        elif not body["properties"]["dataUri"]:
            raise invalid("properties.dataUri", "the required property is empty.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Nothing more: a data version has no provisioning state."""
        del context, resource
        return {}


DATA_CONTAINERS = DataContainers("data", "a data asset", "DataContainerArgs")
DATA_VERSIONS = DataVersions()


class ModelVersions(Versions):
    """Model versions: where the files lie and what wrote them."""

    type = f"{ML}/workspaces/models/versions"
    noun = "a model version"
    schema = Schema(
        "machinelearningservices", "ModelVersionArgs", PLACE | {"version"}, envelope=frozenset(), wrapped=True
    )

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """It has an address; one among a job's files is that of the files themselves."""
        self.take_address(context, path, body, "modelUri")
        if before is not None:
            self.check_same(body, before, "model", f"{path.names[-2]}:{path.name}")
        elif not body["properties"].get("modelUri"):
            raise invalid("properties.modelUri", "the required property is missing.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults; clients go through the flavors of every model."""
        filled = super().fill(context, path, body)
        return {**filled, "properties": {"flavors": {}, **filled["properties"]}}


MODELS_CONTAINERS = Containers("models", "a model", "ModelContainerArgs")
MODELS_VERSIONS = ModelVersions()
