"""Run history, the data plane through which azure-ai-ml edits metadata, reads logs and finds what to download."""

from __future__ import annotations

import hmac
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from amlstack.base.paths import files_below
from amlstack.sandbox.files.storage import MODELS
from amlstack.sandbox.kinds.machine_learning.job_answers import filled
from amlstack.sandbox.orchestration import pipeline
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.entra import sign
from amlstack.sandbox.protocol.kind import Body, KindContext, Reply
from amlstack.sandbox.protocol.refusals import Refused, invalid, near, not_emulated
from amlstack.sandbox.protocol.times import with_offset
from amlstack.sandbox.store.store import JobRow, job_folder

ROUTE = re.compile(
    r"/history/v1\.0(?P<workspace>/subscriptions/.+?/workspaces/[^/]+)(/experiments/(?P<experiment>[^/]+))?/runs/"
    r"(?P<run>[^/]+)(/(?P<below>details|children|tags))?/?"
)
TAG_EDITS = {"tagsToModify": dict, "tagsToDelete": list}
EDITABLE = {"tags": dict, "displayName": str, "description": str, "hidden": bool, "properties": dict}


def answer(context: KindContext, method: str, path: str, body: Any) -> Reply:
    """Answers GET of a run, its details or its children, and PATCH of its labels or its tags."""
    route = ROUTE.fullmatch(path)
    if route is None:
        raise not_emulated(f"the run history path {path}")
    job = find_run(context, route["workspace"], route["run"], route["experiment"])
    below = route["below"]
    if method == "GET" and below == "children":
        return Reply(200, {"value": [record(context, row) for row in context.store.children(job.id).values()]})
    if method == "GET" and below == "details":
        return Reply(200, details(context, job))
    if method == "GET" and below is None:
        return Reply(200, record(context, job))
    if method == "PATCH" and below is None:
        return Reply(200, record(context, edit(context, job, body)))
    if method == "PATCH" and below == "tags":
        return Reply(200, record(context, edit_tags(context, job, body)))
    raise not_emulated(f"{method} of a run{'' if below is None else f' ({below})'}")


def edit_tags(context: KindContext, job: JobRow, body: Any) -> JobRow:
    """Sets some tags and takes others away: ``{"tagsToModify": {…}, "tagsToDelete": […]}``."""
    if not isinstance(body, dict) or body.keys() - TAG_EDITS.keys():
        raise invalid("", f"an object with {' and '.join(TAG_EDITS)} was expected.")
    for key, value in body.items():
        if not isinstance(value, TAG_EDITS[key]):
            raise invalid(key, f"expected {TAG_EDITS[key].__name__}, got {type(value).__name__}.")
    gone = body.get("tagsToDelete", [])
    with context.store.transaction():
        properties = dict(context.store.jobs[job.id].properties)
        tags = {**(properties.get("tags") or {}), **_strings("tagsToModify", body.get("tagsToModify", {}))}
        properties["tags"] = {name: value for name, value in tags.items() if name not in gone}
        context.store.jobs.set_body(job.id, {**job.body, "properties": properties})
    return context.store.jobs[job.id]


def edit(context: KindContext, job: JobRow, body: Any) -> JobRow:
    """Merges labels into a job: tags and properties by name, the rest as given; ``hidden`` archives it."""
    if not isinstance(body, dict):
        raise invalid("", "a JSON object was expected.")
    for key, value in body.items():
        if key not in EDITABLE:
            raise invalid(key, f"a run has no editable property '{key}'.{near(key, EDITABLE)}")
        if not isinstance(value, EDITABLE[key]):
            raise invalid(key, f"expected {EDITABLE[key].__name__}, got {type(value).__name__}.")
    with context.store.transaction():
        properties = dict(context.store.jobs[job.id].properties)
        for key, value in body.items():
            if isinstance(value, dict):
                properties[key] = {**(properties.get(key) or {}), **_strings(key, value)}
            else:
                properties["isArchived" if key == "hidden" else key] = value
        context.store.jobs.set_body(job.id, {**job.body, "properties": properties})
    return context.store.jobs[job.id]


_UNKNOWN: Final = (
    *("token", "tokenExpiryTimeUtc", "warnings", "lastStartTimeUtc", "currentComputeTime", "effectiveStartTimeUtc"),
    *("cancelationReason", "scheduleId", "scriptName", "runDefinition", "jobSpecification", "primaryMetricName"),
    *("createdFrom", "completeUri", "queueingInfo", "inputs", "outputs", "retainForLifetimeOfWorkspace", "name"),
)
"""Properties of a run that are null here."""
_TYPES: Final = {"Pipeline": "azureml.PipelineRun", "Sweep": "hyperdrive"}
"""By type of a job, the type of its run; "azureml.scriptrun" of any other."""
_COMPUTE: Final = {
    "targetType": "amlcompute", "vmSize": None, "instanceType": None, "instanceCount": 1, "gpuCount": 0,
    "priority": None, "region": None, "armId": None, "properties": None,
}  # fmt: skip
_ERROR: Final = dict.fromkeys(
    ("severity", "messageFormat", "messageParameters", "referenceCode", "detailsUri", "target")
) | {"details": [], "innerError": None, "debugInfo": None, "additionalInfo": None}


def record(context: KindContext, job: JobRow) -> Body:
    """A job as a run: status, times, labels, whose it is and where it runs.

    Source: recordings of azure-ai-ml's tests, 2022-12 to 2023-04 (docs/maintain/recordings.md).
    """
    properties = filled(job.properties)
    keys = context.store.family.above(job.id)
    above = [row for key in keys if (row := context.store.jobs.get(key)) is not None]
    is_step = bool(above) and above[0].properties.get("jobType") == "Pipeline"
    kind = "azureml.StepRun" if is_step else _TYPES.get(properties["jobType"], "azureml.scriptrun")
    script = {"orchestrator": "Execution", "traits": ["scriptRun", "remote"], "computeType": "AmlcTrain"}
    step = {**script, "traits": [kind, *script["traits"]], "attribution": "Aether"}
    plain = {"orchestrator": None, "traits": [kind], "attribution": None, "computeType": None}
    who = entra.known(job.body)
    target = str(properties.get("computeId") or "").rsplit("/", 1)[-1]
    count = (properties.get("resources") or {}).get("instanceCount", 1)
    execution = f"{context.base}/execution/v1.0{job.workspace}/experiments/{properties['experimentName']}/runId"
    cancel, diagnose = f"{execution}/{job.name}/cancel", f"{execution}/{job.name}/diagnostics"
    if is_step:
        place = job.workspace.replace("/providers/Microsoft.MachineLearningServices", "")
        cancel, diagnose = f"{context.base}/studioservice/apiv2{place}/runs/{job.name}/Cancel", ""
    changes = context.store.history.of("job", job.id)
    duration = _duration(job)
    return {
        **dict.fromkeys(_UNKNOWN),
        "runNumber": int(job.created),
        "runId": job.name,
        "parentRunId": above[0].name if above else None,
        "rootRunId": above[-1].name if above else job.name,
        "runUuid": _uuid(job),
        "parentRunUuid": _uuid(above[0]) if above else None,
        "rootRunUuid": _uuid(above[-1] if above else job),
        "experimentId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job.workspace}/{properties['experimentName']}".lower())),
        "dataContainerId": f"dcid.{job.name}",
        "createdUtc": with_offset(job.created),
        "createdBy": who,
        "userId": who["userObjectId"],
        "lastModifiedBy": who,
        "lastModifiedUtc": with_offset(changes[-1].at if changes else job.created),
        "revision": len(changes),
        "statusRevision": len(changes),
        "currentAttemptId": 1,
        "startTimeUtc": None if job.started is None else with_offset(job.started),
        "endTimeUtc": None if job.ended is None else with_offset(job.ended),
        "duration": duration,
        "computeDuration": duration,
        "runType": kind,
        "runTypeV2": step if is_step else plain if kind in _TYPES.values() else {**script, "attribution": kind},
        "status": job.status,
        "displayName": properties.get("displayName") or job.name,
        "description": properties.get("description"),
        "tags": properties["tags"],
        "properties": properties["properties"],
        "parameters": {},
        "settings": {},
        "services": {},
        "inputDatasets": [],
        "outputDatasets": [],
        "uniqueChildRunComputeTargets": [],
        "hidden": properties["isArchived"],
        "error": None if job.error is None else {"error": {**_ERROR, **asdict(job.error)}},
        "target": target,
        "compute": {"target": target, **_COMPUTE, "instanceCount": count} if target else None,
        "computeRequest": {"nodeCount": count, "gpuCount": 0} if target else None,
        "cancelUri": cancel,
        "diagnosticsUri": diagnose,
        "actionUris": {"Cancel": cancel, "Diagnose": diagnose},
    }


def _uuid(job: JobRow) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job.arm_id}:{job.created}"))


def _duration(job: JobRow) -> str | None:
    if job.ended is None:
        return None
    minutes, seconds = divmod(job.ended - (job.started or job.ended), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{hours:02.0f}:{minutes:02.0f}:{seconds:010.7f}".removesuffix(".0000000")
    return f"{days:.0f}.{text}" if days else text


def details(context: KindContext, job: JobRow) -> Body:
    """The part of the record that clients follow a run by, with its logs by signed addresses."""
    whole = record(context, job)
    shown = {name: value for name, value in whole.items() if name not in _NO_DETAILS}
    files = {name: _address(context, job, name) for name in logs(context, job)}
    return {**shown, "createdTimeUtc": whole["createdUtc"], "logFiles": files, "jobCost": dict.fromkeys(_COST)}


_NO_DETAILS: Final = frozenset({
    *("createdUtc", "dataContainerId", "token", "tokenExpiryTimeUtc", "cancelationReason", "scheduleId", "displayName"),
    *("name", "description", "hidden", "runType", "actionUris", "scriptName", "uniqueChildRunComputeTargets"),
    *("jobSpecification", "primaryMetricName", "createdFrom", "cancelUri", "completeUri", "diagnosticsUri"),
    *("retainForLifetimeOfWorkspace", "queueingInfo", "experimentId", "currentAttemptId"),
})  # fmt: skip
"""Properties of a run that its details lack, by azure-ai-ml's client of run history."""
_COST: Final = (
    *("chargedCpuCoreSeconds", "chargedCpuMemoryMegabyteSeconds"),
    *("chargedGpuSeconds", "chargedNodeUtilizationSeconds"),
)


def logs(context: KindContext, job: JobRow) -> tuple[str, ...]:
    """The job's log files, as paths such as ``user_logs/std_log_process_00.txt``."""
    folder = job_folder(context.store.home, job.id)
    return tuple(str(file.relative_to(folder)) for file in files_below(folder / "user_logs") if file.is_file())


def artifact(context: KindContext, path: str, query: Mapping[str, str]) -> Path:
    """The file behind a signed address of `details` (``/artifacts/<job key>/<path>?sig=…``)."""
    job, _, name = path.removeprefix("/artifacts/").partition("/")
    if not hmac.compare_digest(query.get("sig", "").encode(), sign(context.key, "artifact", job, name).encode()):
        raise Refused(403, "AuthenticationFailed", "The signature of this address is not valid.")
    folder = job_folder(context.store.home, job).resolve()
    file = (folder / name).resolve()
    if not file.is_relative_to(folder) or not file.is_file():
        raise Refused(404, "ResourceNotFound", f"The artifact '{name}' of the job '{job}' was not found.")
    return file


def _address(context: KindContext, job: JobRow, name: str) -> str:
    return f"{context.base}/artifacts/{quote(job.id)}/{quote(name)}?sig={sign(context.key, 'artifact', job.id, name)}"


def find_run(context: KindContext, workspace: str, run: str, experiment: str | None = None) -> JobRow:
    """The job that is a run of a workspace, or its own 404; of another experiment than the one named it is none."""
    job = context.store.jobs.find(workspace, run)
    if job is None or (experiment is not None and experiment != (job.properties.get("experimentName") or "Default")):
        place = f" in the experiment '{experiment}'" if experiment else ""
        raise Refused(404, "ResourceNotFound", f"Run {run} was not found{place}.")
    return job


def _strings(key: str, values: Mapping[str, Any]) -> dict[str, str]:
    for name, value in values.items():
        if not isinstance(value, str):
            raise invalid(f"{key}.{name}", f"expected str, got {type(value).__name__}.")
    return dict(values)


_WORKSPACE = r"(?P<workspace>/subscriptions/.+?/workspaces/[^/]+)"
_RUN_DATA = re.compile(rf"/history/v1\.0{_WORKSPACE}/rundata/?")
_SERVICES = re.compile(rf"/history/v1\.0{_WORKSPACE}/runs/(?P<run>[^/]+)/serviceinstances/(?P<node>[^/]+)/?")
_RESOLVED = re.compile(
    rf"/(?P<plane>data|modelregistry)/v1\.0{_WORKSPACE}/(?:dataversion|models)/batchGetResolvedUris/?"
)


def answer_download(context: KindContext, method: str, path: str, body: Any) -> Reply | None:
    """Answers a call with which azure-ai-ml finds what to download of a job; None for every other path.

    Raises:
        Refused: There is no such run, or the body is none.
    """
    if method == "POST" and (found := _RUN_DATA.fullmatch(path)):
        run = body.get("runId") if isinstance(body, dict) else None
        if not isinstance(run, str):
            raise invalid("runId", "the name of a run was expected.")
        job = find_run(context, found["workspace"], run)
        metadata = {**record(context, job), "inputs": {}, "outputs": _outputs(context, job)}
        return Reply(
            200, {"runMetadata": metadata, **dict.fromkeys(("runDefinition", "jobSpecification", "systemSettings"))}
        )
    if method == "GET" and (found := _SERVICES.fullmatch(path)):
        find_run(context, found["workspace"], found["run"])
        return Reply(200, {"instances": {}})
    if method == "POST" and (found := _RESOLVED.fullmatch(path)):
        return Reply(200, {"values": dict(_resolved(context, found["workspace"], found["plane"], body))})
    return None


def _outputs(context: KindContext, job: JobRow) -> Body:
    workspace = context.store.resources.get(job.workspace)
    known = workspace.body if workspace is not None else {"properties": {}}
    place = str(known["properties"].get("workspaceId")), str(known.get("location"))
    return {
        name: {"assetId": pipeline.asset_id(job, *place, name, kind), "type": MODELS.get(kind, kind)}
        for name, (kind, _) in pipeline.outputs_of(context.store, job).items()
    }


def _resolved(context: KindContext, workspace: str, plane: str, body: Any) -> Any:
    values = body.get("values") if isinstance(body, dict) else None
    if not isinstance(values, list):
        raise invalid("values", "a list of asset ids was expected.")
    for asset in values:
        if (found := pipeline.resolve_output(context.store, workspace, str(asset))) is not None:
            kind, uri = found
            yield asset, {"path": uri} if plane == "modelregistry" else {"uri": uri, "type": kind}
