"""Runs of MLflow: read, searched and changed through the tracking API."""

from __future__ import annotations

import math
import operator
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amlstack.sandbox import contract
from amlstack.sandbox.protocol.kind import KindContext, Reply
from amlstack.sandbox.store.store import JobRow, ResourceRow, Store, folder, job_folder

TYPE = "mlflow/runs"
EXPERIMENT = "mlflow/experiments"
"""The type of the rows that keep names of experiments in which nothing ran yet."""
INPUTS = "mlflow/inputs"
"""The type of the rows that keep which datasets a run read."""
STATUSES = {"Completed": "FINISHED", "Failed": "FAILED", "Canceled": "KILLED"}
"""MLflow's words for ends; all else is RUNNING."""
REPORTED = "mlflow.status"
"""The record's property for the status that the run itself reported: ``FINISHED`` a moment before its processes end."""
PARAMETER = "mlflow.param."
"""Prefix of a job's properties that keep what was logged as a parameter."""
PARENT = "mlflow.parentRunId"
NAME = "mlflow.runName"


class MlflowRefused(Exception):  # noqa: N818 - an answer, as `Refused` is
    """MLflow's way to say no: a status, a code and a message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, {"error_code": code, "message": message})


@dataclass(frozen=True, slots=True)
class MlflowRun:
    """One run.

    Attributes:
        key: What its metrics are kept under.
        id: Its id for clients; a job's is its name.
        job: The job that it is, or the one that it was made in; None for a run made outside of any.
        row: Where it is kept when it is no job.
        experiment: Name of its experiment.
        name: As it is shown.
        status: In MLflow's words.
        started, ended: Seconds since the epoch.
        parameters, tags: As they were logged.
        stage: ``active`` or ``deleted``.
        artifacts: The folder for its files.
    """

    key: str
    id: str
    job: JobRow | None
    row: ResourceRow | None
    experiment: str
    name: str
    status: str
    started: float
    ended: float | None
    parameters: dict[str, str]
    tags: dict[str, str]
    stage: str
    artifacts: Path


def find(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> MlflowRun:
    """The run that a call is about.

    Raises:
        MlflowRefused: There is none.
    """
    name = str(fields.get("run_id") or fields.get("run_uuid") or "")
    job = context.store.jobs.find(workspace, name)
    if job is not None:
        return of_job(context.store, job)
    for row in _made(context.store, workspace):
        if row.name == name:
            return of_row(context.store, row)
    raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", f"Run '{name}' not found.")


def everyone(context: KindContext, workspace: str) -> list[MlflowRun]:
    """All runs of a workspace, the oldest first."""
    runs = [of_job(context.store, job) for job in context.store.jobs.list(workspace)]
    runs += [of_row(context.store, row) for row in _made(context.store, workspace)]
    return sorted(runs, key=lambda run: run.started)


def show(context: KindContext, workspace: str, run: MlflowRun) -> Any:
    """A run as MLflow's REST interface has it."""
    last = {each.name: each for each in context.store.metrics.of(run.key)}
    info = {
        "run_id": run.id,
        "run_uuid": run.id,
        "run_name": run.name,
        "experiment_id": contract.experiment_id(workspace if run.job is None else run.job.workspace, run.experiment),
        "status": run.status,
        "start_time": int(run.started * 1000),
        "end_time": None if run.ended is None else int(run.ended * 1000),
        "lifecycle_stage": run.stage,
        # A folder of this machine, to which MLflow's client writes by itself, as it would to the run's storage.
        "artifact_uri": run.artifacts.as_uri(),
    }
    data = {
        "metrics": [metric(each) for each in last.values()],
        "params": pairs(run.parameters),
        "tags": pairs(run.tags),
    }
    kept = context.store.resources.get(inputs_key(workspace, run))
    return {"info": info, "data": data, "inputs": {} if kept is None else {"dataset_inputs": kept.body["datasets"]}}


def pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    """Names and values as MLflow lists them."""
    return [{"key": name, "value": value} for name, value in values.items()]


def metric(each: Any) -> Any:
    """One value of a metric; what is no finite number is a word."""
    value: float | str = each.value
    if not math.isfinite(each.value):
        value = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(each.value, "NaN")
    return {"key": each.name, "value": value, "step": each.step, "timestamp": int(each.at * 1000)}


def experiment_of(job: JobRow) -> str:
    """Name of a job's experiment."""
    return str(job.properties.get("experimentName") or "Default")


def of_job(store: Store, job: JobRow) -> MlflowRun:
    """A job as a run."""
    properties: Mapping[str, str] = job.properties.get("properties") or {}
    above = store.family.above(job.id)
    tags = {str(name): str(value) for name, value in (job.properties.get("tags") or {}).items()}
    if above and (parent := store.jobs.get(above[0])) is not None:
        tags[PARENT] = parent.name
    return MlflowRun(
        key=job.id,
        id=job.name,
        job=job,
        row=None,
        experiment=experiment_of(job),
        name=str(job.properties.get("displayName") or job.name),
        status=STATUSES.get(job.status, "RUNNING"),
        started=job.started or job.created,
        ended=job.ended,
        parameters={
            name.removeprefix(PARAMETER): value for name, value in properties.items() if name.startswith(PARAMETER)
        },
        tags=tags,
        stage="deleted" if job.properties.get("isArchived") else "active",
        artifacts=job_folder(store.home, job.id) / "artifacts",
    )


def of_row(store: Store, row: ResourceRow) -> MlflowRun:
    """A run that is no job, from its row."""
    body = row.body
    job = None if body["job"] is None else store.jobs.get(body["job"])
    root = folder(store.home) if job is None else job_folder(store.home, job.id)
    status, ended = body.get("status", "RUNNING"), body.get("ended")
    made = MlflowRun(
        key=row.key,
        id=row.name,
        job=job,
        row=row,
        experiment=body["experiment"],
        name=body["name"],
        status=status,
        started=body["started"],
        ended=ended,
        parameters=body.get("parameters", {}),
        tags={**body["tags"], NAME: body["name"]},
        stage=body.get("stage", "active"),
        artifacts=root / "runs" / row.name / "artifacts",
    )
    if job is not None and not job.active and status not in STATUSES.values():
        # No process is left that could end it.
        return replace(made, status=STATUSES[job.status], ended=job.ended)
    return made


def _made(store: Store, workspace: str) -> list[ResourceRow]:
    return [row for row in store.resources.of_type(TYPE) if row.body["workspace"] == workspace.lower()]


def experiments(context: KindContext, workspace: str) -> list[str]:
    """Names of the experiments of a workspace: those that runs have, and those that a client has named."""
    kept = {row.body["name"] for row in context.store.resources.under(workspace, EXPERIMENT)}
    return sorted(kept | {run.experiment for run in everyone(context, workspace)})


def experiment_named(context: KindContext, workspace: str, wanted: Any) -> str | None:
    """The name of the experiment with an id; None for one that nobody has named."""
    names = experiments(context, workspace)
    return next((name for name in names if contract.experiment_id(workspace, name) == wanted), None)


def inputs_key(workspace: str, run: MlflowRun) -> str:
    """Key of the row that keeps which datasets a run read."""
    return f"{workspace if run.job is None else run.job.arm_id}/runinputs/{run.id}"


_NAME = r"(?:(?P<of>attributes?|run|tags?|params?|parameters?|metrics?)\.)?(?P<key>`[^`]+`|\"[^\"]+\"|[\w./-]+)"
_CONDITION = re.compile(
    rf"\s*{_NAME}\s*(?P<how>!=|>=|<=|=|>|<|(?:NOT\s+)?IN\b|I?LIKE\b)\s*"
    r"(?P<value>'[^']*'|\"[^\"]*\"|-?[\d.]+(?:e[+-]?\d+)?|\([^)]*\))\s*",
    re.IGNORECASE,
)
_ORDER = re.compile(rf"\s*{_NAME}(?:\s+(?P<way>ASC|DESC))?\s*", re.IGNORECASE)
_AND = re.compile(r"AND\b", re.IGNORECASE)
_WORDS = re.compile(r"'([^']*)'|\"([^\"]*)\"")
PROMPT = "mlflow.prompt.is_prompt"
"""Clients keep prompts out of every list of models by this tag, which models do not have."""
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def matches(text: str, facts: Mapping[str, Mapping[str, Any]]) -> bool:
    """True where all conditions of a filter hold; an empty filter holds.

    Args:
        text: The filter.
        facts: What is known of one thing: ``attributes``, ``tags``, ``params``, ``metrics``, each by name.

    Raises:
        MlflowRefused: It is not understood.
    """
    held, at = True, 0
    while text[at:].strip():
        found = _CONDITION.match(text, at)
        if found is None:
            raise _unread("filter", text)
        held = _holds(found, facts) and held
        at = found.end()
        if joint := _AND.match(text, at):
            at = joint.end()
        elif text[at:].strip():
            raise _unread("filter", text)
    return held


def ordered(things: list[Any], orders: Sequence[str], facts: Callable[[Any], Any]) -> list[Any]:
    """Things in the order asked for; those without the value come last, and what is equal keeps its order.

    Raises:
        MlflowRefused: An order is not understood.
    """
    for order in reversed(orders):
        found = _ORDER.fullmatch(order)
        if found is None:
            raise _unread("order_by", order)
        pairs = [(thing, _value(found, facts(thing))) for thing in things]
        down = (found["way"] or "ASC").upper() == "DESC"
        there = sorted((pair for pair in pairs if pair[1] is not None), key=lambda pair: pair[1], reverse=down)
        things = [thing for thing, _ in there] + [thing for thing, value in pairs if value is None]
    return things


def page(things: list[Any], fields: Mapping[str, Any], most: int = 1000) -> tuple[list[Any], dict[str, str]]:
    """One page of an answer, and ``next_page_token`` when there are more."""
    begin, count = int(fields.get("page_token") or 0), int(fields.get("max_results") or most)
    more = {"next_page_token": str(begin + count)} if len(things) > begin + count else {}
    return things[begin : begin + count], more


def _holds(found: re.Match[str], facts: Mapping[str, Mapping[str, Any]]) -> bool:
    value, how, literal = _value(found, facts), " ".join(found["how"].upper().split()), found["value"]
    if how.endswith("IN"):
        words = [first or second for first, second in _WORDS.findall(literal)]
        return value is not None and (str(value) in words) is not how.startswith("NOT")
    if value is None:
        return how == "!=" and PROMPT in found["key"]
    if how.endswith("LIKE"):
        pattern = ".*".join(re.escape(part) for part in literal[1:-1].split("%"))
        return re.fullmatch(pattern, str(value), re.IGNORECASE if how == "ILIKE" else 0) is not None
    if isinstance(value, str):
        return _COMPARED[how](value, literal[1:-1] if literal[0] in "'\"" else literal)
    return _COMPARED[how](float(value), float(literal.strip("'\"")))


def _value(found: re.Match[str], facts: Mapping[str, Mapping[str, Any]]) -> Any:
    kind = (found["of"] or "attributes").lower()
    kind = {"p": "params", "t": "tags", "m": "metrics"}.get(kind[0], "attributes")
    name = found["key"].strip('`"')
    if kind == "attributes" and name not in facts["attributes"]:
        known = ", ".join(sorted(facts["attributes"]))
        message = f"Invalid attribute key '{name}' specified. Valid keys are '{known}'."
        raise MlflowRefused(400, "INVALID_PARAMETER_VALUE", message)
    return facts.get(kind, {}).get(name)


def _unread(what: str, text: str) -> MlflowRefused:
    return MlflowRefused(400, "INVALID_PARAMETER_VALUE", f"The sandbox does not understand the {what} {text!r}.")


def create(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> MlflowRun:
    """A new run; below a job when its tags name that, or a run within it, as the parent.

    Raises:
        MlflowRefused: The parent does not exist.
    """
    tags = {str(each["key"]): str(each["value"]) for each in fields.get("tags") or ()}
    parent = find(context, workspace, {"run_id": tags[PARENT]}) if tags.get(PARENT) else None
    job = None if parent is None else parent.job
    named, wanted = None if parent is None else parent.experiment, str(fields.get("experiment_id") or "")
    identity = str(uuid.uuid4())
    above = workspace if job is None else job.arm_id
    body = {
        "workspace": workspace.lower(),
        "job": None if job is None else job.id,
        "experiment": named or experiment_named(context, workspace, wanted) or "Default",
        "name": str(fields.get("run_name") or tags.get(NAME) or identity[:8]),
        "started": int(fields.get("start_time") or time.time() * 1000) / 1000,
        "tags": tags,
    }
    return of_row(context.store, context.store.resources.put(f"{above}/runs/{identity}", TYPE, above, body))


def update(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> None:
    """Takes the status that a run reports. A job's own end decides its status all the same."""
    status = fields.get("status")
    if run.row is None:
        keep(context, run, {REPORTED: str(status)} if status else {}, prefix="")
        return
    given = {"status": status, "name": fields.get("run_name")}
    changed: dict[str, Any] = {name: str(value) for name, value in given.items() if value}
    if status in STATUSES.values() or fields.get("end_time"):
        changed["ended"] = int(fields.get("end_time") or time.time() * 1000) / 1000
    _put(context, run.row, changed)


def keep(context: KindContext, run: MlflowRun, values: Mapping[str, Any], *, prefix: str = PARAMETER) -> None:
    """Records parameters (of a job: among its properties)."""
    if run.row is None:
        _merge(context, run, "properties", {f"{prefix}{name}": value for name, value in values.items()})
    else:
        _merge(context, run, "parameters", values)


def tag(context: KindContext, run: MlflowRun, tags: Mapping[str, Any]) -> None:
    """Sets tags; of a job not MLflow's own bookkeeping (mlflow.user, mlflow.source.name), which no person set."""
    own = run.row is not None
    set_tags(context, run, {name: value for name, value in tags.items() if own or not name.startswith("mlflow.")})


def set_tags(context: KindContext, run: MlflowRun, tags: Mapping[str, Any]) -> None:
    """Sets tags as they are."""
    _merge(context, run, "tags", tags)


def untag(context: KindContext, run: MlflowRun, name: str) -> None:
    """Takes a tag away.

    Raises:
        MlflowRefused: It has none of this name.
    """
    if name not in run.tags:
        raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", f"No tag with name: {name} in run with id {run.id}.")
    _edit(context, run, "tags", lambda old: {key: value for key, value in old.items() if key != name})


def stage(context: KindContext, run: MlflowRun, word: str) -> None:
    """Deletes a run for clients, or brings it back; it stays in the tables. Jobs are archived, not deleted."""
    if run.row is not None:
        _put(context, run.row, {"stage": word})
        return
    job = context.store.jobs[run.key]
    properties = {**job.properties, "isArchived": word == "deleted"}
    context.store.jobs.set_body(run.key, {**job.body, "properties": properties})


def read_data(context: KindContext, workspace: str, run: MlflowRun, datasets: Iterable[Mapping[str, Any]]) -> None:
    """Notes which datasets a run reads (``mlflow.log_input``, and what autologging finds out).

    Raises:
        KeyError: One has no name, digest, source or type of source.
    """
    for one in datasets:
        for field in ("name", "digest", "source_type", "source"):
            one["dataset"][field]
    place = inputs_key(workspace, run)
    with context.store.transaction():
        before = context.store.resources.get(place)
        known = [] if before is None else before.body["datasets"]
        fresh = [dict(one) for one in datasets if one not in known]
        context.store.resources.put(place, INPUTS, place.rsplit("/", 2)[0], {"datasets": [*known, *fresh]})


def _merge(context: KindContext, run: MlflowRun, key: str, values: Mapping[str, Any]) -> None:
    if values:
        _edit(context, run, key, lambda old: {**old, **{str(name): str(value) for name, value in values.items()}})


def _edit(context: KindContext, run: MlflowRun, key: str, change: Any) -> None:
    with context.store.transaction():
        if run.row is None:
            job = context.store.jobs[run.key]
            changed = {**job.properties, key: change(job.properties.get(key) or {})}
            context.store.jobs.set_body(run.key, {**job.body, "properties": changed})
        else:
            row = context.store.resources.get(run.key)
            _put(context, run.row, {key: change({} if row is None else row.body.get(key) or {})})


def _put(context: KindContext, row: ResourceRow, changed: Mapping[str, Any]) -> None:
    with context.store.transaction():
        now = context.store.resources.get(row.key) or row
        context.store.resources.put(row.id, TYPE, row.parent, {**now.body, **changed})
