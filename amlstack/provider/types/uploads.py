"""``amlstack:code:Snapshot`` and ``amlstack:data:Upload``: files of this machine, uploaded once for each content.

Place and marks of data are azure-ai-ml's, so that both find each other's uploads: the files lie below
``LocalUpload/<hash>``, and metadata of the first of them say that all are there.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
    Services,
    Values,
    same_arm_id,
    shape_of,
)
from amlstack.provider.runs import WorkspaceMissingError
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError
from amlstack.snapshot import HASH_VERSION, Snapshot, data, scan, scan_data

if TYPE_CHECKING:
    from collections.abc import Iterator

_HASH = (re.compile(r"[0-9a-f]{64}"), "64 hex digits: the folder's content hash")
SNAPSHOT_SHAPE = shape_of(
    "amlstack:code:Snapshot",
    {
        "workspace": WORKSPACE_IN_ID,
        "hash": InputField(pattern=_HASH, in_id=True),
        "beside": InputField(default=""),
    },
)


class Snapshots:
    """Registers code under its content hash; immutable, shared by stacks, retained when deleted."""

    shape = SNAPSHOT_SHAPE

    def __init__(self, services: Services) -> None:
        self._services = services

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Hashes the folder unless the program has done so; what is wrong with the folder are failures."""
        result = SNAPSHOT_SHAPE.check(inputs, failures)
        if failures or result.get("hash") is not None or UNKNOWN in (result["path"], result.get("beside")):
            return result
        found = scan(Path(result["path"]), _beside(result))
        for finding in found.findings:
            if finding.level is Level.ERROR:
                failures.add(
                    "path", f"{finding.place + ': ' if finding.place else ''}{finding.message} [{finding.code}]"
                )
            else:
                self._services.host.warning(str(finding), call.urn)
        if found.hash:
            result["hash"] = found.hash
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another content or workspace is another snapshot; where the folder lies does not matter."""
        replaces = [name for name in ("hash",) if old.get(name) != new.get(name)]
        if not same_arm_id(old.get("workspace"), new.get("workspace")):
            replaces.append("workspace")
        return Difference(replaces=tuple(replaces))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Reuses what is registered under this content, else uploads and registers it."""
        workspace, digest = inputs.get("workspace"), inputs.get("hash")
        if not isinstance(workspace, str) or not isinstance(digest, str):
            return "", dict(inputs)  # only at preview
        code_id = f"{workspace}/codes/{digest}/versions/1"
        state = {**inputs, "codeId": code_id}
        if call.preview:
            return "", state
        try:
            snapshot = unchanged(scan(Path(inputs["path"]), _beside(inputs)), digest, f"the folder {inputs['path']}")
            state |= {"files": len(snapshot.files), "bytes": snapshot.bytes}
            if self._services.arm.get(code_id, allow=(404,)).status == 404:
                self._register(call, workspace, code_id, snapshot)
            else:
                self._services.host.status("already registered", call.urn)
        except ArmError as error:
            raise ProviderError(f"the code could not be registered: {error}") from None
        except InterruptedWaitError:
            raise ProviderError(
                "interrupted; the next `up` looks whether the code is registered, and else uploads it again",
                ErrorCode.ABORTED,
            ) from None
        return code_id, state

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Find the registered code; code that is not registered is uploaded again by the next ``up``.

        That its workspace is missing is no other answer: what is named by its content is made again without harm.
        """
        try:
            gone = self._services.arm.get(resource_id, allow=(404,)).status == 404
        except ArmError as error:
            raise ProviderError(f"the code {resource_id} could not be read: {error}") from None
        return ("", {}) if gone else (resource_id, old)

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Only where the folder lies can have changed."""
        return {**old, **new}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Retained: other stacks and old runs refer to the same content."""

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


def _beside(inputs: Values) -> tuple[Path, ...]:
    """The packages that travel along, from their folders, as on PATH separated by colons."""
    folders = inputs.get("beside")
    return tuple(Path(one) for one in folders.split(os.pathsep) if one) if isinstance(folders, str) else ()


_DATA_HASH = (re.compile(r"[0-9a-f]{64}"), "64 hex digits: the hash of the content")
_NAME = (re.compile(r"[A-Za-z0-9_]{1,255}"), "the name of a datastore: letters, digits and '_'")
UPLOAD_SHAPE = shape_of(
    "amlstack:data:Upload",
    {
        "workspace": WORKSPACE_IN_ID,
        "path": InputField(in_id=True),
        "hash": InputField(pattern=_DATA_HASH, in_id=True),
        "datastore": InputField(default="workspaceblobstore", pattern=_NAME, in_id=True),
    },
    # The address has the last part of the path, and the datastore's name.
    digests={"uri": ("path", "hash", "datastore"), "indicator": ("path", "hash")},
)
_CONFIRMED: Final = {"upload_status": "completed"}
_MARKS: Final = uuid.UUID("8f9a7a3c-6a52-4c7e-9a57-6e6d4b0f4a11")
"""Namespace of the name and version by which azure-ai-ml calls an upload: random ones there, of the content here."""


class DataUploads:
    """Uploads data under the hash of its content; immutable, shared by stacks, retained when deleted."""

    shape = UPLOAD_SHAPE

    def __init__(self, services: Services) -> None:
        self._services = services

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Hashes the data unless the program has done so; what is wrong with them are failures."""
        result = UPLOAD_SHAPE.check(inputs, failures)
        if failures or result.get("hash") is not None or result["path"] is UNKNOWN:
            return result
        found = scan_data(Path(result["path"]))
        for finding in found.findings:
            if finding.level is Level.ERROR:
                failures.add("path", str(finding))
            else:
                self._services.host.warning(str(finding), call.urn)
        if found.hash:
            result["hash"] = found.hash
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another content, name, datastore or workspace is another upload; where the data lie does not matter."""
        replaces = [name for name in ("hash", "datastore") if old.get(name) != new.get(name)]
        if not same_arm_id(old.get("workspace"), new.get("workspace")):
            replaces.append("workspace")
        if not replaces and old.get("path") != new.get("path") and _name(old) != _name(new):
            replaces.append("path")
        return Difference(replaces=tuple(replaces))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Takes what was uploaded under this content, by whichever tool, else uploads it."""
        workspace, digest, store = (inputs.get(name) for name in ("workspace", "hash", "datastore"))
        if not all(isinstance(each, str) for each in (workspace, digest, store, inputs.get("path"))):
            return "", dict(inputs)  # only at preview
        uri = f"azureml://datastores/{store}/paths/LocalUpload/{digest}/{_name(inputs)}"
        state = {**inputs, "uri": uri}
        if call.preview:
            return "", state
        with _as_answers("the data could not be uploaded"):
            found = unchanged(scan_data(Path(str(inputs["path"]))), str(digest), str(inputs["path"]))
            folder = data.folder_in_datastore(found, _name(inputs))
            indicator = f"{folder}/{data.indicator(found)}"
            state |= {"files": len(found.files), "bytes": found.bytes, "indicator": indicator}
            access = blobs.datastore_access(self._services, str(workspace), str(store))
            if self._is_there(call, access, indicator):
                self._services.host.status("already uploaded", call.urn)
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

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Only where the data lie can have changed."""
        return {**old, **new}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Retained: other stacks and old runs read the same content."""

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
def _as_answers(what: str) -> Iterator[None]:
    """Errors of Azure become answers that say what could not be done."""
    try:
        yield
    except ArmError as error:
        raise ProviderError(f"{what}: {error}") from None
    except InterruptedWaitError:
        raise ProviderError(
            "interrupted; the next `up` looks whether the data are there, and else uploads them again",
            ErrorCode.ABORTED,
        ) from None


def _name(inputs: Values) -> str:
    return data.name_of(Path(str(inputs["path"])))
