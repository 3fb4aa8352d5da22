"""The provider's resources as typed classes for Pulumi programs.

Inputs and outputs are those of ``amlstack/provider/schema.json``. Ids of what is registered are composed from names and
content, so that they are known at preview; order comes from ``depends_on``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pulumi

if TYPE_CHECKING:
    from collections.abc import Mapping

OnEdit = Literal["refuse", "cancel", "keep"]
Wait = Literal["none", "started", "completed"]


class Snapshot(pulumi.CustomResource):
    """A folder of code, uploaded once for each content and registered under its hash.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        path: The folder, absolute.
        content_hash: Its content hash when it is known already; computed otherwise.
        opts: Pulumi's own options.

    Attributes:
        code_id: ARM id of the code version, known at preview.
        hash: Content hash, 64 hex digits.
        files: How many files it holds.
        bytes: Their size together.
    """

    code_id: pulumi.Output[str]
    hash: pulumi.Output[str]
    files: pulumi.Output[int]
    bytes: pulumi.Output[int]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        path: pulumi.Input[str],
        content_hash: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "path": path, "hash": content_hash}
        super().__init__("amlstack:code:Snapshot", resource_name, {**inputs, **_OUT_SNAPSHOT}, opts)

    def translate_output_property(self, prop: str) -> str:
        """Wire name → attribute."""
        return _ATTRIBUTES.get(prop, prop)


class EnvironmentVersion(pulumi.CustomResource):
    """An environment whose version is the hash of its content.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the environment.
        body: ARM properties of the version: ``image``, ``condaFile``, …
        opts: Pulumi's own options.

    Attributes:
        environment_id: ARM id of the version, known at preview.
        version: Sixteen hex digits of the content's hash.
    """

    environment_id: pulumi.Output[str]
    version: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        body: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "name": name, "body": body}
        super().__init__("amlstack:environments:Version", resource_name, {**inputs, **_OUT_ENVIRONMENT}, opts)

    def translate_output_property(self, prop: str) -> str:
        """Wire name → attribute."""
        return _ATTRIBUTES.get(prop, prop)


class Job(pulumi.CustomResource):
    """A training run, exactly once for each identity.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the job; the run's id is this and ten hex digits of its identity.
        declaration: What the person wrote, any JSON; part of the identity.
        code_hash: Content hash of the code; part of the identity.
        body: The ARM job body, ``{"properties": {…}}``, sent as it is; no part of the identity.
        rerun: Any word; another word is another run.
        on_edit: What becomes of an active run whose declaration is edited.
        wait: How far it must come before what depends on it goes on.
        delete_history: Whether the record goes with the resource.
        opts: Pulumi's own options.

    Attributes:
        job_id: ARM id of the run, known at preview.
        status: As last seen.
        owner: ``project/stack`` that created it.
        identity: Digest of what it runs, without the owner.
        gone: The record was deleted outside; the run is not repeated.
        services: Endpoints of Studio, tracking and others.
    """

    job_id: pulumi.Output[str]
    status: pulumi.Output[str]
    owner: pulumi.Output[str]
    identity: pulumi.Output[str]
    gone: pulumi.Output[bool]
    services: pulumi.Output[Mapping[str, str]]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        declaration: pulumi.Input[Any],
        body: pulumi.Input[Mapping[str, Any]],
        code_hash: pulumi.Input[str] = "",
        rerun: pulumi.Input[str] = "",
        on_edit: pulumi.Input[OnEdit] = "refuse",
        wait: pulumi.Input[Wait] = "none",
        delete_history: pulumi.Input[bool] = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "workspace": workspace,
            "name": name,
            "declaration": declaration,
            "codeHash": code_hash,
            "rerun": rerun,
            "body": body,
            "onEdit": on_edit,
            "wait": wait,
            "deleteHistory": delete_history,
        }
        super().__init__("amlstack:jobs:Job", resource_name, {**inputs, **_OUT_JOB}, opts)

    def translate_output_property(self, prop: str) -> str:
        """Wire name → attribute."""
        return _ATTRIBUTES.get(prop, prop)


# The SDK makes an output of every property that is given, absent ones included.
_OUT_SNAPSHOT = dict.fromkeys(("codeId", "files", "bytes"))
_OUT_ENVIRONMENT = dict.fromkeys(("environmentId", "version"))
_OUT_JOB = dict.fromkeys(("jobId", "status", "owner", "identity", "gone", "services"))
_ATTRIBUTES = {
    "codeId": "code_id",
    "environmentId": "environment_id",
    "jobId": "job_id",
    "codeHash": "code_hash",
    "onEdit": "on_edit",
    "deleteHistory": "delete_history",
}
