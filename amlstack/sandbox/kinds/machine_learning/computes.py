"""Microsoft.MachineLearningServices/workspaces/computes: AmlCompute clusters. Their nodes are the scheduler's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from amlstack.base import text
from amlstack.sandbox.kinds.machine_learning import capacity, jobs, managed_network
from amlstack.sandbox.kinds.machine_learning.jobs import check_size
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.addresses import ML
from amlstack.sandbox.protocol.kind import BY_STATUS, Body, KindContext, NameRule, Reply, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid, not_emulated
from amlstack.sandbox.protocol.times import with_offset
from amlstack.sandbox.store.store import COMPUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables import Operation

_NODE_STATES = {"provisioning": "preparing", "idle": "idle", "busy": "running"}
"""The scheduler's word and the service's."""
_COUNTS = ("allocationState", "currentNodeCount", "targetNodeCount", "nodeStateCounts")
_NULLS: Body = {
    "subnet": None,
    "errors": None,
    "virtualMachineImage": None,
    "enableBatchPrivateLink": False,
}
_DEFAULTS: Body = {"vmPriority": "Dedicated", "osType": "Linux"}
_IDLE: Body = {"nodeIdleTimeBeforeScaleDown": "PT2M"}
"""Defaults that the service fills in once a cluster is made (New-AzMLWorkspaceCompute, 2025-11-04)."""


class Computes(ResourceKind):
    """AmlCompute clusters: scale, identity and tags can be changed; the rest of a second PUT is quietly ignored."""

    type = COMPUTE
    noun = "a compute"
    counted = True
    names = NameRule(
        r"[A-Za-z](?=.{2,23}$)[A-Za-z0-9-]*[A-Za-z0-9]",
        "3 to 24 letters, digits and '-', a letter first, no '-' at the end",
    )
    ticks = 2
    ticks_delete = 1
    patches = True
    actions = ("listNodes",)
    again_status = 201
    ticks_again: ClassVar[dict[str, int]] = {"PUT": 2, "PATCH": 2}
    followed: ClassVar[dict[str, tuple[str, ...]]] = dict.fromkeys(("create", "update", "delete"), (BY_STATUS,))
    dated = False
    outer: ClassVar[Body] = {"tags": {}}
    nulls: ClassVar[Body] = dict.fromkeys(("description", "resourceId", "provisioningErrors"))

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The size must exist, the scale must make sense, the nodes must be where the workspace has its network."""
        entra.check(context.store, body)
        compute = body["properties"]
        if not compute:
            raise invalid("properties", "the required property is missing.")
        if compute["computeType"] != "AmlCompute":
            raise not_emulated(f"computes of type '{compute['computeType']}', only AmlCompute")
        cluster = compute.get("properties") or {}
        where = "properties.properties"
        if not cluster.get("vmSize"):
            raise invalid(f"{where}.vmSize", "the required property is missing.")
        check_size(cluster["vmSize"], f"{where}.vmSize")
        _check_scale(cluster.get("scaleSettings"), f"{where}.scaleSettings")
        _check_login(compute, cluster, where, known=before is not None)
        if before is None:
            capacity.check(context, body["location"], cluster, where)
            managed_network.check_compute(context, context.store.resources[path.parent], body)

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """The first compute takes the managed network along, where nobody has provisioned it."""
        workspace = context.store.resources[resource.parent]
        if managed_network.is_awaited(workspace):
            managed_network.start(context, workspace)

    def changed(self, context: KindContext, resource: ResourceRow) -> None:
        """Another scale is the scheduler's to act on."""
        context.wake.set()

    def finished(self, context: KindContext, resource: ResourceRow, operation: Operation) -> None:
        """A cluster that is made or gone is the scheduler's to act on; one that has no room in the quota fails."""
        context.wake.set()
        body = resource.body
        short = capacity.shortage(context, body["location"], body["properties"]["properties"])
        if operation.kind == "create" and short is not None:
            code, message = short
            errors = [{"error": {"code": code, "message": message}}]
            failed = {**body, "properties": {**body["properties"], "provisioningErrors": errors}}
            context.store.resources.put(resource.id, self.type, resource.parent, failed, "Failed")
            context.store.operations.fail(operation.id, f"{code}: {message}")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults for a cluster."""
        compute = body["properties"]
        cluster = compute["properties"]
        scale = {"minNodeCount": 0, **cluster["scaleSettings"]}
        defaults = {"remoteLoginPortPublicAccess": "NotSpecified", "isolatedNetwork": False}
        filled = {**defaults, **cluster, "scaleSettings": scale}
        return {**body, "properties": {**compute, "properties": filled}}

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """Takes the new scale, identity and tags and drops the rest without a word, as the service does.

        That the identity changes in place is what terraform-provider-azurerm does (pull request 26404) and what
        ``az ml computetarget amlcompute identity assign`` is for; that tags do is what its pull request 29878 found.
        """
        compute = before.body["properties"]
        scale = {"minNodeCount": 0, **body["properties"]["properties"]["scaleSettings"]}
        changed: Body = {name: body[name] for name in ("identity", "tags") if name in body}
        properties = {**compute, "properties": {**compute["properties"], "scaleSettings": scale}}
        return {**before.body, **changed, "properties": properties}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Node counts, live from the scheduler's table."""
        compute = resource.body["properties"]
        nodes = context.store.nodes.of(resource.key)
        states = Counter(_NODE_STATES[node.state] for node in nodes)
        kinds = ("idle", "running", "preparing", "unusable", "leaving", "preempted")
        live: dict[str, Any] = {
            "allocationState": "Resizing" if states["preparing"] else "Steady",
            "allocationStateTransitionTime": with_offset(max((node.since for node in nodes), default=resource.created)),
            "currentNodeCount": len(nodes) - states["preparing"],
            "targetNodeCount": len(nodes),
            "nodeStateCounts": {f"{kind}NodeCount": states[kind] for kind in kinds},
        }
        cluster = _without_password(compute["properties"])
        pending = resource.state in {"Creating", "Failed"}
        scale = cluster["scaleSettings"]
        if pending:
            cluster = {"vmPriority": None, **cluster, "scaleSettings": {**dict.fromkeys(_IDLE), **scale}}
        else:
            cluster = {**_DEFAULTS, **cluster, "scaleSettings": {**_IDLE, **scale}}
        bag: Body = {"propertyBag": {}}
        if resource.state == "Failed":  # no node was ever looked for
            live, bag = dict.fromkeys(_COUNTS), {}
        return {
            "computeLocation": resource.body["location"],
            "createdOn": with_offset(resource.created),
            "modifiedOn": with_offset(resource.changed),
            "isAttachedCompute": False,
            "disableLocalAuth": compute.get("disableLocalAuth", False),
            "provisioningWarnings": {},
            "properties": {**_NULLS, **bag, **cluster, "vmSize": cluster["vmSize"].upper(), **live},
        }

    def written(self, context: KindContext, resource: ResourceRow) -> Body:
        """Without counts: the answer to a write looks at no node; what is being made says less than what is changed.

        Source: recordings of azure-ai-ml's test_compute (2023-10-31, 2024-12-18) and of azure-powershell's
        New-AzMLWorkspaceCompute (2025-11-04).
        """
        shown = self.render(context, resource)
        properties = {**shown["properties"]}
        cluster = {**properties["properties"], **dict.fromkeys(_COUNTS)}
        for name in ("allocationStateTransitionTime", "propertyBag", "userAccountCredentials"):
            cluster.pop(name, None)
        if resource.state == "Creating":
            shown["tags"] = shown["tags"] or None
            properties["provisioningWarnings"] = None
            del properties["computeLocation"]
        else:
            below = resource.id.replace(f"/{ML}/", "/Microsoft.BatchAI/")
            properties["resourceId"] = below.replace("/computes/", "/clusters/")
        return {**shown, "properties": {**properties, "properties": cluster}}

    def absent(self, path: ArmPath) -> Refused:
        """No words at all: the answer has no body (test_pipeline_job of azure-ai-ml, 2023-01-05)."""
        return Refused(404, "", super().absent(path).message)

    def action(self, context: KindContext, resource: ResourceRow, name: str, body: Body) -> Reply | Operation:
        """``listNodes``: each node with its state, and the run on it."""
        if name.lower() != "listnodes":
            return super().action(context, resource, name, body)
        nodes = [
            {
                "nodeId": f"{resource.name}-{node.number}",
                "privateIpAddress": "127.0.0.1",
                "publicIpAddress": None,
                "port": None,
                "nodeState": _NODE_STATES[node.state],
                "runId": node.job,
            }
            for node in context.store.nodes.of(resource.key)
        ]
        return Reply(200, {"computeType": "AmlCompute", "nodes": nodes})

    def check_delete(self, query: Mapping[str, str]) -> None:
        """A delete says what becomes of the nodes."""
        action = query.get("underlyingResourceAction")
        if action is None:
            message = "The query parameter 'underlyingResourceAction' is required: Delete or Detach."
            raise Refused(400, "InvalidRequest", message)
        if action.lower() != "delete":
            message = f"'underlyingResourceAction={action}' is not allowed for AmlCompute; use Delete."
            raise Refused(400, "InvalidRequest", message)

    def removing(self, context: KindContext, resource: ResourceRow) -> bool:
        """Ends the jobs on it, then its nodes."""
        if not jobs.end_on(context, resource):
            return False
        context.store.nodes.drop(resource.key)
        return True


def _check_scale(scale: Any, where: str) -> None:
    if scale is None:
        raise invalid(where, "the required property is missing.")
    low, high = scale.get("minNodeCount", 0), scale["maxNodeCount"]
    if low < 0 or high < low:
        raise invalid(where, f"minNodeCount {low} and maxNodeCount {high}: 0 <= minimum <= maximum must hold.")
    idle = scale.get("nodeIdleTimeBeforeScaleDown")
    if idle is not None and text.seconds(idle) is None:
        raise invalid(f"{where}.nodeIdleTimeBeforeScaleDown", f"'{idle}' is no ISO-8601 duration such as 'PT120S'.")


def _check_login(compute: Body, cluster: Body, where: str, *, known: bool) -> None:
    account = cluster.get("userAccountCredentials")
    # No answer shows the password: who changes what it got sends the account without one.
    opens = account is not None and (account.get("adminUserSshPublicKey") or account.get("adminUserPassword"))
    if account is not None and not known and not opens:
        message = "an administrator needs adminUserSshPublicKey or adminUserPassword."
        raise invalid(f"{where}.userAccountCredentials", message)
    if account is not None and compute.get("disableLocalAuth"):
        raise invalid("properties.disableLocalAuth", "it is true, and userAccountCredentials names a local account.")


def _without_password(cluster: Body) -> Body:
    """Of a password answers show that it can be one."""
    account = cluster.get("userAccountCredentials")
    if not account:
        return cluster
    return {**cluster, "userAccountCredentials": {**account, "adminUserPassword": None}}


KIND = Computes()
