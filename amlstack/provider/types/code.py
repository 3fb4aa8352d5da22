"""``amlstack:code:Snapshot``: a folder of code, uploaded once for each content."""

from __future__ import annotations

import os
import re
from pathlib import Path

from amlstack.base.findings import Level
from amlstack.provider.arm import ArmError, InterruptedWaitError
from amlstack.provider.blobs import ContainerAccess, upload
from amlstack.provider.blobs.transfer import unchanged
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
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError
from amlstack.snapshot import HASH_VERSION, Snapshot, scan

_HASH = (re.compile(r"[0-9a-f]{64}"), "64 hex digits: the folder's content hash")
SHAPE = shape_of(
    "amlstack:code:Snapshot",
    {
        "workspace": WORKSPACE_IN_ID,
        "hash": InputField(pattern=_HASH, in_id=True),
        "beside": InputField(default=""),
    },
)


class Snapshots:
    """Registers code under its content hash; immutable, shared by stacks, retained when deleted."""

    shape = SHAPE

    def __init__(self, services: Services) -> None:
        self._services = services

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Hashes the folder unless the program has done so; what is wrong with the folder are failures."""
        result = SHAPE.check(inputs, failures)
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
