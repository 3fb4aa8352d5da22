"""An Azure ML CLI v2 pipeline job file as a `Pipeline`, passed through unchanged."""

from __future__ import annotations

import re
from typing import Any

from amlstack.base.findings import Level
from jobs.azureml.fields import Bad, Cursor, Nullable, Reader, has_keys, keys, named, text, truth, unsent, word
from jobs.azureml.read import command, component, data, passthrough, sweep
from jobs.azureml.read.passthrough import split_unknown
from jobs.model.job import NO_ENVIRONMENT
from jobs.model.pipeline import PASSED_THROUGH, BareOutput, Pipeline, PipelineSettings, Step, SweepStep
from jobs.values import EXPRESSION, Output
from jobs.wire.keys import blocks

STEP_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_OTHERS = ("import", "if_else", "do_while", "parallel_for")
_READ = ", ".join(f"`{kind}`" for kind in ("command", "sweep", *PASSED_THROUGH[:-1])) + f" and `{PASSED_THROUGH[-1]}`"


def _output(cursor: Cursor) -> Any:
    """An output: bound to one of the pipeline's with a text, or described."""
    return Output(path=cursor.value) if isinstance(cursor.value, str) else _described(cursor)


def _described(cursor: Cursor) -> Any:
    """An output that is described, which has a type of its own."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping, such as `type: uri_folder`")
    fields = data.output(cursor)
    return Output(**{"type": fields.type, **{name: getattr(fields, name) for name in fields.model_fields_set}})


def _bound(cursor: Cursor) -> Any:
    """An output of a step of a component: a text can only bind it."""
    if isinstance(cursor.value, str) and not EXPRESSION.fullmatch(cursor.value):
        return cursor.wrong("a mapping, or bound with `${{parent.outputs.NAME}}`")
    return _output(cursor)


NODE = {
    "type": word({"command": "command", "sweep": "sweep"}),
    "inputs": data.inputs,
    "outputs": named(Nullable(_bound)),
    "identity": command.identity,
    "queue_settings": command.queue,
    "tags": data.tags,
    "properties": data.tags,
    "comment": text,
    **{key: command.KEYS[key] for key in ("compute", "display_name")},
}
STEP: dict[str, Reader] = {
    **NODE,
    "component": component.reference,
    **{
        key: command.KEYS[key]
        for key in ("environment_variables", "distribution", "resources", "limits", "services", "environment")
    },
    "display_name": Nullable(text),
    "tags": Nullable(data.tags),
    "code": Nullable(text),
    "command": text,
    "name": Nullable(text),
    **dict.fromkeys(("description", "experiment_name", "is_deterministic"), unsent),
}
_UNSENT = ("environment", "code", "command", "name", "description", "experiment_name", "is_deterministic")
"""Keys of a step of a component that azure-ai-ml takes and does not send."""
SWEEP = {**NODE, **sweep.PARTS, "trial": component.reference, "description": text}
INLINE = {
    **command.KEYS,
    "outputs": named(lambda cursor: BareOutput() if cursor.value is None else _output(cursor)),
    "type": NODE["type"],
}


def _step(cursor: Cursor) -> Any:
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a step, a mapping of keys")
    kind = cursor.value.get("type", "command")
    if isinstance(kind, str) and kind.lower() in _OTHERS:
        return cursor.stated("step-type", Level.ERROR, "type", kind=kind, _READ=_READ)
    if isinstance(kind, str) and kind.lower() in PASSED_THROUGH:
        return passthrough.read_step(cursor, kind.lower(), NODE, INLINE["outputs"], passthrough.Steps(steps, path_of))
    if "type" in cursor.value and NODE["type"](cursor.at("type")) == "sweep":
        return _sweep_step(cursor)
    return _component_step(cursor) if "component" in cursor.value else _inline(cursor)


def _component_step(cursor: Cursor) -> Any:
    fields, extra = split_unknown(cursor, STEP, "a step of a component")
    fields.pop("type", None)
    fields = {key: value for key, value in fields.items() if value is not None or key not in ("display_name", "tags")}
    for key in _UNSENT:
        if key in fields and fields.pop(key) is not None:
            cursor.stated("lost-in-rendering/component-step", Level.WARNING, key, key=key)
    if "component" not in fields:
        return Bad
    return Step(**command.job_fields(fields), extra=extra)


def _sweep_step(cursor: Cursor) -> Any:
    fields, extra = split_unknown(cursor, SWEEP, "a sweep step")
    fields.pop("type", None)
    fields.pop("description", None)
    needed = ("trial", "objective", "limits")
    complete = has_keys(cursor, fields, needed, "The sweep has no `{}`", "A sweep step has `{}`")
    return SweepStep(**fields, extra=extra) if complete else Bad


def _inline(cursor: Cursor) -> Any:
    job = command.read(cursor, INLINE, default={"environment": NO_ENVIRONMENT})
    if job is None:
        return Bad
    if job.environment == NO_ENVIRONMENT:
        cursor.stated("key-missing/inline", Level.WARNING)
    for key in ("name", "experiment_name", "parent_job_name"):
        if getattr(job, key) is not None:
            cursor.stated("lost-in-rendering/inline", Level.WARNING, key, key=key)
    return job


def steps(cursor: Cursor) -> Any:
    """The steps of a pipeline, by name."""
    fields = named(_step)(cursor)
    for name in fields if isinstance(fields, dict) else ():
        if not STEP_NAME.fullmatch(name):
            cursor.stated("step-name", Level.ERROR, name, name=name, sub=re.sub("[^a-z0-9_]", "_", name.lower()))
    return fields


def _reference(wanted: str, *words: str) -> Reader:
    """A reader of a name with ``azureml:``, or of one of a few words."""

    def read_reference(cursor: Cursor) -> Any:
        value = text(cursor)
        if value is Bad or value.lower() in words or value.startswith("azureml:"):
            return value
        return cursor.wrong(wanted, f"Write `azureml:{value}`." if value else "")

    return read_reference


SETTINGS = {
    "default_compute": _reference("`azureml:NAME` of a cluster, or `serverless`", "serverless"),
    "default_datastore": _reference("`azureml:NAME` of a datastore"),
    "continue_on_step_failure": truth,
    "force_rerun": truth,
}


def _settings(cursor: Cursor) -> Any:
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping of settings")
    fields, extra = split_unknown(cursor, SETTINGS, "the settings of a pipeline")
    return PipelineSettings(**fields, extra=extra)


KEYS = {
    "type": word({"pipeline": "pipeline"}, str),
    "jobs": steps,
    "component": component.reference,
    "settings": _settings,
    "inputs": data.inputs,
    "outputs": named(Nullable(_described)),
    **{key: command.KEYS[key] for key in (*blocks("run"), "compute", "identity", "services")},
}
"""Keys of a pipeline job."""


def path_of(where: str) -> tuple[str, ...]:
    """The keys in the file for a path in the pipeline: ``jobs.train.nodes`` is its ``resources.instance_count``."""
    first, *rest = where.split(".", 2)
    if first != "jobs" or len(rest) < 2:
        return tuple(where.split("."))
    name, field = rest
    path_in_step = sweep.path_of if field.split(".")[0] == "resources" else command.path_of
    return (first, name, *path_in_step(field))


def read(cursor: Cursor) -> Pipeline | None:
    """Read a pipeline job; None when it is too broken to be one (its faults are in ``cursor.findings``)."""
    fields = dict(keys(cursor, KEYS, ignored=command.READ_ONLY, what="a pipeline job"))
    fields.pop("type", None)
    if not isinstance(cursor.value, dict):
        return None
    if not isinstance(fields.get("component"), str | None):
        cursor.stated("component-kind", Level.ERROR, "component")
        del fields["component"]
    if fields.get("component") and fields.get("jobs"):
        cursor.stated("pipeline-twice", Level.ERROR, "component")
    return Pipeline(**fields)
