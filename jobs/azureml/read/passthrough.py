"""Parallel, spark and pipeline steps of an Azure ML pipeline file, and the component files that they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Level
from amlstack.base.near_misses import did_you_mean
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import (
    anything,
    by_text,
    keys,
    listed,
    mapping,
    nullable,
    same,
    text,
    truth,
    unsent,
    version,
    whole,
    word,
)
from jobs.azureml.read import command, data, port, runtime
from jobs.model.passthrough import PassthroughComponent, PassthroughStep
from jobs.model.values import EXPRESSION, Code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Readers = Mapping[str, Callable[[Cursor], Any]]

HERE = Code(path=".")
"""The code of a spark step that names none, for azure-ai-ml the file's own folder."""
KINDS = ("parallel", "spark", "pipeline")
COPY_MODE = word(same("merge_with_overwrite", "fail_if_conflict"))
_SIZE = re.compile(r"\d+([kKmMgG][bB])?")


@dataclass(frozen=True, slots=True, eq=False)
class OrBound:
    """Reads the same, or a value that a binding brings."""

    read: Callable[[Cursor], Any]

    def __call__(self, cursor: Cursor) -> Any:
        """The value, or the text with its binding."""
        value = cursor.value
        return value if isinstance(value, str) and EXPRESSION.search(value) else self.read(cursor)


def size(cursor: Cursor) -> Any:
    """A count, or a size in bytes, as text."""
    value = text(cursor)
    if value is Bad or _SIZE.fullmatch(value):
        return value
    return cursor.wrong('a count or a size in quotes, such as "10" or "10kb"')


def texts(cursor: Cursor) -> Any:
    """A list of texts."""
    told = listed(text)(cursor)
    return Bad if told is Bad else list(told)


def _retries(cursor: Cursor) -> Any:
    return dict(keys(cursor, RETRIES, what="the retry settings"))


def _resources(cursor: Cursor) -> Any:
    told = dict(keys(cursor, runtime.RESOURCES, what="the resources"))
    return {key: list(value) if isinstance(value, tuple) else value for key, value in told.items()}


def _code(cursor: Cursor) -> Any:
    value = text(cursor)
    return Bad if value is Bad else Code(path=value)


def _task(cursor: Cursor) -> Any:
    told = dict(keys(cursor, TASK, what="a task"))
    for key in ("type", "environment"):
        if isinstance(cursor.value, dict) and key not in cursor.value:
            cursor.bad("key-missing", f"The task has no `{key}`", f"A task of a parallel step has its `{key}`")
    return told if {"type", "environment"} <= told.keys() else Bad


def _entry(cursor: Cursor) -> Any:
    told = dict(keys(cursor, ENTRY, what="an entry"))
    if len(told) == 1:
        return told
    return cursor.wrong("a mapping with `file`, or with `class_name`") if isinstance(cursor.value, dict) else Bad


def _spark_resources(cursor: Cursor) -> Any:
    return dict(keys(cursor, SPARK_RESOURCES, what="the resources of a spark step"))


RETRIES: Readers = dict.fromkeys(("timeout", "max_retries"), OrBound(whole))
ENTRY: Readers = {"file": text, "class_name": text}
SPARK_RESOURCES: Readers = {"instance_type": text, "runtime_version": version}
TASK: Readers = {
    "type": word(same("run_function", "model", "function")),
    "code": _code,
    "environment": command.KEYS["environment"],
    **dict.fromkeys(("entry_script", "program_arguments", "model", "append_row_to"), text),
}
_FILES = dict.fromkeys(("py_files", "jars", "files", "archives"), texts)
SPECS: Mapping[str, Readers] = {
    "parallel": {
        "mini_batch_size": OrBound(size),
        "partition_keys": OrBound(texts),
        "input_data": text,
        "retry_settings": _retries,
        "logging_level": OrBound(word(same("DEBUG", "INFO", "WARN"), str)),
        **dict.fromkeys(
            ("max_concurrency_per_instance", "error_threshold", "mini_batch_error_threshold"), OrBound(whole)
        ),
        "task": _task,
        "resources": _resources,
    },
    "spark": {"code": _code, "entry": _entry, **_FILES, "conf": mapping, "args": text,
              "environment": nullable(command.KEYS["environment"])},
    "pipeline": {},
    "data_transfer": {"task": word(same("copy_data")), "data_copy_mode": COPY_MODE},
}  # fmt: skip
"""Keys of each kind that its component has too."""
STEPS: Mapping[str, Readers] = {
    "parallel": {"environment_variables": data.variables, "environment": anything},
    "spark": {"resources": _spark_resources},
    "pipeline": {},
}
COMPONENT: Readers = {
    **{key: command.KEYS[key] for key in ("display_name", "description", "tags")},
    "properties": mapping,
    "is_deterministic": truth,
    "inputs": port.inputs,
    "outputs": port.outputs,
    "$schema": text,
    **dict.fromkeys(("name", "version"), unsent),
}
SKIPPED = (*command.READ_ONLY, "id", "latest_version")


def step_keys(kind: str, node: Readers, outputs: Callable[[Cursor], Any] | None = None) -> Readers:
    """Keys of a step; with ``outputs``, of one that names no component."""
    table: dict[str, Callable[[Cursor], Any]] = {
        **node,
        "type": anything,
        **SPECS[kind],
        **STEPS[kind],
        "component": partial(_reference, kind=kind),
    }
    if outputs is not None:
        table |= {"outputs": outputs, "description": text, "name": unsent, "experiment_name": unsent}
    return table


def read_step(cursor: Cursor, kind: str, node: Readers, outputs: Callable[[Cursor], Any]) -> Any:
    """Read a step; `Bad` when it is too broken to be one.

    Args:
        cursor: The step.
        kind: One of `KINDS`.
        node: Readers of the keys that every step has.
        outputs: Reads the outputs of a step that names no component.
    """
    inline = "component" not in cursor.value
    if inline and kind == "pipeline":
        return cursor.bad(
            "key-missing",
            "The step has no `component`",
            "A pipeline as a step is a component: a file, or `azureml:NAME:VERSION`",
            "Put its steps into a file of their own and name that: `component: ./inner.yml`.",
        )
    table = step_keys(kind, node, outputs if inline else None)
    told, extra = split(cursor, table, f"a {kind} step", sent=kind == "parallel" or not inline)
    known = {name: told.pop(name) for name in PassthroughStep.model_fields if name in told and name != "component"}
    told.pop("type", None)
    if not inline:
        component = told.pop("component", Bad)
        told.pop("queue_settings", None)
        if kind == "spark" and isinstance(size := told.get("resources", {}).get("instance_type"), str):
            # azure-ai-ml lowers the size of a step with a component, and leaves an inline step's as it is written.
            told["resources"] = {**told["resources"], "instance_type": size.lower()}
        return (
            Bad
            if component is Bad
            else PassthroughStep(kind=kind, component=component, spec={**told, **extra}, **known)
        )
    return _inline(cursor, kind, told, known)


def _inline(cursor: Cursor, kind: str, told: dict[str, Any], known: dict[str, Any]) -> Any:
    """A step whose component stands in it."""
    for key in ("name", "experiment_name", "queue_settings", "environment" if kind == "parallel" else "name"):
        told.pop(key, None)
    if kind == "parallel":
        for key in ("tags", "display_name", "comment"):
            if known.pop(key, None):
                _lost(cursor, key, "azure-ai-ml does not send it of a parallel step")
        told.pop("description", None)
        if "task" not in told:
            if "task" not in cursor.value:
                cursor.bad("key-missing", "The step has no `task`", "A parallel step has a `task`")
            return Bad
        task = told.pop("task")
        source = {key: task.pop(key) for key in ("code", "environment") if key in task}
        own = {key: value for key, value in told.items() if key != "environment_variables" and not _bound(value)}
        component = PassthroughComponent(kind="parallel", spec={**own, "task": task}, inline=True, **source)
        return PassthroughStep(kind="parallel", component=component, spec=told, **known)
    if "entry" not in told:
        if "entry" not in cursor.value:
            cursor.bad("key-missing", "The step has no `entry`", "A spark step has an `entry`")
        return Bad
    source = {"code": HERE}
    source |= {key: value for key in ("code", "environment") if (value := told.pop(key, None)) is not None}
    source |= {"tags": known.get("tags", {}), "description": told.pop("description", None)}
    step = {"resources": told.pop("resources")} if "resources" in told else {}
    if isinstance(told.get("conf"), dict):
        told["conf"] = scaled(told["conf"])
    component = PassthroughComponent(kind="spark", spec=told, inline=True, **source)
    return PassthroughStep(kind="spark", component=component, spec=step, **known)


def scaled(conf: dict[str, Any]) -> dict[str, Any]:
    """Settings of an inline step; of executors that come and go azure-ai-ml says the least as the first number."""

    def said(name: str, short: str) -> Any:
        return conf.get(f"spark.{name}", conf.get(short))

    moving = str(said("dynamicAllocation.enabled", "dynamic_allocation_enabled")).lower() == "true"
    least = said("dynamicAllocation.minExecutors", "dynamic_allocation_min_executors")
    if not moving or least is None or said("executor.instances", "executor_instances") is not None:
        return conf
    return {**conf, "spark.executor.instances": least}


def _bound(value: Any) -> bool:
    values = value.values() if isinstance(value, dict) else (value,)
    return any(isinstance(each, str) and each.startswith("${{parent.") for each in values)


def component_keys(kind: str) -> Readers:
    """Keys of a component of a kind."""
    table = {**COMPONENT, "type": anything, **SPECS[kind]}
    if kind == "pipeline":
        from jobs.azureml.read.pipeline import steps  # noqa: PLC0415 - its steps are read there, and may be pipelines again

        table["jobs"] = steps
    return table


def read_component(cursor: Cursor, kind: str) -> PassthroughComponent | None:
    """Read a component of a kind; None when it is too broken to be one."""
    if not isinstance(cursor.value, dict):
        cursor.bad("not-a-mapping", "This is no mapping", "A component is a mapping of keys")
        return None
    if (of := str(cursor.value.get("type", "command" if kind == "parallel" else kind)).lower()) != kind:
        cursor.bad("component-kind", f"The component is of type `{of}`", f"A {kind} step runs a {kind} component")
        return None
    told, extra = split(cursor, component_keys(kind), f"a {kind} component", sent=True)
    told.pop("type", None)
    for key in ("name", "version"):
        told.pop(key, None)
    wanted = {"parallel": "task", "spark": "entry", "data_transfer": "task"}.get(kind)
    if wanted and wanted not in told:
        if wanted not in cursor.value:
            cursor.bad("key-missing", f"The component has no `{wanted}`", f"A {kind} component has `{wanted}`")
        return None
    if kind == "spark":
        told.setdefault("code", HERE)
    known = {name: told.pop(name) for name in PassthroughComponent.model_fields if name in told}
    known = {name: value for name, value in known.items() if value is not None}
    if "$schema" in told:
        known["schema_uri"] = told.pop("$schema")
    if kind == "parallel":
        task = told["task"]
        known |= {key: task.pop(key) for key in ("code", "environment") if key in task}
    return PassthroughComponent(kind=kind, spec={**told, **extra}, inline=True, **known)


def _reference(cursor: Cursor, kind: str) -> Any:
    from jobs.azureml.read import component_file, pipeline  # noqa: PLC0415 - a pipeline's file may name a pipeline's file

    if kind == "pipeline" and not isinstance(cursor.value, str):
        return cursor.wrong("a file, or `azureml:NAME:VERSION`")
    path_of = pipeline.path_of if kind == "pipeline" else command.path_of
    return component_file.reference(cursor, partial(read_component, kind=kind), path_of)


def split(cursor: Cursor, table: Readers, what: str, *, sent: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The known keys read, and the others as they are."""
    told = by_text(cursor)
    extra = {key: value for key, value in told.items() if key not in table and key not in SKIPPED}
    for key in extra:
        remedy = did_you_mean(key, table)
        cursor.bad(
            "key-unknown",
            f"`{key}` is no key of {what}",
            "It is sent as it is, as azure-ai-ml does" if sent else "Every key is one that Azure ML knows",
            remedy if remedy.startswith("Did") else "Remove it, unless Azure ML knows it.",
            level=Level.WARNING if sent else Level.ERROR,
            key=key,
        )
    rest = {key: value for key, value in told.items() if key not in extra}
    inner = Cursor(rest, cursor.path, cursor.findings, cursor.base)
    return dict(keys(inner, table, ignored=SKIPPED, what=what)), extra


def _lost(cursor: Cursor, key: str, rule: str) -> None:
    cursor.bad("lost-in-rendering", f"`{key}` stands here", rule, "Leave it out.", level=Level.WARNING, key=key)
