"""What runs refer to: code, data, environments, components, each registered once for each content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.resources.base import ProviderResource, with_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pulumi


class SnapshotResource(ProviderResource):
    """A folder of code, uploaded once for each content and registered under its hash.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        path: The folder, absolute.
        content_hash: Its content hash when it is known already; computed otherwise.
        beside: Folders of Python packages that travel along under their own names, separated as on PATH.
        opts: Pulumi's own options.

    Attributes:
        code_id: ARM id of the code version, known at preview.
        hash: Content hash, 64 hex digits.
        files: How many files it holds.
        bytes: Their size together.
    """

    if TYPE_CHECKING:
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
        beside: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "path": path, "hash": content_hash, "beside": beside}
        super().__init__(
            "amlstack:code:Snapshot", resource_name, with_outputs(inputs, "code_id", "files", "bytes"), opts
        )


class DataUploadResource(ProviderResource):
    """A file or folder of this machine in a datastore, below the hash of its content, as azure-ai-ml uploads inputs.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        path: The file or folder, absolute.
        content_hash: Its hash when it is known already; computed otherwise.
        datastore: Name of the datastore.
        opts: Pulumi's own options.

    Attributes:
        uri: Where a job reads it, without a slash at its end, known at preview.
        hash: Content hash, 64 hex digits.
        files: How many files it holds.
        bytes: Their size together.
    """

    uri: pulumi.Output[str]
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
        datastore: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "path": path, "hash": content_hash, "datastore": datastore}
        outputs = with_outputs(inputs, "uri", "indicator", "files", "bytes")
        super().__init__("amlstack:data:Upload", resource_name, outputs, opts)


class DataVersionResource(ProviderResource):
    """A version of a data asset; what it says about its data never changes.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the data asset.
        version: Version.
        body: ARM properties of the version: ``dataType``, ``dataUri``, ``description``, ``tags``, …
        opts: Pulumi's own options.

    Attributes:
        data_id: ARM id of the version, known at preview.
    """

    if TYPE_CHECKING:
        data_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        version: pulumi.Input[str],
        body: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "name": name, "version": version, "body": body}
        super().__init__("amlstack:data:Version", resource_name, with_outputs(inputs, "data_id"), opts)


class EnvironmentVersionResource(ProviderResource):
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

    if TYPE_CHECKING:
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
        super().__init__(
            "amlstack:environments:Version", resource_name, with_outputs(inputs, "environment_id", "version"), opts
        )


class ComponentVersionResource(ProviderResource):
    """A component of a pipeline's own file, registered under a version made from its content.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the component.
        version: Version, made from its content.
        body: ARM properties of the version: ``componentSpec``, …
        opts: Pulumi's own options.

    Attributes:
        component_id: ARM id of the version, known at preview.
    """

    if TYPE_CHECKING:
        component_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        version: pulumi.Input[str],
        body: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "name": name, "version": version, "body": body}
        super().__init__("amlstack:components:Version", resource_name, with_outputs(inputs, "component_id"), opts)
