"""Run history, the data plane through which azure-ai-ml edits metadata, reads logs and finds what to download."""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from amlstack.base.paths import files_below
from amlstack.sandbox.files.datastores import MODELS
from amlstack.sandbox.orchestration import pipeline
from amlstack.sandbox.protocol.entra import sign
from amlstack.sandbox.protocol.kind import Body, KindContext, Reply
from amlstack.sandbox.protocol.refusals import Refused, invalid, near, not_emulated
from amlstack.sandbox.protocol.times import with_offset
from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow

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
        return Reply(200, {"value": [details(context, row) for row in context.store.children(job.id).values()]})
    if method == "GET" and below != "tags":
        return Reply(200, details(context, job))
    if method == "PATCH" and below is None:
        return Reply(200, details(context, edit(context, job, body)))
    if method == "PATCH" and below == "tags":
        return Reply(200, details(context, edit_tags(context, job, body)))
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


def details(context: KindContext, job: JobRow) -> Body:
    """The record of a job in run history: status, times, labels, error, and its logs with signed addresses."""
    properties = job.properties
    error = None if job.error is None else {"error": {"code": job.error.code, "message": job.error.message}}
    above = [row.name for key in context.store.family.above(job.id) if (row := context.store.jobs.get(key)) is not None]
    return {
        "runId": job.name,
        "parentRunId": above[0] if above else None,
        "rootRunId": above[-1] if above else job.name,
        "experimentName": properties.get("experimentName") or "Default",
        "target": str(properties.get("computeId") or "").rsplit("/", 1)[-1],
        "runType": properties.get("jobType") or "Command",
        "status": job.status,
        "createdUtc": with_offset(job.created),
        "startTimeUtc": None if job.started is None else with_offset(job.started),
        "endTimeUtc": None if job.ended is None else with_offset(job.ended),
        "displayName": properties.get("displayName") or job.name,
        "description": properties.get("description"),
        "tags": properties.get("tags") or {},
        "properties": properties.get("properties") or {},
        "hidden": bool(properties.get("isArchived", False)),
        "error": error,
        "logFiles": {name: _address(context, job, name) for name in logs(context, job)},
    }


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
        return Reply(200, {"runMetadata": {**details(context, job), "outputs": _outputs(context, job)}})
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
        name: {
            "assetId": pipeline.asset_id(job, *place, name, kind),
            "type": MODELS.get(kind, kind),
        }
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
