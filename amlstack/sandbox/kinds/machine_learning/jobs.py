"""Jobs of a workspace: the body, the compute, code, environment and size that it names, and its actions."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from amlstack.catalog import sizes
from amlstack.sandbox import slurm
from amlstack.sandbox.files import environments as handed
from amlstack.sandbox.files import storage
from amlstack.sandbox.kinds.machine_learning.job_answers import BEGUN, RUN, TYPE, filled, own_output, rendered
from amlstack.sandbox.orchestration import progress
from amlstack.sandbox.orchestration.parent import PARENTS
from amlstack.sandbox.protocol import entra, requests, typecheck
from amlstack.sandbox.protocol.addresses import GROUPS, ML, ArmPath
from amlstack.sandbox.protocol.kind import Body, KindContext, Reply, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid, near, not_emulated
from amlstack.sandbox.scale import QUERY, RehearsalScale
from amlstack.sandbox.store.store import JobRow, ResourceRow, job_folder

if TYPE_CHECKING:
    from amlstack.sandbox.store.jobs import ListedJob
    from amlstack.sandbox.store.tables import Operation

CURATED = re.compile(
    r"azureml://registries/(?P<registry>[^/]+)/environments/(?P<name>[^/]+)/(versions|labels)/(?P<version>[^/]+)"
)
SHORT = re.compile(r"azureml:AzureML-(?P<name>[^/@:]+)(?:@latest|:(?P<version>[^/@:]+))")
"""The short form of a curated environment, which the service expands itself."""


def _check_command(context: KindContext, path: ArmPath, properties: Body) -> None:
    """Refuses a command job whose compute, code, environment or size does not exist, or whose nodes do not fit."""
    for kind in ("inputs", "outputs"):
        for name, port in (properties.get(kind) or {}).items():
            where = f"properties.{kind}.{name}"
            requests.check_folder_name(name, where)
            requests.check_uri(str((port or {}).get("uri") or ""), f"{where}.uri")
    _check_compute(context, path, properties)
    if (code := properties.get("codeId")) is not None:
        _named(context, path, code, "codes", "properties.codeId")
    _check_environment(context, path, properties["environmentId"])


def _check_compute(context: KindContext, path: ArmPath, properties: Body) -> None:
    """Checks where a job runs; with neither compute nor size the service chooses a size that the quota has room for."""
    compute, resources = properties.get("computeId"), properties.get("resources") or {}
    count = resources.get("instanceCount", 1)
    if count < 1:
        raise invalid("properties.resources.instanceCount", f"{count} nodes; at least 1 is needed.")
    if compute:
        if "/virtualclusters/" in compute.lower():
            raise not_emulated(f"virtual clusters ('{compute}')")
        cluster = _named(context, path, compute, "computes", "properties.computeId")
        high = cluster.body["properties"]["properties"]["scaleSettings"]["maxNodeCount"]
        if count > high:
            message = (
                f"The job asks for {count} nodes, but the compute '{cluster.name}' has at most {high} "
                "(scaleSettings.maxNodeCount)."
            )
            raise Refused(400, "InvalidNodeCount", message, "properties.resources.instanceCount")
    elif size := resources.get("instanceType"):
        check_size(size, "properties.resources.instanceType")


def _named(context: KindContext, path: ArmPath, given: str, word: str, where: str) -> ResourceRow:
    """The resource of the workspace that a job names; refused where there is none."""
    root = f"{path.parent}/{word}/".lower()
    known = context.store.resources.get(given)
    if known is None or not known.key.startswith(root):
        names = [row.id for row in context.store.resources.below(path.parent) if row.key.startswith(root)]
        raise Refused(400, "UserError", f"'{given}' was not found in the workspace.{near(given, names)}", where)
    return known


def _check_environment(context: KindContext, path: ArmPath, given: str) -> None:
    """Refuses an environment that is none; Azure Machine Learning takes any name of its registry at first.

    Source: azure-sdk-assets, recordings of azure-ai-ml, 2026-03-27: a name retired before is taken. A job whose
    environment has no stand-in fails when it starts, and says so by name.
    """
    where = "properties.environmentId"
    if handed.are_given(context.store.home, path.name, given):
        return
    curated = SHORT.fullmatch(given) or CURATED.fullmatch(given)
    if curated is None and given.startswith("azureml:"):
        rule = "an environment is an ARM id or 'azureml://registries/azureml/environments/<name>/versions/<version>'."
        raise invalid(where, f"'{given}': {rule}")
    if curated is None:
        if handed.curated(given) is None or context.store.resources.get(given) is not None:
            _named(context, path, given, "environments", where)
        return
    if (registry := curated.groupdict().get("registry", "azureml")) != "azureml":
        raise not_emulated(f"the registry '{registry}', only 'azureml'")


def check_size(name: str, where: str) -> None:
    """Refuses a VM size that Azure does not have; near misses by name."""
    if sizes.get(name) is None:
        close = sizes.near(name)
        hint = f" Did you mean {' or '.join(repr(each) for each in close)}?" if close else ""
        raise Refused(400, "InvalidVmSize", f"The VM size '{name}' is not known in any region.{hint}", where)


ABOVE = frozenset({GROUPS.lower(), f"{ML}/workspaces".lower()})
"""The types of resources that jobs lie below."""
MUTABLE = ("description", "tags", "displayName", "properties", "isArchived")


class JobKind(ResourceKind):
    """Jobs. They live in a table of their own, so they answer themselves."""

    type = TYPE

    def in_version(self, body: Body, version: str) -> Body:
        """Leaves out what came later; `queueSettings` is null since 2023-02-01 where a job has none."""
        shown = super().in_version(body, version)
        for row in shown["value"] if isinstance(shown.get("value"), list) else [shown]:
            properties = row.get("properties", {})
            if version < "2023-02-01" and properties.get("queueSettings") is None:
                properties.pop("queueSettings", None)
        return shown

    def answer(
        self, context: KindContext, method: str, path: ArmPath, query: Mapping[str, str], body: Any
    ) -> Reply | None:
        """Answers GET, PUT and DELETE of a job, and GET of the list."""
        if path.collection:
            if method != "GET":
                raise Refused(405, "MethodNotAllowed", f"{method} is not allowed on the collection '{path.text}'.")
            return _list(context, path.parent, query)
        if method == "PUT":
            return _put(context, path, body, query)
        if method == "DELETE":
            return _delete(context, path)
        if method == "GET":
            return Reply(200, rendered(found(context, path), context.base))
        raise not_emulated(f"{method} of {TYPE}")

    def act(self, context: KindContext, path: ArmPath, name: str, body: Body) -> Reply | Operation:
        """Answers ``POST …/cancel``: the job is asked to end, which is an operation; an ended one stays as it is.

        An ended pipeline is refused (azure-ai-ml's test_pipeline_job and test_control_flow_pipeline, 2023-04-26).
        """
        if name.lower() != "cancel":
            raise not_emulated(f"the action '{name}' of {TYPE}")
        job = found(context, path)
        if job.properties.get("jobType") == "Pipeline" and not job.active:
            message = f"The pipeline run {job.name} is in terminal status, it can't be canceled."
            inner = "BadArgument", "ArgumentInvalid", "CancelPipelineRunInTerminalStatus"
            raise Refused(400, "UserError", message, inner=inner)
        if not job.active:
            return Reply(200)
        cancel(context, job.id)
        return context.store.operations.start(job.arm_id, "cancel", 2)

    def end_below(self, context: KindContext, resource: ResourceRow) -> bool:
        """Cancels every job at or below a resource; whether all have ended."""
        return _end(context, _below(context, resource))

    def forget_below(self, context: KindContext, resource: ResourceRow) -> None:
        """Removes the records of every job at or below a resource."""
        for job in _below(context, resource):
            _forget(context, job)


def cancel(context: KindContext, key: str) -> None:
    """Asks for a job's end (by its table key), and gives it at once where nothing of the job has begun."""
    with context.store.transaction():
        now = context.store.jobs.look(key) if context.store.jobs.request_cancel(key) else None
        if now and now.runner_pid is None and not (context.scheduled and (now.placed or now.type in PARENTS)):
            context.store.jobs.move(key, "Canceled", detail="cancelled before it started")
    context.wake.set()


def found(context: KindContext, path: ArmPath) -> JobRow:
    """The job, or its own 404."""
    job = context.store.jobs.find(path.parent, path.name)
    if job is None:
        told = "Job {jobId} not found.", {"jobId": path.name}
        inner = "NotFound", "JobNotFound"
        raise Refused(404, "UserError", f"Job {path.name} not found.", inner=inner, template=told)
    return job


def end_on(context: KindContext, compute: ResourceRow) -> bool:
    """Cancels every job that runs or waits on a compute; whether all have ended."""
    there = (job.id for job in context.store.jobs.active() if job.cluster == compute.key)
    return _end(context, map(context.store.jobs.get, there))


def _below(context: KindContext, resource: ResourceRow) -> tuple[JobRow, ...]:
    prefix = resource.key + "/"
    if resource.type.lower() not in ABOVE:
        return ()
    return tuple(job for job in context.store.jobs.list() if job.arm_id.lower().startswith(prefix))


def _end(context: KindContext, jobs: Iterable[JobRow | None]) -> bool:
    done = True
    for job in jobs:
        if job is not None and job.active:
            cancel(context, job.id)
            done = done and not context.store.jobs[job.id].active
    return done


def _list(context: KindContext, workspace: str, query: Mapping[str, str]) -> Reply:
    view, most = query.get("listViewType", "ActiveOnly"), requests.count(query)
    children = context.store.family.members()
    left_out, last = requests.behind(query)
    if most is not None or context.store.jobs.look(last) is None:  # counted from the first one, or from a place
        left_out, last = 0, ""
    enough = requests.PAGE + 1 if most is None and (last or not query.get(requests.NEXT)) else most
    shown = (
        job
        for job in context.store.jobs.listed(workspace, last)
        if job.id not in children
        and (view == "All" or job.archived is (view == "ArchivedOnly"))
        and _asked_for(query, job)
    )
    rows = list(islice(shown, enough))

    def shown_row(job: ListedJob) -> Body:
        return rendered(context.store.jobs[job.id], context.base)

    address = f"{context.base}{workspace}/jobs"
    return Reply(200, requests.page(address, query, rows, lambda job: job.id, shown_row, left_out=left_out))


def _asked_for(query: Mapping[str, str], job: ListedJob) -> bool:
    """True where a job has what a list is narrowed to: ``jobType``, ``tag`` (its name), ``properties``."""
    if (kind := query.get("jobType")) and kind.lower() != job.type.lower():
        return False
    if (tag := query.get("tag")) and tag not in job.tags:
        return False
    return requests.holds(query.get("properties", ""), job.properties)


def _put(context: KindContext, path: ArmPath, body: Any, query: Mapping[str, str]) -> Reply:
    smaller = query.get(QUERY)
    scale = None if smaller is None else RehearsalScale.read(smaller)
    if smaller is not None and scale is None:
        message = f"The scale of a rehearsal is NODESxRANKS, for example 2x2; '{smaller}' is not."
        raise Refused(400, "InvalidQueryParameterValue", message, QUERY)
    try:
        site = slurm.profile_for(context.store.home, query.get(slurm.QUERY))
    except ValueError as error:
        raise Refused(400, "InvalidQueryParameterValue", str(error), slurm.QUERY) from None
    if not isinstance(body, dict):
        raise Refused(400, "InvalidRequestContent", "The request content was invalid: a JSON object was expected.")
    KIND.names.check(path.name, KIND.noun)
    body = typecheck.check(KIND, body, query.get("api-version", ""))
    properties = body["properties"]
    outputs = properties.get("outputs") or {}
    if (outputs.get(RUN) or {}).get("uri") == own_output(path.name)["uri"]:  # from an answer
        properties["outputs"] = {name: port for name, port in outputs.items() if name != RUN}
    trial = properties.get("trial") or {}
    if found := SHORT.fullmatch(str(trial.get("environmentId"))):  # of a sweep alone it is answered by its id
        place = f"{path.parent}/environments/AzureML-{found['name']}/versions/{found['version'] or handed.NEWEST}"
        properties["trial"] = {**trial, "environmentId": place if handed.curated(place) else trial["environmentId"]}
    with context.store.transaction():
        before = context.store.jobs.find(path.parent, path.name)
        if before is not None:
            _check_fixed(before, properties)
            labels = {name: properties[name] for name in MUTABLE if name in properties}
            context.store.jobs.set_body(before.id, {**before.body, "properties": {**before.properties, **labels}})
            return Reply(200, rendered(context.store.jobs[before.id], context.base))
        check_references(context, path, properties)
        workspace = context.store.resources[path.parent].id  # in its maker's letters, as a GET answers it
        job = context.store.jobs.add(workspace, path.name, entra.signed({"properties": properties}, None))
        if scale is not None:
            context.store.scales.put(job.id, scale)
        if site is not None:
            context.store.sites.put(job.id, site.text())
    context.wake.set()
    made = rendered(job, context.base)
    made["properties"]["status"] = BEGUN[properties["jobType"]]
    location = {"Location": f"{context.base}{path.text}?api-version={query.get('api-version', '')}"}
    return Reply(201, made, headers={**location, **({} if scale is None else {QUERY: str(scale)})})


def check_references(context: KindContext, path: ArmPath, properties: Body) -> None:
    """Require that all a job refers to is there; of a sweep or a pipeline what each of its children would refer to."""
    kind = properties["jobType"]
    if kind == "Command":
        _check_command(context, path, properties)
        return
    if kind not in PARENTS:
        raise not_emulated(f"jobs of type '{kind}', only Command, {' and '.join(sorted(PARENTS))}")
    for where, draft in progress.drafts(context.store, path.name, properties):
        try:
            check_references(context, path, typecheck.check(KIND, {"properties": draft})["properties"])
        except Refused as refused:
            raise Refused(refused.status, refused.code, f"{where}: {refused.message}", where) from None


def _check_fixed(before: JobRow, properties: Body) -> None:
    old, new = filled(before.properties), filled(properties)
    skip = (*MUTABLE, "services", "status")
    changed = sorted(
        name for name in {*old, *new} if name not in skip and _plain(old.get(name)) != _plain(new.get(name))
    )
    if changed:
        message = (
            "Only description, tags, displayName, properties, and isArchived can be updated. "
            f"Changed: {', '.join(changed)}."
        )
        raise Refused(400, "JobPropertyImmutable", message, f"properties.{changed[0]}")


def _plain(value: Any) -> Any:
    """Null and absent are the same on the wire; ARM ids ignore letter case only where the client keeps them."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items() if entry is not None}
    return value


def _delete(context: KindContext, path: ArmPath) -> Reply:
    job = context.store.jobs.find(path.parent, path.name)
    if job is None:
        return Reply(204)
    if job.active:
        message = f"The job '{job.name}' is {job.status}. Cancel it first and wait for its end."
        raise Refused(409, "JobIsActive", message)
    if any(context.store.jobs[above].active for above in context.store.family.above(job.id)):
        message = f"The job '{job.name}' belongs to a sweep or pipeline that is active, and is deleted with it."
        raise Refused(409, "JobIsActive", message)
    _forget(context, job)
    return Reply(200)


def _forget(context: KindContext, job: JobRow) -> None:
    for child in context.store.children(job.id).values():
        _forget(context, child)
    storage.forget_artifacts(context.store, job)
    context.store.nodes.release(job.id)
    for run in context.store.resources.below(job.arm_id):  # those that it made with MLflow
        context.store.metrics.forget(run.key)
        context.store.resources.delete(run.key)
    context.store.jobs.delete(job.id)
    shutil.rmtree(job_folder(context.store.home, job.id), ignore_errors=True)


KIND = JobKind()
