"""``amlstack:code:Snapshot`` and ``amlstack:data:Upload``: files of this machine, uploaded once for each content.

Place and marks of data are azure-ai-ml's, so that both find each other's uploads: the files lie below
``LocalUpload/<hash>``, and metadata of the first of them say that all are there.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amlstack.base.credentials import scrub
from amlstack.base.findings import Level
from amlstack.provider import blobs
from amlstack.provider.arm import ArmError, InterruptedWaitError, exchange
from amlstack.provider.blobs import ContainerAccess, unchanged, upload
from amlstack.provider.resource import (
    WORKSPACE_IN_ID,
    Call,
    Difference,
    InputField,
    Resource,
    Values,
    changed_inputs,
    shape_of,
)
from amlstack.provider.runs import WorkspaceMissingError
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError
from amlstack.snapshot import HASH_VERSION, Snapshot, data, scan, scan_data

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        return Difference(replaces=changed_inputs(self.replaced_by, old, new))


class Snapshots(Uploads):
    """Registers code under its content hash."""

    shape = shape_of(
        "amlstack:code:Snapshot",
        {
            "workspace": WORKSPACE_IN_ID,
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

    shape = shape_of(
        "amlstack:data:Upload",
        {
            "workspace": WORKSPACE_IN_ID,
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
            folder = data.folder_in_datastore(found, _name(inputs))
            indicator = f"{folder}/{data.indicator(found)}"
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
    return data.name_of(Path(str(inputs["path"])))
