"""Registered once for each content: versions of environments, components and data, and uploaded files.

``amlstack:code:Snapshot`` and ``amlstack:data:Upload`` are files of this machine. Place and marks of data are
azure-ai-ml's, so that both find each other's uploads: the files lie below ``LocalUpload/<hash>``, and metadata of the
first of them say that all are there.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from amlstack.base.credentials import scrub
from amlstack.base.findings import Level
from amlstack.provider import blobs, resource
from amlstack.provider.arm import ArmError, InterruptedWaitError, exchange
from amlstack.provider.blobs import ContainerAccess, unchanged, upload
from amlstack.provider.resource import Call, Difference, InputField, InputShape, Resource, Values
from amlstack.provider.runs import WorkspaceMissingError
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError
from amlstack.run_identity import environment_version
from amlstack.snapshot import HASH_VERSION, Snapshot, scan, scan_data
from amlstack.snapshot.folder import folder_in_datastore, name_of, upload_mark


class RegisteredVersions(Resource):
    """One type of versions.

    Attributes:
        noun: What it is called in messages.
        needs: Keys of the body of which there must be one, and the sentence for a body without them.
        replaced_by: Inputs whose edit makes another version.
    """

    noun: ClassVar[str]
    needs: ClassVar[tuple[tuple[str, ...], str]]
    replaced_by: ClassVar[tuple[str, ...]]

    def place(self, call: Call, inputs: Values) -> tuple[str, str, Values]:
        """ARM id of the version, its name in messages, and the outputs, from known inputs."""
        raise NotImplementedError

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Types, and the keys that a body needs."""
        result = super().check(call, inputs, failures)
        body, (keys, sentence) = result.get("body"), self.needs
        if isinstance(body, dict) and resource.known(body) and not any(body.get(key) for key in keys):
            failures.add("body", sentence)
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another name, content or workspace is another version; what it does not cover is a label."""
        return Difference(replaces=resource.changed_inputs(self.replaced_by, old, new))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Adopts the version that exists, else registers it."""
        if not resource.known(inputs):
            return "", dict(inputs)  # only at preview
        version_id, name, outputs = self.place(call, inputs)
        state = {**inputs, **outputs}
        if call.preview:
            return "", state
        try:
            if self._is_missing(version_id):
                self._register(version_id, inputs["body"])
            else:
                self._services.host.status("already registered", call.urn)
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {name} could not be registered: {error}") from None
        return version_id, state

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Find the registered version; the next ``up`` registers one that is gone, as its workspace may be."""
        try:
            return ("", {}) if self._is_missing(resource_id) else (resource_id, old)
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {resource_id} could not be read: {error}") from None

    def _register(self, version_id: str, body: dict[str, Any]) -> None:
        arm = self._services.arm
        try:
            arm.finish(arm.put(version_id, {"properties": body}), self._services.cancelled)
        except ArmError:
            # Another deployment may have registered the same content a moment ago; then all is well.
            if self._is_missing(version_id):
                raise

    def _is_missing(self, version_id: str) -> bool:
        return self._services.arm.get(version_id, allow=(404,)).status == 404


class DeclaredVersions(RegisteredVersions):
    """Versions whose name and version are both declared.

    Attributes:
        folder: What ARM calls their collection in a workspace: ``components``.
        output: Output that has the ARM id.
    """

    replaced_by = ("name", "version")
    folder: ClassVar[str]
    output: ClassVar[str]

    def place(self, call: Call, inputs: Values) -> tuple[str, str, Values]:  # noqa: ARG002
        """Under the name and version that are declared."""
        name, version = inputs["name"], inputs["version"]
        version_id = f"{inputs['workspace']}/{self.folder}/{name}/versions/{version}"
        return version_id, f"{name}:{version}", {self.output: version_id}


def declared_shape(token: str, pattern: tuple[re.Pattern[str], str]) -> InputShape:
    """Inputs of such a type.

    Args:
        token: The type.
        pattern: What its name and its version must look like.
    """
    named = InputField(pattern=pattern, in_id=True)
    return resource.shape_of(token, {"workspace": resource.WORKSPACE_IN_ID, "name": named, "version": named})


_ENVIRONMENT_NAME = (
    re.compile(r"(?!AzureML)[A-Za-z0-9][A-Za-z0-9_.-]{0,254}"),
    "letters, digits, '-', '_' and '.', and may not begin with AzureML, which is kept for curated environments",
)


class RegisteredEnvironments(RegisteredVersions):
    """Environments under the hash of their content: an image or a build, in the words of ARM."""

    shape = resource.shape_of(
        "amlstack:environments:Version",
        {"workspace": resource.WORKSPACE_IN_ID, "name": InputField(pattern=_ENVIRONMENT_NAME, in_id=True)},
        digests={"version": ("body",)},
    )
    noun = "environment"
    needs = ("image", "build"), "an environment names an image or a build"
    replaced_by = ("name", "body")

    def place(self, call: Call, inputs: Values) -> tuple[str, str, Values]:
        """Under the hash of the body."""
        version = environment_version(call.hashable(inputs, "body"))
        environment_id = f"{inputs['workspace']}/environments/{inputs['name']}/versions/{version}"
        return environment_id, str(inputs["name"]), {"environmentId": environment_id, "version": version}


_ANONYMOUS: Final = "azureml_anonymous"
"""A PUT of a version of this component answers with the id of another version (azure-sdk-assets, 2026-03-27)."""


class RegisteredComponents(DeclaredVersions):
    """Component versions; their version is made from their content, so that any deployment may register it."""

    shape = declared_shape(
        "amlstack:components:Version",
        (re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"), "letters, digits, '-', '_' and '.'"),
    )
    noun = "component"
    needs = ("componentSpec",), "a component has a componentSpec"
    folder = "components"
    output = "componentId"

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Also that the service leaves the version as it is declared."""
        if str(inputs.get("name")).lower() == _ANONYMOUS:
            failures.add("name", f"Azure chooses the versions of {_ANONYMOUS} itself; take another name")
        return super().check(call, inputs, failures)


_DATA_NAME = (
    re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}"),
    "letters, digits, '-', '_' and '.', a letter or digit first",
)
_LABELS: Final = frozenset({"description", "tags", "properties", "isArchived"})
_SERVICE_S: Final = frozenset(
    {"provisioningState", "isAnonymous", "stage", "autoDeleteSetting", "intellectualProperty"}
)
"""The keys that an answer has beside the declared ones."""
_LONG: Final = re.compile(
    r"azureml://(?P<workspace>subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+)/datastores/",
    re.IGNORECASE,
)


class RegisteredData(DeclaredVersions):
    """Versions of data assets: adopted where they say the same, kept when they are not declared any more."""

    shape = declared_shape("amlstack:data:Version", _DATA_NAME)
    noun = "data asset"
    needs = ("dataUri",), "a data asset has a dataUri"
    folder = "data"
    output = "dataId"

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:
        """Another name, version or workspace is another version; labels are edited; anything else is refused.

        Raises:
            ProviderError: A version that is registered would say something else about its data.
        """
        found = super().diff(call, resource_id, old_inputs, old, new)
        before, after = old.get("body"), new.get("body")
        if found.replaces or before == after or not isinstance(before, dict) or not isinstance(after, dict):
            return found
        if resource.known(before, after) and _fixed(before, resource_id) != _fixed(after, resource_id):
            raise ProviderError(_changed(f"{new['name']}:{new['version']}", before, after, resource_id))
        return Difference(updates=("body",))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Adopts the version that exists and says the same, with the labels that are declared; else registers it."""
        if not resource.known(inputs) or call.preview:
            return super().create(call, inputs)
        data_id, name, outputs = self.place(call, inputs)
        try:
            answer = self._services.arm.get(data_id, allow=(404,))
            if answer.status == 404:
                self._register(data_id, inputs["body"])
                return data_id, {**inputs, **outputs}
            there, wanted = dict(answer.body["properties"]), dict(inputs["body"])
            if _fixed(there, data_id) != _fixed({**_undeclared(there, wanted), **wanted}, data_id):
                raise ProviderError(_changed(name, there, wanted, data_id))
            self._services.host.status("already registered", call.urn)
            if there.get("isArchived") or any(there.get(key) != wanted.get(key) for key in _LABELS & wanted.keys()):
                self._label(data_id, there, wanted)
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {name} could not be registered: {error}") from None
        return data_id, {**inputs, **outputs}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:
        """Its labels."""
        state = {**old, **new}
        if call.preview or old.get("body") == new.get("body"):
            return state
        try:
            there = self._services.arm.get(resource_id).body["properties"]
            self._label(resource_id, there, new["body"])
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {resource_id} could not be changed: {error}") from None
        return state

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:  # noqa: ARG002
        """Kept, and its data with it: runs refer to it."""
        name, version = old.get("name"), old.get("version")
        self._services.host.info(
            f"{name}:{version} stays as long as its workspace, and its data stay where they are: runs may refer to it. "
            f"`az ml data archive --name {name} --version {version}` hides it from lists",
            call.urn,
        )

    def _label(self, data_id: str, there: dict[str, Any], wanted: dict[str, Any]) -> None:
        """A version as it is, with the labels that are declared, back in the lists."""
        body = {key: value for key, value in there.items() if key not in _SERVICE_S and value is not None}
        # A description that is left out of a PUT may stay.
        bare = {"description": "", "tags": {}} if there.get("description") else {"tags": {}}
        labels = {**bare, **{key: value for key, value in wanted.items() if key in _LABELS}}
        arm = self._services.arm
        arm.finish(arm.put(data_id, {"properties": {**body, **labels, "isArchived": False}}), self._services.cancelled)


def _undeclared(there: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The properties of a version that the service knows and the declaration leaves open."""
    return {key: value for key, value in there.items() if key == "referencedUris" and key not in wanted}


def _fixed(body: dict[str, Any], data_id: str) -> dict[str, Any]:
    """The unchanging part of a version: type and address, the latter without the workspace that it lies in."""
    fixed = {key: value for key, value in body.items() if key not in _LABELS | _SERVICE_S and value is not None}
    return {**fixed, "dataUri": _short(str(fixed.get("dataUri")), data_id)}


def _short(uri: str, data_id: str) -> str:
    """Azure answers with the long form of an address in the version's own workspace."""
    found = _LONG.match(uri)
    if found is None:
        return uri.rstrip("/")
    own, named = (
        re.sub("/providers/[^/]+", "", each) for each in ("/".join(data_id.split("/")[1:9]), found["workspace"])
    )
    short = f"azureml://datastores/{uri[found.end() :]}" if resource.same_arm_id(own, named) else uri
    return short.rstrip("/")


def _changed(name: str, before: dict[str, Any], after: dict[str, Any], data_id: str) -> str:
    one, other = _fixed(before, data_id), _fixed(after, data_id)
    keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    different = ", ".join(f"{key} {one.get(key)!r} and not {other.get(key)!r}" for key in keys)
    return f"{name} is registered with {different}, and a registered version never changes. Write another `version`"


_HASH = (re.compile(r"[0-9a-f]{64}"), "64 hex digits: the hash of the content")
_NAME = (re.compile(r"[A-Za-z0-9_]{1,255}"), "the name of a datastore: letters, digits and '_'")
_CONFIRMED: Final = {"upload_status": "completed"}
_MARKS: Final = uuid.UUID("8f9a7a3c-6a52-4c7e-9a57-6e6d4b0f4a11")
"""Namespace of the name and version by which azure-ai-ml calls an upload: random ones there, of the content here."""


class Uploads(Resource):
    """Files under the hash of their content; immutable, shared by stacks, retained when deleted.

    Attributes:
        replaced_by: Inputs whose edit makes another upload.
    """

    replaced_by: ClassVar[tuple[str, ...]]

    @abstractmethod
    def scanned(self, inputs: Values) -> Snapshot:
        """The files as they are now."""

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Hashes the files unless the program has done so; what is wrong with them are failures."""
        result = super().check(call, inputs, failures)
        if failures or result.get("hash") is not None or UNKNOWN in (result["path"], result.get("beside")):
            return result
        found = self.scanned(result)
        for finding in found.findings:
            if finding.level is Level.ERROR:
                failures.add("path", str(finding))
            else:
                self._host.warning(str(finding), call.urn)
        if found.hash:
            result["hash"] = found.hash
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another content or workspace is another upload; where the files lie does not matter."""
        return Difference(replaces=resource.changed_inputs(self.replaced_by, old, new))


class Snapshots(Uploads):
    """Registers code under its content hash."""

    shape = resource.shape_of(
        "amlstack:code:Snapshot",
        {
            "workspace": resource.WORKSPACE_IN_ID,
            "hash": InputField(pattern=_HASH, in_id=True),
            "beside": InputField(default=""),
        },
    )
    replaced_by = ("hash",)

    def scanned(self, inputs: Values) -> Snapshot:
        """The folder, with the packages that travel along, from their folders, as on PATH separated by colons."""
        beside = str(inputs.get("beside") or "").split(os.pathsep)
        return scan(Path(inputs["path"]), tuple(Path(one) for one in beside if one))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Reuses what is registered under this content, else uploads and registers it."""
        workspace, digest = inputs.get("workspace"), inputs.get("hash")
        if not isinstance(workspace, str) or not isinstance(digest, str):
            return "", dict(inputs)  # only at preview
        code_id = f"{workspace}/codes/{digest}/versions/1"
        state = {**inputs, "codeId": code_id}
        if call.preview:
            return "", state
        with _as_answers("the code could not be registered", "the code is registered, and else uploads it again"):
            snapshot = unchanged(self.scanned(inputs), digest, f"the folder {inputs['path']}")
            state |= {"files": len(snapshot.files), "bytes": snapshot.bytes}
            if self._services.arm.get(code_id, allow=(404,)).status == 404:
                self._register(call, workspace, code_id, snapshot)
            else:
                self._host.status("already registered", call.urn)
        return code_id, state

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Find the registered code; code that is not registered is uploaded again by the next ``up``.

        That its workspace is missing is no other answer: what is named by its content is made again without harm.
        """
        with _as_answers(f"the code {resource_id} could not be read"):
            gone = self._services.arm.get(resource_id, allow=(404,)).status == 404
        return ("", {}) if gone else (resource_id, old)

    def _register(self, call: Call, workspace: str, code_id: str, snapshot: Snapshot) -> None:
        uri = self._elsewhere(workspace, snapshot.hash) or self._upload(call, code_id, snapshot)
        marks = {"hash_sha256": snapshot.hash, "hash_version": HASH_VERSION}
        body = {"properties": {"codeUri": uri, "isAnonymous": True, "properties": marks}}
        try:
            self._services.arm.put(code_id, body)
        except ArmError:
            # Another deployment may have registered the same content a moment ago; then all is well.
            if self._services.arm.get(code_id, allow=(404,)).status == 404:
                raise

    def _elsewhere(self, workspace: str, digest: str) -> str | None:
        """The address at which azure-ai-ml has uploaded the same content under a name of its own, if it has."""
        query = {"hash": digest, "hashVersion": HASH_VERSION}
        answer = self._services.arm.get(f"{workspace}/codes/{digest}/versions", query=query, allow=(404,))
        for version in answer.body.get("value") or ():
            properties = version.get("properties") or {}
            marks = properties.get("properties") or {}
            if properties.get("codeUri") and marks.get("hash_sha256", digest) == digest:
                return str(properties["codeUri"])
        return None

    def _upload(self, call: Call, code_id: str, snapshot: Snapshot) -> str:
        """Uploads into the container that the workspace offers; returns the folder's URI, without its signature."""
        request = {"pendingUploadType": "TemporaryBlobReference"}
        answer = self._services.arm.post(f"{code_id}/startPendingUpload", request)
        reference = answer.body.get("blobReferenceForConsumption") or {}
        signed, uri = (reference.get("credential") or {}).get("sasUri"), reference.get("blobUri")
        if not signed or not uri:
            raise ProviderError("the workspace offered no place for the upload (startPendingUpload without a SAS)")
        folder = snapshot.root.name or "code"
        container = ContainerAccess(str(uri).rstrip("/"), str(signed).partition("?")[2])
        upload(self._services, call, container, folder, snapshot)
        return f"{container.url}/{folder}"


class DataUploads(Uploads):
    """Uploads data under the hash of their content."""

    shape = resource.shape_of(
        "amlstack:data:Upload",
        {
            "workspace": resource.WORKSPACE_IN_ID,
            "path": InputField(in_id=True),
            "hash": InputField(pattern=_HASH, in_id=True),
            "datastore": InputField(default="workspaceblobstore", pattern=_NAME, in_id=True),
        },
        # The address has the last part of the path, and the datastore's name.
        digests={"uri": ("path", "hash", "datastore"), "indicator": ("path", "hash")},
    )
    replaced_by = ("hash", "datastore")

    def scanned(self, inputs: Values) -> Snapshot:
        """The file, or the folder."""
        return scan_data(Path(str(inputs["path"])))

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:
        """Another content, name, datastore or workspace is another upload."""
        found = super().diff(call, resource_id, old_inputs, old, new)
        if not found.replaces and old.get("path") != new.get("path") and _name(old) != _name(new):
            return Difference(replaces=("path",))
        return found

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Takes what was uploaded under this content, by whichever tool, else uploads it."""
        workspace, digest, store = (inputs.get(name) for name in ("workspace", "hash", "datastore"))
        if not all(isinstance(each, str) for each in (workspace, digest, store, inputs.get("path"))):
            return "", dict(inputs)  # only at preview
        uri = f"azureml://datastores/{store}/paths/LocalUpload/{digest}/{_name(inputs)}"
        state = {**inputs, "uri": uri}
        if call.preview:
            return "", state
        with _as_answers("the data could not be uploaded", "the data are there, and else uploads them again"):
            found = unchanged(self.scanned(inputs), str(digest), str(inputs["path"]))
            folder = folder_in_datastore(found, _name(inputs))
            indicator = f"{folder}/{upload_mark(found)}"
            state |= {"files": len(found.files), "bytes": found.bytes, "indicator": indicator}
            access = blobs.datastore_access(self._services, str(workspace), str(store))
            if self._is_there(call, access, indicator):
                self._host.status("already uploaded", call.urn)
            else:
                upload(self._services, call, access, folder, found)
                self._confirm(call, access, indicator, str(digest))
        return f"{workspace}/datastores/{store}/paths/LocalUpload/{digest}/{_name(inputs)}", state

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Find the uploaded data; the next ``up`` uploads again what is gone, and what has no record.

        That its workspace is missing is no other answer: what is named by its content is made again without harm.
        """
        if not old.get("indicator"):
            return "", {}
        with _as_answers(f"the upload {resource_id} could not be read"):
            try:
                access = blobs.datastore_access(self._services, str(old["workspace"]), str(old["datastore"]))
            except WorkspaceMissingError:
                return "", {}
            return (resource_id, old) if self._is_there(call, access, str(old["indicator"])) else ("", {})

    def _is_there(self, call: Call, access: blobs.ContainerAccess, indicator: str) -> bool:
        """True where an upload was completed: a partial one has no mark."""
        exchange.load_azure_core()
        from azure.core.exceptions import ResourceNotFoundError  # noqa: PLC0415 - as in `client`

        def look(container: Any) -> bool:
            try:
                marks = container.get_blob_client(indicator).get_blob_properties().metadata or {}
            except ResourceNotFoundError:
                return False
            return marks.items() >= _CONFIRMED.items()

        return bool(self._asked(call, access, look))

    def _confirm(self, call: Call, access: blobs.ContainerAccess, indicator: str, digest: str) -> None:
        marks = {name: str(uuid.uuid5(_MARKS, f"{name} {digest}")) for name in ("name", "version")}
        self._asked(
            call, access, lambda container: container.get_blob_client(indicator).set_blob_metadata(_CONFIRMED | marks)
        )

    def _asked(self, call: Call, access: blobs.ContainerAccess, ask: Any) -> Any:
        exchange.load_azure_core()
        from azure.core.exceptions import AzureError  # noqa: PLC0415 - as in `client`

        try:
            with blobs.open_container(self._services, call, access) as container:
                return ask(container)
        except AzureError as error:
            remedy = "" if access.is_signed else blobs.remedy_of(error)
            raise ProviderError(
                f"the datastore does not answer: {scrub(str(error))[:500]}{remedy}", ErrorCode.UNAVAILABLE
            ) from None


@contextlib.contextmanager
def _as_answers(what: str, again: str = "") -> Iterator[None]:
    """Errors of Azure become answers that say what could not be done, and what the next ``up`` does after an end."""
    try:
        yield
    except ArmError as error:
        raise ProviderError(f"{what}: {error}") from None
    except InterruptedWaitError:
        if not again:
            raise
        raise ProviderError(f"interrupted; the next `up` looks whether {again}", ErrorCode.ABORTED) from None


def _name(inputs: Values) -> str:
    return name_of(Path(str(inputs["path"])))
