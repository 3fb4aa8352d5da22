"""What a run refers to, registered by the provider's own resources, in the order of `infra.runs.registration`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from amlstack.provider.resource import Call
from amlstack.provider.types.code import Snapshots
from amlstack.provider.types.components import RegisteredComponents
from amlstack.provider.types.data import DataUploads
from amlstack.provider.types.data_versions import RegisteredData
from amlstack.provider.types.environments import RegisteredEnvironments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.provider.resource import Services
    from infra.contents.assets import PlannedAsset
    from infra.runs.registration import Registration
    from jobs.local_data import DataUpload

NO_RESOURCE: Final = Call(urn="")


def register(
    services: Services, workspace: str, registration: Registration, assets: Iterable[PlannedAsset] = ()
) -> None:
    """Registers code, environments, data and component versions; what is there already is taken as it is.

    Args:
        services: The provider's, with a host that takes the progress.
        workspace: ARM id of the workspace.
        registration: What the run needs.
        assets: The stack's data assets, of which those are registered that the run reads.

    Raises:
        ArmError, ProviderError: The service refused something.
    """
    there: dict[str, Any] = {"workspace": workspace}
    for part in registration.parts:
        if (code := part.code) is not None:
            beside = os.pathsep.join(map(str, part.beside))
            Snapshots(services).create(
                NO_RESOURCE, {**there, "path": str(code.root), "hash": code.hash, "beside": beside}
            )
        if (environment := part.environment) is not None:
            given = {**there, "name": environment.name, "body": environment.body}
            RegisteredEnvironments(services).create(NO_RESOURCE, given)
    for upload in registration.uploads:
        _upload(services, there, upload)
    wanted = set(registration.assets)
    for asset in assets:
        if asset.reference in wanted:
            if asset.upload is not None:
                _upload(services, there, asset.upload)
            given = {**there, "name": asset.spec.name, "version": asset.version, "body": asset.body}
            RegisteredData(services).create(NO_RESOURCE, given)
    for component in registration.components:
        given = {"name": component.name, "version": component.version, "body": dict(component.properties)}
        RegisteredComponents(services).create(NO_RESOURCE, {**there, **given})


def _upload(services: Services, there: dict[str, Any], upload: DataUpload) -> None:
    given = {**there, "path": str(upload.path), "hash": upload.content.hash, "datastore": upload.datastore}
    DataUploads(services).create(NO_RESOURCE, given)
