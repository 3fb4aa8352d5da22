"""A job, a sweep or a pipeline on the sandbox: the same body, upload and runner, no engine in between."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.cli.rehearsal.inputs import GROUP
from amlstack.cli.workspace.submission import register
from amlstack.provider import runs
from amlstack.provider.arm import API_VERSION, ArmError
from amlstack.provider.resource import Services
from amlstack.provider.runs import Runs
from amlstack.rpc import Host
from amlstack.sandbox import gpu_code
from amlstack.sandbox.files import environments, origins, substitutes
from amlstack.sandbox.scale import QUERY
from infra.compute.cluster import properties
from infra.names import Names
from infra.runs.registration import Registration
from infra.settings import Cluster, ClusterIdentity, Nodes
from jobs.wire.references import with_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import jobs
    from amlstack import snapshot
    from amlstack.cli.rehearsal.inputs import Data
    from amlstack.provider.arm import ArmClient
    from amlstack.sandbox.scale import RehearsalScale
    from amlstack.sandbox.server.endpoint import Endpoint

LOCATION = "westeurope"
DEFAULT_SIZE = "Standard_ND96asr_v4"
"""What a cluster of unknown size is taken for: a job must run somewhere, and here every size has the same two hands."""
MOST_AT_ONCE = 4
"""Trials for which a cluster that no stack declares has nodes: they all run on this machine."""


_VERSIONS = {"": "2024-03-01", "Microsoft.Storage": "2024-01-01", "Microsoft.KeyVault": "2024-11-01"}
"""Api-versions by namespace, as azure-native speaks to them; that of resource groups first."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The workspace in which jobs are rehearsed.

    Attributes:
        arm: A client of the sandbox's resource manager.
        names: Names and ids in the workspace.
        tenant: The directory that the key vault belongs to.
        home: The sandbox's home.
    """

    arm: ArmClient
    names: Names
    tenant: str
    home: Path

    @classmethod
    def on(cls, endpoint: Endpoint, arm: ArmClient) -> Rehearsal:
        """The rehearsal workspace of a running sandbox."""
        return cls(arm, Names(endpoint.subscription, GROUP, GROUP), endpoint.tenant, endpoint.home)

    def submit(
        self,
        name: str,
        plan: jobs.Planned,
        codes: Mapping[str, snapshot.Snapshot],
        source: Data,
        scale: RehearsalScale | None = None,
        *,
        no_shim: bool = False,
    ) -> str:
        """Register what a job, a sweep or a pipeline needs, in the order of `up`, and submit it under an id of its own.

        Args:
            name: The first part of its id.
            plan: What is submitted.
            codes: The content of each part's folder, by the part's place.
            source: Inputs and environments that are read on this machine; the body names them as declared.
            scale: What the sandbox starts at most of it; the body is the same.
            no_shim: GPU calls stay as they are where the machine has no GPU.

        Returns:
            The job's ARM id.

        Raises:
            ArmError, ProviderError: The sandbox refused something.
        """
        registration = Registration.of(name, plan, codes, self.names)
        self._workspace(LOCATION)
        for cluster in clusters(plan):
            self._make(self.names.cluster_id(cluster.name), properties(cluster, location=LOCATION, tags={}))
        services = Services(self.arm, Runs(self.arm), Host(), threading.Event())
        register(services, self.names.workspace_id, registration)
        job_id = f"{self.names.workspace_id}/jobs/{name}-{os.urandom(3).hex()}"
        run = job_id.rsplit("/", 1)[-1]
        substitutes.write(self.home, run, source.by_step, source.given)
        environments.write(self.home, run, source.stand_ins)
        origins.write(self.home, run, code_folders(plan))
        if no_shim:
            gpu_code.keep_off(self.home, run)
        wanted = {} if scale is None else {QUERY: str(scale)}
        body = with_secrets(registration.body, source.secrets)
        sent = _addressed(body, source.by_step.get("", {}))
        answer = self.arm.put(job_id, sent, runs.version_for(sent["properties"]), query=wanted)
        if scale is not None and answer.headers.get(QUERY) != str(scale):
            # A server that was started before this option was known would start every rank.
            self.arm.post(f"{job_id}/cancel")
            raise ArmError(
                0, "SandboxTooOld", "the running sandbox knows no scale: run `amlstack sandbox down`, then again"
            )
        return job_id

    def _workspace(self, location: str) -> None:
        """Make the workspace and what it stands on, unless they are there."""
        names = self.names
        self._make(names.group_id, {"location": location})
        storage = names.id("storage")
        vault = names.id("key_vault")
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

    def _make(self, resource: str, body: dict[str, Any]) -> None:
        # Always a PUT: an equal one changes nothing, and a cluster of that name may have to grow.
        kind = resource.rpartition("/providers/")[2].split("/", 1)[0] if "/providers/" in resource else ""
        self.arm.finish(self.arm.put(resource, body, _VERSIONS.get(kind, API_VERSION)))


def _addressed(body: dict[str, Any], data: Mapping[str, Path]) -> dict[str, Any]:
    """A body whose data all have an address: a component's own inputs have none, and get that of what is given."""
    properties = body["properties"]
    inputs = {
        name: {**port, "uri": data[name].as_uri()}
        if name in data and port.get("jobInputType") != "literal" and not port.get("uri")
        else port
        for name, port in (properties.get("inputs") or {}).items()
    }
    return {**body, "properties": {**properties, "inputs": inputs}} if inputs else body


def code_folders(plan: jobs.Planned) -> dict[str, list[Path]]:
    """The folders of this machine that each part's code was taken from, by step (empty for a job or a sweep)."""
    found: dict[str, list[Path]] = {}
    for place, part in plan.parts.items():
        code = part.job.code
        if code is not None and code.local:
            includes = [(part.base / name).parent for name in code.includes]
            found[plan.step(place)] = list(dict.fromkeys([part.base / code.path, *includes]))
    return found


def clusters(plan: jobs.Planned) -> list[Cluster]:
    """The clusters that a plan's parts name, each as large as the largest of its jobs wants it.

    One that no stack declares is of `DEFAULT_SIZE` and has as many nodes as can run at once. Names are not validated,
    as the job may name a cluster of somebody else.
    """
    found: dict[str, Cluster] = {}
    for place, part in plan.parts.items():
        limits = plan.trials(place)
        trials = 1 if limits is None else limits.max_concurrent_trials or limits.max_total_trials or MOST_AT_ONCE
        at_once = min(trials, MOST_AT_ONCE)
        if name := part.target.cluster:
            most = part.target.max_nodes or part.nodes * at_once
            if name not in found or found[name].nodes.max < most:
                size = part.target.size if part.target.facts is not None else None
                found[name] = Cluster.model_construct(
                    name=name,
                    size=size or DEFAULT_SIZE,
                    nodes=Nodes.model_construct(min=0, max=most, idle="PT2M"),
                    identity=ClusterIdentity(type="none"),
                )
    return list(found.values())
