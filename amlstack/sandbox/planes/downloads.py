"""The calls of the data plane with which azure-ai-ml finds what to download of a job, and the services on its nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.files.datastores import MODELS
from amlstack.sandbox.orchestration import pipeline
from amlstack.sandbox.planes import run_history
from amlstack.sandbox.protocol.kind import Reply
from amlstack.sandbox.protocol.refusals import invalid

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import Body, KindContext
    from amlstack.sandbox.store.store import JobRow

_WORKSPACE = r"(?P<workspace>/subscriptions/.+?/workspaces/[^/]+)"
_RUN_DATA = re.compile(rf"/history/v1\.0{_WORKSPACE}/rundata/?")
_SERVICES = re.compile(rf"/history/v1\.0{_WORKSPACE}/runs/(?P<run>[^/]+)/serviceinstances/(?P<node>[^/]+)/?")
_RESOLVED = re.compile(
    rf"/(?P<plane>data|modelregistry)/v1\.0{_WORKSPACE}/(?:dataversion|models)/batchGetResolvedUris/?"
)


def answer(context: KindContext, method: str, path: str, body: Any) -> Reply | None:
    """Answers such a call; None for every other path.

    Raises:
        Refused: There is no such run, or the body is none.
    """
    if method == "POST" and (found := _RUN_DATA.fullmatch(path)):
        run = body.get("runId") if isinstance(body, dict) else None
        if not isinstance(run, str):
            raise invalid("runId", "the name of a run was expected.")
        job = run_history.found(context, found["workspace"], run)
        return Reply(200, {"runMetadata": {**run_history.details(context, job), "outputs": _outputs(context, job)}})
    if method == "GET" and (found := _SERVICES.fullmatch(path)):
        run_history.found(context, found["workspace"], found["run"])
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
