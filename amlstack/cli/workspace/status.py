"""The status of jobs of a workspace, why one has not started, and runs side by side: plain data and lines."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import text
from amlstack.base.credentials import scrub
from amlstack.cli.console import columns
from amlstack.cli.logs.follower import label
from amlstack.cli.workspace import job_search
from amlstack.cli.workspace.job_search import WorkspaceJob, children, when
from amlstack.code_reading import starters
from amlstack.provider.arm import ArmClient, ArmError
from amlstack.provider.arm.client import read_regions
from amlstack.provider.runs import Runs
from infra.quota import OF_REGION, usage_of

if TYPE_CHECKING:
    import datetime as dt

    from amlstack.cli.workspace.workspace_place import WorkspacePlace

WAITING: Final = frozenset({"NotStarted", "Queued", "Provisioning", "Preparing", "Starting"})
_HOLDING: Final = frozenset({"Running", "Finalizing", "CancelRequested", "Preparing", "Starting"})
_LOW_PRIORITY: Final = "TotalLowPriorityCores"
_SHOWN: Final = 3


def nodes_of(properties: Mapping[str, Any]) -> int:
    """The number of nodes that a job asks for."""
    return _int((properties.get("resources") or {}).get("instanceCount")) or 1


def processes_of(properties: Mapping[str, Any]) -> int | None:
    """The number of processes Azure ML starts for a job on all nodes; None where its body does not say."""
    distribution = properties.get("distribution") or {}
    kind = distribution.get("distributionType")
    if kind in {"PyTorch", "Mpi"}:
        return nodes_of(properties) * (_int(distribution.get("processCountPerInstance")) or 1)
    if kind == "TensorFlow":
        return (_int(distribution.get("workerCount")) or 1) + (_int(distribution.get("parameterServerCount")) or 0)
    return None


def ranks_of(properties: Mapping[str, Any]) -> int | None:
    """The number of ranks a job trains with; None where neither its body nor its command says.

    A launcher in the command (torchrun, accelerate, mpirun …) starts ranks of its own in each process of Azure ML, as
    many as its options say.
    """
    processes, nodes = processes_of(properties), nodes_of(properties)
    command = str(properties.get("command") or "").split()
    for at, word in enumerate(command):
        program, rest = word.rpartition("/")[2], command[at + 1 :]
        if program in starters.PROGRAMS and starters.launch_of(program, rest)[0]:
            per_node = starters.per_node(program, rest, nodes)
            return per_node * (processes or 1) if per_node else None
    return processes


@dataclass(slots=True)
class Queue:
    """Answers why jobs wait; each cluster and each region is asked for once.

    Attributes:
        arm: Azure Resource Manager.
        jobs: What is known of the other jobs.
    """

    arm: ArmClient
    jobs: Iterable[WorkspaceJob] = ()
    _clusters: dict[str, Any] = field(default_factory=dict)
    _regions: dict[tuple[str, str], Any] = field(default_factory=dict)

    def why(self, job: WorkspaceJob) -> str:
        """In words; empty for a job that does not wait, or where nothing is known."""
        properties = job.record.properties
        if job.record.status not in WAITING:
            return ""
        compute = str(properties.get("computeId") or "")
        if job.kind in {"Sweep", "Pipeline"} and not compute:
            return ""
        if "/computes/" not in compute:
            size = (properties.get("resources") or {}).get("instanceType")
            return f"waits for {_nodes(nodes_of(properties))} of serverless compute{f' ({size})' if size else ''}"
        cluster = self._cluster(compute)
        if isinstance(cluster, str):
            return cluster
        return self._of_nodes(job, compute, cluster)

    def _of_nodes(self, job: WorkspaceJob, compute: str, cluster: Mapping[str, Any]) -> str:
        wanted, name = nodes_of(job.record.properties), compute.rpartition("/")[2]
        scale, counts = cluster.get("scaleSettings") or {}, cluster.get("nodeStateCounts") or {}
        most, busy = _int(scale.get("maxNodeCount")), _int(counts.get("runningNodeCount")) or 0
        coming = _int(counts.get("preparingNodeCount")) or 0
        if most is not None and wanted > most:
            return f"asks for {_nodes(wanted)}, and `{name}` has at most {most}: it never starts there"
        if errors := _errors(cluster):
            return f"`{name}` cannot grow: {errors}"
        if most is not None and busy + wanted > most:
            others = self._holders(job, compute)
            return f"waits for {_nodes(wanted)}: {busy} of at most {most} of `{name}` run other jobs{others}"
        missing = wanted - (_int(counts.get("idleNodeCount")) or 0)
        if missing > 0 and (short := self._quota(compute, cluster, missing)):
            return short
        if coming:
            return f"{_nodes(coming)} of `{name}` {'is' if coming == 1 else 'are'} being prepared, it asks for {wanted}"
        there = _int(cluster.get("currentNodeCount")) or 0
        bound = "" if most is None else f" of at most {most}"
        return f"waits for {_nodes(wanted)}: `{name}` has {there}{bound} now, {busy} busy"

    def _holders(self, job: WorkspaceJob, compute: str) -> str:
        names = [
            f"`{each.name}`"
            for each in self.jobs
            if each.record.status in _HOLDING and each.name != job.name and compute.lower() in each.record.computes
        ]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f" ({', '.join(names[:_SHOWN])}{more})" if names else ""

    def _quota(self, compute: str, cluster: Mapping[str, Any], nodes: int) -> str:
        """The shortage of the subscription's vCPUs; empty where there is none, or it cannot be asked."""
        region, size = str(cluster["location"]), str(cluster.get("vmSize") or "")
        if (region, size) not in self._regions:
            asked = {"subscription": compute.split("/")[2], "regions": {region: [size]}}
            self._regions[region, size] = read_regions(self.arm, asked, threading.Event())["regions"][region]
        answer = self._regions[region, size]
        offered = {} if answer["problem"] else answer["sizes"].get(size) or {}
        vcpus = _int(offered.get("vcpus"))
        if not vcpus:
            return ""
        low = cluster.get("vmPriority") == "LowPriority"
        for pool in (_LOW_PRIORITY,) if low else (str(offered.get("family") or ""), OF_REGION):
            usage = usage_of(pool, answer["usages"]) if pool else None
            if usage is not None and usage["limit"] >= 0 and usage["current"] + vcpus > usage["limit"]:
                named = "low priority" if low else pool
                used = f"{usage['current']} of {usage['limit']} vCPUs of {named} in {region} are in use"
                return f"quota: {used}, and it asks for {nodes * vcpus} more ({_nodes(nodes)} of {size})"
        return ""

    def _cluster(self, compute: str) -> Any:
        """The service's answer about a cluster, with its region under ``location``; text where it is none."""
        key = compute.lower()
        if key not in self._clusters:
            name = compute.rpartition("/")[2]
            try:
                answer = self.arm.look(compute)
            except ArmError:
                self._clusters[key] = ""
            else:
                outer = answer.body.get("properties") or {} if answer.status != 404 else {}
                inner = dict(outer.get("properties") or {})
                region = str(outer.get("computeLocation") or answer.body.get("location") or "")
                found: Any = {**inner, "location": region.replace(" ", "").lower()}
                if answer.status == 404:
                    found = f"there is no compute `{name}`: it never starts"
                elif not inner.get("vmSize"):
                    found = ""
                elif errors := _errors({"errors": outer.get("provisioningErrors")}):
                    found = f"`{name}` is {outer.get('provisioningState')}: {errors}"
                self._clusters[key] = found
        return self._clusters[key]


def _errors(found: Mapping[str, Any]) -> str:
    """The first of the service's errors about a compute; empty for none."""
    for each in found.get("errors") or ():
        error = each.get("error") if isinstance(each, dict) else None
        error = error if isinstance(error, dict) else each
        if isinstance(error, dict) and (error.get("message") or error.get("code")):
            return str(error.get("message") or error.get("code")).strip().splitlines()[0]
    return ""


def _nodes(number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'}"


def _int(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


HEADINGS: Final = ("JOB", "TYPE", "STATUS", "COMPUTE", "NODES", "RANKS", "AGE", "")


def row(job: WorkspaceJob, why: str, now: dt.datetime) -> dict[str, Any]:
    """One job: ``name``, ``type``, ``status``, ``compute``, ``nodes``, ``ranks``, ``age_seconds``, ``why`` and more.

    ``nodes`` and ``ranks`` are what the job asks for; None where its body does not say.
    """
    properties = job.record.properties
    is_parent = job.kind in {"Sweep", "Pipeline"}
    compute = str(properties.get("computeId") or "")
    return {
        "name": job.name,
        "id": job.arm_id,
        "type": job.kind,
        "status": job.record.status,
        "display_name": properties.get("displayName"),
        "experiment": job.record.experiment,
        "compute": compute.rpartition("/")[2] or ("" if is_parent else "serverless"),
        "nodes": None if is_parent else nodes_of(properties),
        "ranks": None if is_parent else ranks_of(properties),
        "created": job.created.isoformat() if job.created else None,
        "age_seconds": None if job.created is None else round((now - job.created).total_seconds()),
        "why": why,
    }


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows as lines, headings first; a reason for waiting stands at the end of its line."""
    names = ("name", "type", "status", "compute", "nodes", "ranks", "age", "why")
    shown = ({**each, "age": age(each["age_seconds"])} for each in rows)
    cells = [tuple("" if each[name] is None else str(each[name]) for name in names) for each in shown]
    yield from columns([HEADINGS, *cells])


def details(place: WorkspacePlace, job: WorkspaceJob, why: str, now: dt.datetime) -> dict[str, Any]:
    """All of one job: its row, times, error, children, nodes, services and outputs.

    Raises:
        ArmError: Run history cannot be asked.
    """
    runs = Runs(place.arm)
    known = runs.plane.details(job.workspace, job.name) or {}
    error = ((known.get("error") or {}).get("error") or {}).get("message")
    below = [
        {
            "name": str(one["runId"]),
            "label": label(job.kind, one),
            "status": str(one.get("status") or "Unknown"),
            "values": (one.get("tags") or {}).get("hyperparameters"),
        }
        for one in children(place, job)
    ]
    return {
        **row(job, why, now),
        "started": known.get("startTimeUtc"),
        "ended": known.get("endTimeUtc"),
        "error": scrub(str(error)) if error else None,
        "logs": sorted(known.get("logFiles") or ()),
        "on_nodes": list(_on_nodes(place, job)),
        "children": below,
        "services": job.record.services,
        "outputs": {
            name: (port or {}).get("uri") for name, port in (job.record.properties.get("outputs") or {}).items()
        },
        "tags": job.record.tags,
        "metrics": runs.plane.tracked(job.workspace, job.name)["metrics"],
        "studio": None if place.is_local else job_search.studio_of_job(place.arm, job),
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """One job's details for a person, each in a line of its own; what is not known is left out."""
    yield from map(text.line, _lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    size = [f"{found[name]} {name if found[name] != 1 else name[:-1]}" for name in ("nodes", "ranks") if found[name]]
    started, ended = when(found["started"]), when(found["ended"])
    yield f"{found['name']}: {found['type']}, {found['status']}" + (f": {found['why']}" if found["why"] else "")
    pairs = [
        ("on", ", ".join(part for part in (found["compute"], *size) if part)),
        ("display name", found["display_name"] if found["display_name"] != found["name"] else ""),
        ("experiment", found["experiment"]),
        ("submitted", f"{found['created']} ({age(found['age_seconds'])} ago)" if found["created"] else ""),
        ("started", found["started"]),
        ("ended", found["ended"]),
        ("ran", age((ended - started).total_seconds()) if started and ended else ""),
        ("error", found["error"]),
        ("tags", ", ".join(f"{name}={value}" for name, value in found["tags"].items())),
        ("metrics", ", ".join(f"{name} {value:.6g}" for name, value in found["metrics"].items())),
        ("logs", ", ".join(found["logs"])),
        ("studio", found["studio"]),
    ]
    yield from (f"  {name + ':':14}{value}" for name, value in pairs if value)
    for node in found["on_nodes"]:
        yield f"  {'node:':14}{node['id']} is {node['state']}"
    for name, uri in found["outputs"].items():
        yield f"  {'output:':14}{name}{f' → {uri}' if uri else ''}"
    for child in found["children"]:
        given = f" {child['values']}" if child["values"] else ""
        yield f"  {child['label']}: {child['status']}{given} ({child['name']})"


def age(seconds: float | None) -> str:
    """``45s``, ``12m``, ``3h``, ``2d``; empty for None."""
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def _on_nodes(place: WorkspacePlace, job: WorkspaceJob) -> Iterator[dict[str, str]]:
    """The nodes of its cluster that run the job now; none where they cannot be asked for."""
    compute = str(job.record.properties.get("computeId") or "")
    if job.record.status != "Running" or "/computes/" not in compute:
        return
    try:
        answer = place.arm.post(f"{compute}/listNodes", allow=(400, 403, 404))
    except ArmError:
        return
    for node in answer.body.get("nodes") or () if answer.status < 400 else ():
        if str(node.get("runId")) == job.name:
            yield {"id": str(node.get("nodeId")), "state": str(node.get("nodeState"))}


def read_run(place: WorkspacePlace, job: WorkspaceJob, now: dt.datetime) -> dict[str, Any]:
    """One run as plain data.

    Returns:
        ``name``, ``status``, ``compute``, ``nodes``, ``ranks``, ``seconds`` (it ran, until now where it runs still),
        ``usd`` (None on the sandbox, and where no price is known), ``steps_per_second``, ``inputs``, ``params`` and the
        last value of each of the ``metrics``.

    Raises:
        ArmError: Run history or MLflow cannot be asked.
    """
    plane = Runs(place.arm).plane
    shown = row(job, "", now)
    times = plane.details(job.workspace, job.name) or {}
    started, ended = when(times.get("startTimeUtc")), when(times.get("endTimeUtc"))
    seconds = ((ended or now) - started).total_seconds() if started else None
    tracked = plane.tracked(job.workspace, job.name)
    inputs = {
        name: given.get("value", given.get("uri"))
        for name, given in (job.record.properties.get("inputs") or {}).items()
        if isinstance(given, dict)
    }
    return {
        **{key: shown[key] for key in ("name", "status", "compute", "nodes", "ranks")},
        "seconds": seconds,
        "usd": None if place.is_local or seconds is None else _cost(place, job, shown["nodes"], seconds),
        "steps_per_second": _speed(plane.history(job.workspace, job.name, list(tracked["metrics"]))),
        "inputs": inputs,
        **tracked,
    }


def _speed(history: Sequence[tuple[int, int]]) -> float | None:
    """Steps per second between the first and the last logged step: pairs of milliseconds and step, in any order."""
    if len(history) < 2:
        return None
    (began, first), (ended, last) = min(history), max(history)
    return round((last - first) * 1000 / (ended - began), 4) if last > first and ended > began else None


def _cost(place: WorkspacePlace, job: WorkspaceJob, nodes: int | None, seconds: float) -> float | None:
    """US dollars for the nodes of a run's cluster while it ran; None where size or price are not known."""
    from amlstack.catalog import sizes

    compute = str(job.record.properties.get("computeId") or "")
    try:
        body = place.arm.look(compute).body if "/computes/" in compute else {}
    except ArmError:
        return None
    outer = body.get("properties") or {}
    inner = outer.get("properties") or {}
    size = sizes.get(str(inner.get("vmSize") or ""))
    region = str(outer.get("computeLocation") or "").replace(" ", "").lower() or None
    price = size.node_price(region, low_priority=inner.get("vmPriority") == "LowPriority") if size else None
    return None if price is None or nodes is None else round(price.usd * nodes * seconds / 3600, 2)


def rows_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Texts by name, one for each run; what no run has is left out."""
    rows: dict[str, list[str]] = {
        "status": [run["status"] for run in runs],
        "ran": [age(run["seconds"]) for run in runs],
        "compute": [run["compute"] for run in runs],
        "nodes": [_cell(run["nodes"]) for run in runs],
        "ranks": [_cell(run["ranks"]) for run in runs],
        "cost": ["" if run["usd"] is None else f"{run['usd']:.2f} USD" for run in runs],
        "steps/s": [_cell(run["steps_per_second"]) for run in runs],
    }
    for kind in ("inputs", "params", "metrics"):
        for name in dict.fromkeys(name for run in runs for name in run[kind]):
            rows[f"{kind[:-1]} {name}"] = [_cell(run[kind].get(name)) for run in runs]
    return {name: cells for name, cells in rows.items() if any(cells)}


def comparison_lines(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table with a column for each run: first what differs between them, then what is the same in all."""
    rows = rows_of(runs)
    differing = {name: cells for name, cells in rows.items() if len(set(cells)) > 1}
    yield from columns([("", *(run["name"] for run in runs)), *((name, *cells) for name, cells in differing.items())])
    same = [f"{name} {cells[0]}" for name, cells in rows.items() if name not in differing]
    if same:
        yield text.line(f"the same: {', '.join(same)}")


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
