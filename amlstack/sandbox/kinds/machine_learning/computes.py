"""Microsoft.MachineLearningServices/workspaces/computes: AmlCompute clusters, and the quota of their region.

The nodes are the scheduler's. Names, types and order of the rows of ``GET …/locations/{region}/usages`` and
``…/vmSizes`` are those that Azure was recorded to answer (azure-powershell, MachineLearningServices.Autorest,
Get-AzMLServiceUsage and Get-AzMLServiceQuota, 2025-11-04). Limits are beyond any stack unless somebody lowers them
(`amlstack sandbox quota`): ``Store.quota`` holds ``{region: {"families": {family: limit}, "dedicated": limit,
"low_priority": limit, "withheld": [size, …], "workspaces": {name: {family: limit}}}}``. In use are the nodes that there
are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import text
from amlstack.catalog import regions, sizes
from amlstack.sandbox.kinds.machine_learning import jobs, managed_network
from amlstack.sandbox.kinds.machine_learning.jobs import check_size
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.addresses import ML, ArmPath
from amlstack.sandbox.protocol.entra import SUBSCRIPTION
from amlstack.sandbox.protocol.kind import Body, KindContext, Reply, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid, not_emulated
from amlstack.sandbox.protocol.times import with_offset
from amlstack.sandbox.store.store import COMPUTE, ResourceRow

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size
    from amlstack.sandbox.store.tables import Operation

LIMIT: Final = 10_000_000
"""vCPUs of a region and of each family where nothing else was set."""
_SIZES_AS_VALUE: Final = "2020-09-01"
"""Before it the list of sizes is called `amlCompute` (azure-mgmt-machinelearningservices 1.0.1: 2020-08-01)."""
CLUSTERS: Final = 200
"""Clusters of a region at most."""
_UNLIMITED: Final = -1
"""The limit of a family's low-priority vCPUs: they have one for all families together."""
_TOTALS: Final = {
    "Dedicated": ("TotalDedicatedCores", "Total Cluster Dedicated Regional vCPUs", "dedicated"),
    "LowPriority": ("TotalLowPriorityCores", "Total Cluster Low Priority Regional vCPUs", "low_priority"),
}


def answer(context: KindContext, region: str, what: str, version: str) -> Reply:
    """Answers a GET of what the service says of a region."""
    made = {"usages": _usages, "vmsizes": _sizes, "quotas": _quotas}.get(what.lower())
    if made is None:
        raise not_emulated(f"the list '{what}' of a region")
    rows = made(context, region)
    return Reply(200, {"amlCompute" if made is _sizes and version < _SIZES_AS_VALUE else "value": rows})


def check(context: KindContext, region: str, cluster: Body, where: str) -> None:
    """Refuses a cluster of a withheld size."""
    size = sizes.get(cluster["vmSize"])
    if size is not None and _withheld(size, _quota(context, region)):
        message = f"The VM size '{size.name}' is not available to this subscription in '{region}'."
        raise Refused(400, "InvalidVmSize", message, f"{where}.vmSize")


def shortage(context: KindContext, region: str, cluster: Body) -> tuple[str, str] | None:
    """The code and message with which the making of a cluster fails: its family has no room for its fewest nodes.

    Source: GET of a cluster that failed so, in recordings of azure-ai-ml's test_pipeline_job (2023-01-05): a quota
    of 0 has no room for one node of a cluster whose ``minNodeCount`` is 0.
    """
    size, quota = sizes.get(cluster["vmSize"]), _quota(context, region)
    if size is None or (cluster.get("vmPriority") or "Dedicated") != "Dedicated":
        return None
    least, vcpus = cluster["scaleSettings"].get("minNodeCount", 0), size.vcpus or 0
    family = size.family or ""
    limit = min(quota.get("families", {}).get(family, LIMIT), quota.get("dedicated", LIMIT))
    if vcpus <= limit and _used(context, region)["Dedicated", family] + least * vcpus <= limit:
        return None
    nodes = max(least, 1)
    return "ClusterMinNodesExceedCoreQuota", (
        f"The specified subscription has a Standard {size.series} family vCPU quota of {limit} and cannot accomodate "
        f"for at least {nodes} requested managed compute nodes which maps to {nodes * vcpus} vCPUs. Talk to your "
        "Subscription Admin or refer to "
        "https://docs.microsoft.com/azure/machine-learning/how-to-manage-quotas#request-quota-increases to increase "
        "the family quota"
    )


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """The part of a region's quota that somebody sets; None and empty leave a part as it is.

    Attributes:
        family: The family that ``limit`` is of; empty for all dedicated nodes.
        limit: vCPUs.
        low_priority: vCPUs of low-priority nodes.
        withheld: Sizes that are not offered from now on.
        workspace: Name of the workspace whose part of the family's quota ``limit`` is; empty for the subscription.
    """

    family: str = ""
    limit: int | None = None
    low_priority: int | None = None
    withheld: tuple[str, ...] = ()
    workspace: str = ""

    @property
    def any(self) -> bool:
        """True where anything is set."""
        return self.limit is not None or self.low_priority is not None or bool(self.withheld)


def wrong(region: str, change: QuotaChange) -> str | None:
    """The fault of a change, in words; None when nothing is."""
    if change.any and region not in regions.names():
        return f"--region must be a region of Azure, got `{region}`.{text.hint(region, regions.names())}"
    if change.family and change.limit is None:
        return "--family needs --limit."
    if change.workspace and not change.family:
        return "--workspace needs --family and --limit: a workspace is given a part of a family's quota."
    known = {one.lower(): one for one in _families()}
    if change.family and change.family.lower() not in known:
        return f"`{change.family}` is no family of sizes.{text.hint(change.family, known.values())}"
    for name in change.withheld:
        if sizes.get(name) is None:
            return f"`{name}` is no size.{text.hint(name, sizes.near(name))}"
    return None


def changed(quota: Mapping[str, Any], region: str, change: QuotaChange) -> dict[str, Any]:
    """``Store.quota`` with a change that nothing is wrong with."""
    before = quota.get(region, {})
    after = {**before}
    if change.limit is not None and change.workspace:
        parts = before.get("workspaces", {})
        name = change.workspace.lower()
        after["workspaces"] = {**parts, name: {**parts.get(name, {}), _named(change.family): change.limit}}
    elif change.limit is not None and change.family:
        after["families"] = {**before.get("families", {}), _named(change.family): change.limit}
    elif change.limit is not None:
        after["dedicated"] = change.limit
    if change.low_priority is not None:
        after["low_priority"] = change.low_priority
    if change.withheld:
        after["withheld"] = sorted({*before.get("withheld", ()), *change.withheld})
    return {**quota, region: after}


def _named(given: str) -> str:
    return next(name for name in _families() if name.lower() == given.lower())


def _usages(context: KindContext, region: str) -> list[Body]:
    """The clusters; then, for each priority, all vCPUs and those of each family."""
    quota, used = _quota(context, region), _used(context, region)
    there = sum(1 for row in context.store.clusters() if row.body["location"] == region)
    rows = [_total("TotalClusters", "Total Clusters", there, CLUSTERS)]
    for priority, (value, name, key) in _TOTALS.items():
        rows.append(_total(value, name, used[priority, ""], quota.get(key, LIMIT)))
        for one in _families():
            limit = quota.get("families", {}).get(one, LIMIT) if priority == "Dedicated" else _UNLIMITED
            kind = f"{ML}/vmFamily/{priority[0].lower()}{priority[1:]}Cores/usages"
            own = f"/subscriptions/{SUBSCRIPTION}/usages/{_segment(one)}"
            rows.append(_row(own, kind, one, _words(one, priority), limit, currentValue=used[priority, one]))
    return rows


def _families() -> list[str]:
    """The families of all sizes of which a source names it."""
    return list(dict.fromkeys(size.family for size in sizes.all_sizes() if size.family))


def _words(family_name: str, priority: str = "Dedicated") -> str:
    """The name of a family in words, with the blanks that its value has."""
    core = re.sub(r"^standard|family$", "", family_name, flags=re.IGNORECASE)
    return f"Standard {core} Family Cluster {priority} vCPUs"


def _segment(family_name: str) -> str:
    """A family's name as the last part of an id."""
    return family_name.replace(" ", "_")


def _quotas(context: KindContext, region: str) -> list[Body]:
    """The limit of each family, and behind it the same row for every workspace of the region.

    A workspace has the family's limit until it is given a part of it (``sandbox quota --workspace``).
    """
    quota = _quota(context, region)
    given: Mapping[str, Mapping[str, int]] = quota.get("workspaces", {})
    workspaces = [row for row in context.store.resources.of_type(f"{ML}/workspaces") if row.body["location"] == region]
    rows = []
    for one in _families():
        limit = quota.get("families", {}).get(one, LIMIT)
        own = f"/subscriptions/{SUBSCRIPTION}/quotas/{_segment(one)}"
        rows.append(_row(own, f"{ML}/vmFamily/dedicatedCores/quotas", one, _words(one), limit, location=None))
        for workspace in workspaces:
            part = given.get(workspace.name.lower(), {}).get(one, limit)
            own, kind = f"{workspace.id}/quotas/{_segment(one)}", f"{ML}/workspaces/dedicatedCores/quotas"
            rows.append(_row(own, kind, one, _words(one), part, location=region))
    return rows


def _total(value: str, name: str, current: int, limit: int) -> Body:
    kind = f"{ML}/{value[0].lower()}{value[1:]}/usages"
    return _row(f"/subscriptions/{SUBSCRIPTION}", kind, value, name, limit, currentValue=current)


def _row(own: str, kind: str, value: str, name: str, limit: int, **more: Any) -> Body:
    shown = {"value": value, "localizedValue": name}
    return {"id": own, "type": kind, "unit": "Count", "limit": limit, "name": shown, **more}


def _sizes(context: KindContext, region: str) -> list[Body]:
    quota = _quota(context, region)
    return [
        {
            "name": size.name,
            "family": size.family or "",
            "vCPUs": size.vcpus or 0,
            "gpus": size.gpus,
            "memoryGB": size.memory_gib or 0,
            "lowPriorityCapable": True,
            "supportedComputeTypes": ["AmlCompute"],
        }
        for size in sizes.all_sizes()
        if not _withheld(size, quota)
    ]


def _quota(context: KindContext, region: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = context.store.quota().get(region, {})
    return found


def _withheld(size: Size, quota: Mapping[str, Any]) -> bool:
    return size.name.lower() in {str(name).lower() for name in quota.get("withheld", ())}


def _used(context: KindContext, region: str) -> Counter[tuple[str, str]]:
    """VCPUs of the nodes that there are, by priority and family; with an empty family those of all."""
    used: Counter[tuple[str, str]] = Counter()
    nodes = Counter(node.cluster for node in context.store.nodes.all())
    for row in context.store.clusters():
        cluster = row.body["properties"]["properties"]
        size = sizes.get(cluster["vmSize"])
        if row.body["location"] != region or size is None or not (count := nodes[row.key]):
            continue
        for one in {"", size.family or ""}:
            used[cluster.get("vmPriority") or "Dedicated", one] += count * (size.vcpus or 0)
    return used


_NODE_STATES = {"provisioning": "preparing", "idle": "idle", "busy": "running"}
"""The scheduler's word and the service's."""
_COUNTS = ("allocationState", "currentNodeCount", "targetNodeCount", "nodeStateCounts")
_NULLS: Body = {"subnet": None, "errors": None, "virtualMachineImage": None, "enableBatchPrivateLink": False}
_DEFAULTS: Body = {"vmPriority": "Dedicated", "osType": "Linux"}
_IDLE: Body = {"nodeIdleTimeBeforeScaleDown": "PT2M"}
"""Defaults that the service fills in once a cluster is made (New-AzMLWorkspaceCompute, 2025-11-04)."""


class Computes(ResourceKind):
    """AmlCompute clusters: scale, identity and tags can be changed; the rest of a second PUT is quietly ignored."""

    type = COMPUTE

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
            check(context, body["location"], cluster, where)
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
        short = shortage(context, body["location"], body["properties"]["properties"])
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
