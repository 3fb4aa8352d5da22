"""A job on the sandbox without a stack: the same body, the same upload, the same runner, no engine in between."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jobs
from amlstack import snapshot
from amlstack.provider.arm import API_VERSION
from amlstack.provider.resource import Call, Services
from amlstack.provider.runs import Runs
from amlstack.provider.types.code import Snapshots
from amlstack.provider.types.components import ComponentVersions
from amlstack.provider.types.environments import EnvironmentVersions
from amlstack.rpc import Host
from infra.cluster import properties
from infra.environments import RegisteredEnvironment
from infra.names import Names
from infra.settings import Cluster, Identity, Nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.base.findings import Finding
    from amlstack.provider.arm import ArmClient
    from amlstack.sandbox.server.daemon import Endpoint

GROUP = "rehearsal"
_HERE = Call(urn="")


_VERSIONS = {"": "2024-03-01", "Microsoft.Storage": "2024-01-01", "Microsoft.KeyVault": "2024-11-01"}
"""Api-versions by namespace, as azure-native speaks to them; that of resource groups first."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The workspace in which jobs are rehearsed.

    Attributes:
        arm: A client of the sandbox's resource manager.
        names: Names and ids in the workspace.
        tenant: The directory that the key vault belongs to.
    """

    arm: ArmClient
    names: Names
    tenant: str

    @classmethod
    def on(cls, endpoint: Endpoint, arm: ArmClient) -> Rehearsal:
        """The rehearsal workspace of a running sandbox."""
        return cls(arm, Names(endpoint.subscription, GROUP, GROUP), endpoint.tenant)

    def prepare(self, plan: jobs.Plan) -> None:
        """Make the workspace and the job's cluster, unless they are there.

        Raises:
            ArmError: The sandbox refused something.
        """
        self.prepare_all((plan,))

    def prepare_all(self, plans: Iterable[jobs.Plan], location: str = "westeurope") -> None:
        """Make the workspace and the clusters of several jobs, each as large as the largest of its jobs wants it.

        Raises:
            ArmError: The sandbox refused something.
        """
        names = self.names
        self._make(names.group_id, {"location": location})
        storage = names.id_of("Microsoft.Storage/storageAccounts", names.storage)
        vault = names.id_of("Microsoft.KeyVault/vaults", names.key_vault)
        self._make(
            storage,
            {
                "location": location,
                "kind": "StorageV2",
                "sku": {"name": "Standard_LRS"},
                "properties": {"allowSharedKeyAccess": False},
            },
        )
        self._make(
            vault,
            {
                "location": location,
                "properties": {
                    "tenantId": self.tenant,
                    "sku": {"family": "A", "name": "standard"},
                    "enableRbacAuthorization": True,
                },
            },
        )
        self._make(
            names.workspace_id,
            {
                "location": location,
                "identity": {"type": "SystemAssigned"},
                "properties": {"storageAccount": storage, "keyVault": vault},
            },
        )
        for plan in sorted(plans, key=_nodes):
            if plan.target.cluster:
                self._make(names.cluster_id(plan.target.cluster), self._cluster(plan, location))

    def submit(self, name: str, plan: jobs.Plan, code: snapshot.Snapshot | None) -> str:
        """Upload the code, register the environment, submit the job under an id of its own.

        Returns:
            The job's ARM id.

        Raises:
            ArmError, ProviderError: The sandbox refused something.
        """
        body = jobs.body(plan.enriched, self.registered(plan, code))
        job_id = f"{self.names.workspace_id}/jobs/{name}-{os.urandom(3).hex()}"
        self.arm.put(job_id, body)
        return job_id

    def registered(self, plan: jobs.Plan, code: snapshot.Snapshot | None) -> jobs.Refs:
        """Upload the code and register the environment of a job; where they are.

        Raises:
            ArmError, ProviderError: The sandbox refused something.
        """
        services = self._services()
        workspace, code_id, environment_id = self.names.workspace_id, None, None
        inputs: dict[str, Any]
        if code is not None:
            beside = os.pathsep.join(map(str, plan.beside))
            inputs = {"workspace": workspace, "path": str(code.root), "hash": code.hash, "beside": beside}
            code_id, _ = Snapshots(services).create(_HERE, inputs)
        if isinstance(plan.enriched.environment, jobs.Environment):
            registered = RegisteredEnvironment.of(plan.enriched.environment, plan.base)
            inputs = {"workspace": workspace, "name": registered.name, "body": registered.body}
            environment_id, _ = EnvironmentVersions(services).create(_HERE, inputs)
        return jobs.Refs(workspace, code_id, environment_id)

    def component(self, component_id: str, body: dict[str, Any]) -> None:
        """Register a component version, unless it is there.

        Raises:
            ArmError, ProviderError: The sandbox refused something.
        """
        *_, name, _, version = component_id.split("/")
        inputs = {"workspace": self.names.workspace_id, "name": name, "version": version, "body": body["properties"]}
        ComponentVersions(self._services()).create(_HERE, inputs)

    def _services(self) -> Services:
        return Services(self.arm, Runs(self.arm), Host(), threading.Event())

    def _cluster(self, plan: jobs.Plan, location: str) -> dict[str, Any]:
        nodes = Nodes.model_construct(min=0, max=_nodes(plan), idle="PT2M")
        # Not validated: the job may name a cluster as no stack could, and of any size.
        spec = Cluster.model_construct(
            name=plan.target.cluster or "", size=plan.target.size or "", nodes=nodes, identity=Identity(type="none")
        )
        return properties(spec, location=location, tags={})

    def _make(self, resource: str, body: dict[str, Any]) -> None:
        # Always a PUT: an equal one changes nothing, and a cluster of that name may have to grow.
        kind = resource.rpartition("/providers/")[2].split("/", 1)[0] if "/providers/" in resource else ""
        self.arm.finish(self.arm.put(resource, body, _VERSIONS.get(kind, API_VERSION)))


def _nodes(plan: jobs.Plan) -> int:
    """The largest node count of the cluster that a plan is for."""
    return plan.target.max_nodes or plan.nodes


def scanned(plan: jobs.Plan) -> tuple[snapshot.Snapshot | None, tuple[Finding, ...]]:
    """The job's code folder as it would be uploaded, and what is wrong with it."""
    if plan.code is None or not plan.code.is_dir():
        return None, ()
    found = snapshot.scan(plan.code, plan.beside)
    return found, found.findings
