"""Reports of a folder of logs, and of a job of the sandbox: its declaration, its record, its history, its logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.catalog import regions, sizes
from amlstack.report import logs, performance
from amlstack.report.logs import ChildJob, OutputFile, Phase, RankOutcome, Report, Series
from amlstack.sandbox import contract
from amlstack.sandbox.files import environments
from amlstack.sandbox.store.store import TERMINAL, JobRow, Store, cluster_of, find_job, job_folder, matching_jobs

if TYPE_CHECKING:
    from amlstack.catalog.prices import Price
    from amlstack.diagnose import Diagnosis

MOST_OUTPUTS = 400


class NoLogsError(Exception):
    """The folder holds nothing to report on."""


def folder_report(folder: Path, now: float) -> Report:
    """The content of a folder of logs; of a job's folder of the sandbox also that of its ``report.json``.

    Raises:
        NoLogsError: It holds no log.
    """
    folder = folder.resolve()
    found = logs.read_folder(folder)
    record = record_of(folder)
    if not found.logs:
        message = f"{folder} holds no log: texts such as user_logs/std_log_process_00.txt or 70_driver_log_0.txt."
        raise NoLogsError(message)
    read = _read(folder, found, record, str(record.get("status") or ""), now)
    nodes = {log.rank: log.node for log in found.logs if log.rank is not None}
    title = str(record.get("job") or folder.name)
    facts = (*_folder_facts(folder, record, found.verdict), *read.facts)
    ranks = read.ranks or tuple(RankOutcome(number, nodes[number]) for number in sorted(nodes))
    return replace(read, title=title, facts=facts, error=error_of(record), phases=_folder_phases(record), ranks=ranks)


def _read(folder: Path, found: logs.FolderLogs, record: Mapping[str, Any], status: str, now: float) -> Report:
    """The content of any folder."""
    lists, numbers = metrics(folder, record)
    return Report(
        title=folder.name,
        status=status,
        active=False,
        made=now,
        facts=tuple(performance.bandwidth(folder)),
        verdict=shown(found.verdict, status),
        ranks=ranks_of(record),
        series=found.series or lists,
        numbers=numbers,
        excerpts=found.excerpts,
        usage=performance.usage(folder),
        steps=performance.steps(found.excerpts),
        outputs=outputs(folder),
        notes=notes(found, status),
    )


def record_of(folder: Path) -> Mapping[str, Any]:
    """The content of a job's ``report.json``; empty when there is none."""
    record = logs.read_json(folder / "report.json")
    return record if isinstance(record, dict) and isinstance(record.get("ranks"), list) else {}


def metrics(folder: Path, record: Mapping[str, Any]) -> tuple[tuple[Series, ...], tuple[tuple[str, str], ...]]:
    """Series and single values that the script left at its end."""
    file = "outputs/metrics.json"
    return logs.from_metrics(record.get("metrics") or logs.read_json(folder / file), file)


def error_of(record: Mapping[str, Any]) -> str:
    """The service's message about the end."""
    error = record.get("error")
    return str(error.get("message") or "") if isinstance(error, dict) else ""


def ranks_of(record: Mapping[str, Any]) -> tuple[RankOutcome, ...]:
    """The ranks that a ``report.json`` lists."""
    found = []
    for entry in record.get("ranks", ()):
        if isinstance(entry, dict) and isinstance(entry.get("rank"), int):
            node = entry.get("node")
            ends = (entry.get(name) for name in ("local_rank", "code", "started", "ended"))
            found.append(RankOutcome(entry["rank"], None if node is None else str(node), *ends))
    return tuple(sorted(found, key=lambda rank: rank.rank))


def shown(verdict: Diagnosis, status: str) -> Diagnosis | None:
    """The verdict, where there is an end to explain: not of a job that completed, or that still runs well."""
    if status == "Completed" or (not verdict.fatal and not verdict.found):
        return None
    return verdict


def notes(found: logs.FolderLogs, status: str) -> tuple[str, ...]:
    """Further notes for a reader: files that could not be read, a network that is slow."""
    shown = [f"{finding.seen}." for finding in found.findings]
    if found.left_out:
        shown.append(f"{found.left_out} more logs were read for the verdict and are not shown here.")
    if status == "Completed":
        shown += [f"{note.code}: {note.text} ({note.file}:{note.line})" for note in found.verdict.notes]
    return tuple(shown)


def outputs(folder: Path) -> tuple[OutputFile, ...]:
    """The files under ``outputs/``."""
    root = folder / "outputs"
    found = []
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            found.append(OutputFile(str(path.relative_to(folder)), path.stat().st_size))
        if len(found) >= MOST_OUTPUTS:
            break
    return tuple(found)


def _folder_facts(folder: Path, record: Mapping[str, Any], verdict: Diagnosis) -> tuple[tuple[str, str], ...]:
    pairs = [("folder", folder.name), ("read", f"{verdict.files} files, {verdict.lines} lines")]
    known = (("command", "command"), ("nodes", "nodes"), ("world size", "world_size"), ("environment", "environment"))
    return (*pairs, *((name, str(record[key])) for name, key in known if record.get(key)))


def _folder_phases(record: Mapping[str, Any]) -> tuple[Phase, ...]:
    created, started, ended = (record.get(name) for name in ("created", "started", "ended"))
    if not isinstance(created, float) or not isinstance(ended, float):
        return ()
    if not isinstance(started, float):
        return (Phase("Waiting", created, ended),)
    return (Phase("Waiting", created, started), Phase("Running", started, ended))


def find(store: Store, wanted: str) -> JobRow:
    """The job that a person means by a name that `job_names` knows; a parent comes before its steps and trials.

    Raises:
        UnknownJobError: None is meant, or several may be.
    """
    jobs = store.jobs.list()
    children = store.family.members()
    found: tuple[JobRow, ...] = ()
    for rows in ([row for row in jobs if row.id not in children], jobs):
        if found := matching_jobs(store, wanted, rows):
            break
    return found[0] if len(found) == 1 else find_job(store, wanted, found or jobs)


def job_report(store: Store, job: JobRow, now: float) -> Report:
    """The facts that are known of a job, ended or not."""
    folder = job_folder(store.home, job.id)
    found = logs.read_folder(folder)
    read = _read(folder, found, {} if job.active else record_of(folder), job.status, now)
    logged = logs.from_logged(store.metrics.of(job.id))
    names = {each.name for each in logged}
    printed = () if logged and not found.series else read.series
    children = tuple(_children(store, job))
    quiet = () if children else ("It has written no log yet.",)
    return replace(
        read,
        title=job.name,
        active=job.active,
        facts=(*_facts(store, job), *read.facts),
        error="" if job.error is None else job.error.message,
        verdict=None if not found.logs or (job.active and not found.verdict.found) else read.verdict,
        phases=_phases(store, job),
        ranks=read.ranks or _ranks(store, job),
        series=(*logged, *(each for each in printed if each.name not in names)),
        outputs=(*read.outputs, *_named_outputs(job)),
        children=children,
        metric=_primary_metric(job),
        notes=read.notes if found.logs else quiet,
    )


def _phases(store: Store, job: JobRow) -> tuple[Phase, ...]:
    """The statuses that the job went through, each until the next."""
    steps = [step for step in store.history.of("job", job.id) if step.at >= job.created]
    turns = [step for index, step in enumerate(steps) if index == 0 or steps[index - 1].state != step.state]
    ends: list[float | None] = [*(step.at for step in turns[1:]), job.ended]
    return tuple(
        Phase(step.state, step.at, end) for step, end in zip(turns, ends, strict=True) if step.state not in TERMINAL
    )


def _ranks(store: Store, job: JobRow) -> tuple[RankOutcome, ...]:
    """By the job's record, else by what it asked for."""
    if job.exits:
        return tuple(RankOutcome(each.rank, str(each.node), None, each.code, job.started, None) for each in job.exits)
    if job.status != "Running":
        return ()
    try:
        wanted = contract.read(job.properties, store.scales.of(job.id))
    except (contract.RefusedError, KeyError, ValueError):
        return ()
    return tuple(
        RankOutcome(place.rank, str(place.node), place.local_rank, None, job.started)
        for place in contract.places(wanted)
    )


def _named_outputs(job: JobRow) -> Iterable[OutputFile]:
    for name, port in (job.properties.get("outputs") or {}).items():
        uri = (port or {}).get("uri")
        yield OutputFile(f"{name} → {uri or f'workspaceblobstore, azureml/{job.name}/{name}/'}")


def _facts(store: Store, job: JobRow) -> Iterable[tuple[str, str]]:
    asked = job.properties
    resources = asked.get("resources") or {}
    nodes = int(resources.get("instanceCount") or 1)
    yield "job", job.name + (f" ({asked['displayName']})" if asked.get("displayName") else "")
    yield "kind", str(asked.get("jobType") or "")
    if above := store.family.above(job.id):
        yield "part of", " in ".join((f"{store.family.place(job.id)} of {above[0]}", *above[1:]))
    if asked.get("command"):
        yield "command", str(asked["command"])
    if asked.get("jobType") in (None, "Command"):
        yield "ranks", _layout(asked, nodes)
    compute = _compute(store, job, resources)
    if compute.label:
        yield "compute", compute.label
    if (size := compute.size) is not None:
        yield "size", f"{size.name}: {size.describe()}"
        if (price := size.price_in(compute.region)) is not None:
            hourly = price.hourly(low_priority=compute.low_priority) * nodes
            yield "cost on Azure", _cost(price, hourly, nodes, asked.get("limits") or {})
    if asked.get("environmentId"):
        yield "environment", _environment(store, str(asked["environmentId"]))
    for key, name in (("shmSize", "shared memory"), ("dockerArgs", "docker arguments")):
        if resources.get(key):
            yield name, str(resources[key])
    limits = asked.get("limits") or {}
    if limits.get("timeout"):
        yield "time limit", f"{contract.seconds(str(limits['timeout'])):g} s"
    inputs = asked.get("inputs") or {}
    if inputs:
        here = environments.inputs_of(store, job)
        yield (
            "inputs",
            ", ".join(f"{name} = {_input(port, here.get(name))}" for name, port in list(inputs.items())[:12]),
        )


def _input(port: Mapping[str, Any] | None, here: Path | None) -> str:
    port = port or {}
    literal = port.get("jobInputType") == "literal"
    declared = str(port.get("value") if literal else port.get("uri"))[:120]
    if here is None:
        return declared
    return f"{declared} ({here} in this rehearsal)" if literal else f"{declared} (read from {here})"


def _layout(asked: Mapping[str, Any], nodes: int) -> str:
    distribution = asked.get("distribution") or {}
    kind = distribution.get("distributionType")
    on = f"{nodes} node{'' if nodes == 1 else 's'}"
    if kind is None:
        return f"none declared; the command runs once on {'each of ' if nodes > 1 else ''}{on}"
    if kind == "TensorFlow":
        servers = distribution.get("parameterServerCount") or 0
        return f"TensorFlow on {on}: {distribution.get('workerCount') or nodes} workers, {servers} parameter servers"
    each = int(distribution.get("processCountPerInstance") or 1)
    started = contract.processes_per_node(str(asked.get("command") or ""))
    if started is not None and each == 1:
        return f"{kind}: {on} × {logs.count(started, 'rank')} that torchrun starts = {nodes * started}"
    return f"{kind}: {on} × {each} process{'' if each == 1 else 'es'} = {nodes * each}"


class _Compute(NamedTuple):
    """The nodes that a job runs on, in words; their size, region and priority where they are known."""

    label: str
    size: sizes.Size | None
    region: str | None = None
    low_priority: bool = False


def _compute(store: Store, job: JobRow, resources: Mapping[str, Any]) -> _Compute:
    cluster = cluster_of(job)
    if cluster is None:
        kind = str(resources.get("instanceType") or "")
        return _Compute(f"serverless, {kind}" if kind else "", sizes.get(kind))
    resource = store.resources.get(cluster)
    if resource is None:
        return _Compute(f"cluster {cluster.rsplit('/', 1)[-1]}", sizes.get(""))
    outer = resource.body.get("properties", {})
    inner = outer.get("properties", {})
    region = outer.get("computeLocation") or resource.body.get("location")
    return _Compute(
        f"cluster {resource.name}",
        sizes.get(str(inner.get("vmSize") or "")),
        regions.code(str(region)) if region else None,
        str(inner.get("vmPriority") or "").lower() == "lowpriority",
    )


def _cost(price: Price, hourly: float, nodes: int, limits: Mapping[str, Any]) -> str:
    text = f"${hourly:,.2f} per hour for {nodes} node{'' if nodes == 1 else 's'} ({price.region}, {price.checked})"
    if limits.get("timeout"):
        text += f", at most ${hourly * contract.seconds(str(limits['timeout'])) / 3600:,.2f} until its time limit"
    return text


def _environment(store: Store, reference: str) -> str:
    words = reference.rsplit("/environments/", 1)[-1].replace("/versions/", " version ").split("/labels/")
    image = ""
    if reference.startswith("/") and (resource := store.resources.get(reference)) is not None:
        image = str(resource.body.get("properties", {}).get("image") or "")
    return words[0] + (f" (image {image})" if image else "")


def _children(store: Store, job: JobRow) -> Iterable[ChildJob]:
    metric = _primary_metric(job)
    best = (job.properties.get("properties") or {}).get("best_child_run_id")
    for place, key in store.family.children(job.id).items():
        row = store.jobs.get(key)
        if row is None:
            yield ChildJob(place, key, "deleted")
            continue
        values = {name: str(value) for name, value in _drawn(row).items()}
        yield ChildJob(place, key, row.status, values, _last(store, row, metric), best=row.name == best)
        if row.properties.get("jobType") == "Pipeline":
            yield from (replace(each, place=f"{place}/{each.place}") for each in _children(store, row))


def _primary_metric(job: JobRow) -> str:
    """Of a sweep; empty for other jobs."""
    return str((job.properties.get("objective") or {}).get("primaryMetric") or "")


def _drawn(trial: JobRow) -> Mapping[str, Any]:
    try:
        drawn = json.loads((trial.properties.get("tags") or {}).get("hyperparameters") or "{}")
    except ValueError:
        return {}
    return drawn if isinstance(drawn, dict) else {}


def _last(store: Store, trial: JobRow, metric: str) -> str:
    """The last value of a metric: as it was logged to the run, by which the sweep judges, else as it was printed."""
    if not metric:
        return ""
    if logged := store.metrics.values(trial.id, metric):
        return f"{logged[-1]:g}"
    found = logs.series_of(job_folder(store.home, trial.id))
    printed = next((each.points[-1][1] for each in found if each.name == metric and each.points), None)
    return "" if printed is None else f"{printed:g} (printed, not logged)"
