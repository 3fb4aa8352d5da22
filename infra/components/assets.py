"""Assets of runs, each registered once for all runs: code, data, environments, component versions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pulumi

from amlstack import resources
from amlstack.base.paths import PROJECT
from infra.components import tokens
from infra.data.datastores import named_in
from jobs.local_data import DATASTORE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from amlstack import snapshot
    from infra.components.cluster import RdmaCluster
    from infra.components.run_requirements import RunRequirements
    from infra.data.assets import PlannedAsset
    from infra.environments import RegisteredEnvironment
    from infra.names import Names
    from infra.runs.registration import Registration
    from jobs.local_data import DataUpload


@dataclass(slots=True)
class Assets:
    """The snapshots, uploads and environments that the stack has registered so far.

    Attributes:
        stack: What comes before every run.
        clusters: The stack's clusters by name.
        datastores: What comes before the use of a datastore, by its name.
    """

    stack: RunRequirements
    clusters: Mapping[str, RdmaCluster]
    datastores: Mapping[str, Sequence[pulumi.Resource]] = field(default_factory=dict)
    _snapshots: dict[str, pulumi.Resource] = field(default_factory=dict)
    _uploads: dict[str, pulumi.Resource] = field(default_factory=dict)
    _environments: dict[str, pulumi.Resource] = field(default_factory=dict)
    _data: dict[str, pulumi.Resource] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        """The stack's names and ids."""
        return self.stack.workspace.names

    def register(self, registration: Registration, parent: pulumi.Resource) -> list[pulumi.Resource]:
        """Register what comes before a run, in its order; the resources, which the run depends on.

        Args:
            registration: What the run needs.
            parent: Of its component versions.
        """
        needs: list[pulumi.Resource] = []
        for part in registration.parts:
            cluster = self.clusters.get(part.cluster or "")
            if cluster is not None and cluster.compute not in needs:
                needs += cluster.resources
            if part.code is not None:
                needs.append(self._snapshot(part.code, part.beside))
            if part.environment is not None:
                needs.append(self._environment(part.environment))
        needs += map(self._upload, registration.uploads)
        needs += (self._data[each] for each in registration.assets)
        for name in registration.datastores:
            needs += self.datastores.get(name, ())
        before = list(needs)
        versions: list[pulumi.Resource] = []
        for component in registration.components:
            version = resources.ComponentVersionResource(
                component.label,
                workspace=self.stack.workspace.workspace_id,
                name=component.name,
                version=component.version,
                body=component.properties,
                opts=pulumi.ResourceOptions(
                    parent=parent, depends_on=[*before, *(versions if component.is_pipeline else ())]
                ),
            )
            versions.append(version)
        return [*needs, *versions]

    def placed_on(self, registration: Registration) -> list[pulumi.Output[str]]:
        """Ids of what a run lives on."""
        names = dict.fromkeys(part.cluster or "" for part in registration.parts)
        below = self.stack.placed_on([self.clusters[name] for name in names if name in self.clusters])
        stores = (each for name in registration.datastores for each in self.datastores.get(name, ()))
        kept = [each for each in dict.fromkeys(stores) if each.pulumi_resource_type in tokens.HOLDS_DATA]
        return [*below, *(each.id for each in kept if isinstance(each, pulumi.CustomResource))]

    def _snapshot(self, code: snapshot.Snapshot, beside: tuple[Path, ...]) -> pulumi.Resource:
        name = " + ".join([os.path.relpath(code.root, PROJECT), *(package.name for package in beside)])
        if name not in self._snapshots:
            self._snapshots[name] = resources.SnapshotResource(
                name,
                workspace=self.stack.workspace.workspace_id,
                path=str(code.root),
                content_hash=code.hash,
                beside=os.pathsep.join(map(str, beside)) or None,
                opts=pulumi.ResourceOptions(depends_on=[self.stack.workspace.everything]),
            )
        return self._snapshots[name]

    def _upload(self, upload: DataUpload) -> pulumi.Resource:
        name = os.path.relpath(upload.path, PROJECT)
        if upload.datastore != DATASTORE:
            name = f"{name} in {upload.datastore}"
        if name not in self._uploads:
            self._uploads[name] = resources.DataUploadResource(
                name,
                workspace=self.stack.workspace.workspace_id,
                path=str(upload.path),
                content_hash=upload.content.hash,
                datastore=upload.datastore,
                opts=pulumi.ResourceOptions(
                    depends_on=[self.stack.workspace.everything, *self.datastores.get(upload.datastore, ())]
                ),
            )
        return self._uploads[name]

    def data_asset(self, asset: PlannedAsset, parent: pulumi.Resource) -> None:
        """Register a version of a data asset of the settings, after its data."""
        before = [self._upload(asset.upload)] if asset.upload is not None else []
        for name in sorted(named_in(asset.uri)):
            before += self.datastores.get(name, ())
        self._data[asset.reference] = resources.DataVersionResource(
            asset.label,
            workspace=self.stack.workspace.workspace_id,
            name=asset.spec.name,
            version=asset.version,
            body=asset.body,
            opts=pulumi.ResourceOptions(parent=parent, depends_on=[self.stack.workspace.everything, *before]),
        )

    def _environment(self, spec: RegisteredEnvironment) -> pulumi.Resource:
        key = spec.id_in(self.names)
        if key not in self._environments:
            # Adopted when it is there already, kept when the stack goes.
            self._environments[key] = resources.EnvironmentVersionResource(
                f"{spec.name}-{spec.version}",
                workspace=self.stack.workspace.workspace_id,
                name=spec.name,
                body=spec.body,
                opts=pulumi.ResourceOptions(depends_on=[self.stack.workspace.everything]),
            )
        return self._environments[key]
