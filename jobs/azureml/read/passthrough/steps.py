"""Steps of an Azure ML pipeline file that are passed through: parallel, spark, automl, data_transfer and pipelines.

Nothing here is enriched and no rule judges it, so the keys of a kind keep the values of the file; Azure ML judges them.
Read are the keys that every step has, code and environments, and what the wire form depends on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.base.findings import Level
from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import anything, nullable, text, unsent
from jobs.azureml.read import command, component_file
from jobs.azureml.read.open_blocks import split
from jobs.azureml.read.passthrough import automl
from jobs.azureml.read.passthrough.keys import COMPONENT, HERE, MOVES, REQUIRED, RUNS_HERE, SPECS, STEPS
from jobs.model.passthrough import PassthroughComponent, PassthroughStep
from jobs.model.values import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Reader = Callable[[Cursor], Any]
    Readers = Mapping[str, Reader]


class Steps(NamedTuple):
    """How the steps of a pipeline are read; handed in, as such a step may be a pipeline again.

    Attributes:
        read: Reads them.
        path_of: From a path in a pipeline to the keys in its file.
    """

    read: Reader
    path_of: Callable[[str], tuple[str, ...]]


_UNSENT = ("type", "name", "experiment_name", "description", "services", "queue_settings")
_OF_A_COMPONENT = ("is_deterministic", "code", "command", "environment", "resources")


def read_step(cursor: Cursor, kind: str, node: Readers, outputs: Reader, steps: Steps) -> Any:
    """Read a step; `Bad` when it is too broken to be one.

    Args:
        cursor: The step.
        kind: One of `KINDS`.
        node: Readers of the keys that every step has.
        outputs: Reads the outputs of a step that names no component.
        steps: Reads the steps of a pipeline that is a step.
    """
    if kind == "automl":
        return automl.read_step(cursor, node)
    inline = "component" not in cursor.value
    if inline and kind == "pipeline":
        return cursor.bad(
            "key-missing",
            "The step has no `component`",
            "A pipeline as a step is a component: a file, or `azureml:NAME:VERSION`",
            "Put its steps into a file of their own and name that: `component: ./inner.yml`.",
        )
    if not inline and kind == "pipeline" and not isinstance(cursor.value["component"], str):
        return cursor.at("component").wrong("a file, or `azureml:NAME:VERSION`")
    table: Readers = {
        **node,
        "type": anything,
        **SPECS[kind],
        **STEPS[kind],
        "component": partial(_reference, kind=kind, steps=steps),
    }
    if inline:
        table = {**table, "outputs": outputs, "description": text, "name": unsent, "experiment_name": unsent}
    if kind == "data_transfer":
        ignored = dict.fromkeys((*_UNSENT, *_OF_A_COMPONENT), nullable(anything))
        table = {**table, **ignored, "description": text}
    given, extra = split(cursor, table, f"a {kind} step", sent=kind == "parallel" or not inline)
    known = {name: given.pop(name) for name in PassthroughStep.model_fields if name in given and name != "component"}
    description = given.pop("description", None)
    if kind == "data_transfer":
        return _moving(cursor, given, {**known, "description": description}, extra)
    for key in _UNSENT:
        given.pop(key, None)
    if inline:
        return _inline(cursor, kind, given, {**known, "description": description})
    component = given.pop("component", Bad)
    if kind == "spark" and isinstance(size := given.get("resources", {}).get("instance_type"), str):
        # azure-ai-ml lowers the size of a step with a component, and leaves an inline step's as it is written.
        given["resources"] = {**given["resources"], "instance_type": size.lower()}
    return (
        Bad if component is Bad else PassthroughStep(kind=kind, component=component, spec={**given, **extra}, **known)
    )


def _inline(cursor: Cursor, kind: str, given: dict[str, Any], known: dict[str, Any]) -> Any:
    """A step whose component is written in it; the keys of `STEPS` stay at the step."""
    description = known.pop("description")
    if _lacks(cursor, kind, given):
        return Bad
    if kind == "parallel":
        return _parallel(cursor, given, known)
    source = {"code": HERE, "tags": known.get("tags", {}), "description": description}
    source |= {key: value for key in ("code", "environment") if (value := given.pop(key, None)) is not None}
    step = {key: given.pop(key) for key in STEPS[kind] if key in given}
    if isinstance(given.get("conf"), dict):
        given["conf"] = scaled(given["conf"])
    component = PassthroughComponent(kind=kind, spec=given, inline=True, **source)
    return PassthroughStep(kind=kind, component=component, spec=step, **known)


def _parallel(cursor: Cursor, given: dict[str, Any], known: dict[str, Any]) -> PassthroughStep:
    """A parallel step whose component is written in it."""
    given.pop("environment", None)
    for key in ("tags", "display_name", "comment"):
        if known.pop(key, None):
            cursor.bad("lost-in-rendering", f"A parallel step has `{key}`", "azure-ai-ml does not send it of one",
                       "Leave it out.", level=Level.WARNING, key=key)  # fmt: skip
    task = dict(given.pop("task"))
    source = {key: task.pop(key) for key in ("code", "environment") if key in task}
    own = {key: value for key, value in given.items() if key != "environment_variables" and not _bound(value)}
    component = PassthroughComponent(kind="parallel", spec={**own, "task": task}, inline=True, **source)
    return PassthroughStep(kind="parallel", component=component, spec=given, **known)


def _moving(cursor: Cursor, given: dict[str, Any], known: dict[str, Any], extra: dict[str, Any]) -> Any:
    """A step that moves data: one that copies has a component in it, the others name none or a registered one."""
    description, inline = known.pop("description"), "component" not in cursor.value
    task, component = given.get("task"), given.pop("component", None if inline else Bad)
    if _lacks(cursor, "data_transfer", given) or component is Bad:
        return Bad
    if (place := MOVES[str(task)]) and place not in given:
        if place not in cursor.value:
            cursor.bad("key-missing", f"The step has no `{place}`", f"A step for {task} has its `{place}`")
        return Bad
    queue = given.pop("queue_settings", None)
    for key in (*_UNSENT, *_OF_A_COMPONENT):
        given.pop(key, None)
    if inline and task == "copy_data":
        known.pop("properties", None)  # azure-ai-ml sends none of such a step
        source = {"tags": known.get("tags", {}), "description": description}
        component = PassthroughComponent(kind="data_transfer", spec=dict(given), inline=True, **source)
    elif not inline and task == "import_data" and not known.get("outputs"):
        known["outputs"] = {"sink": Output(type="mltable")}  # what azure-ai-ml sends for a step without outputs
    if queue is not None:
        given["queue_settings"] = queue
    return PassthroughStep(kind="data_transfer", component=component, spec={**given, **extra}, **known)


def scaled(conf: dict[str, Any]) -> dict[str, Any]:
    """Settings of an inline spark step; with moving executors azure-ai-ml sends the least number as the first one."""

    def given(name: str, short: str) -> Any:
        return conf.get(f"spark.{name}", conf.get(short))

    moving = str(given("dynamicAllocation.enabled", "dynamic_allocation_enabled")).lower() == "true"
    least = given("dynamicAllocation.minExecutors", "dynamic_allocation_min_executors")
    if not moving or least is None or given("executor.instances", "executor_instances") is not None:
        return conf
    return {**conf, "spark.executor.instances": least}


def _bound(value: Any) -> bool:
    values = value.values() if isinstance(value, dict) else (value,)
    return any(isinstance(each, str) and each.startswith("${{parent.") for each in values)


def _lacks(cursor: Cursor, kind: str, given: Mapping[str, Any]) -> bool:
    """Whether a step or component lacks its main key; what the file leaves out is reported."""
    wanted = REQUIRED.get(kind)
    if wanted is None or wanted in given:
        return False
    if wanted not in cursor.value:
        cursor.bad("key-missing", f"There is no `{wanted}`", f"What is of type `{kind}` has a `{wanted}`")
    return True


def _reference(cursor: Cursor, kind: str, steps: Steps) -> Any:
    path_of = steps.path_of if kind == "pipeline" else command.path_of
    return component_file.reference(cursor, partial(read_component, kind=kind, steps=steps), path_of)


def read_component(cursor: Cursor, kind: str, steps: Steps) -> PassthroughComponent | None:
    """Read a component of a kind; None when it is too broken to be one."""
    if not isinstance(cursor.value, dict):
        cursor.bad("not-a-mapping", "This is no mapping", "A component is a mapping of keys")
        return None
    if "promptflow" in str(cursor.value.get("$schema", "")).lower():
        rule = "A prompt flow is turned into a component by azure-ai-ml, at submission; it is not read here"
        cursor.bad("component-kind", "The component is a prompt flow", rule)
        return None
    if (of := str(cursor.value.get("type", "command" if kind == "parallel" else kind)).lower()) != kind:
        cursor.bad("component-kind", f"The component is of type `{of}`", f"A {kind} step runs a {kind} component")
        return None
    table = {**COMPONENT, "type": anything, **SPECS[kind], **({"jobs": steps.read} if kind == "pipeline" else {})}
    given, extra = split(cursor, table, f"a {kind} component", sent=True)
    if _lacks(cursor, kind, given):
        return None
    for key in ("type", "name", "version"):
        given.pop(key, None)
    if kind in RUNS_HERE:
        given.setdefault("code", HERE)
    known = {name: given.pop(name) for name in PassthroughComponent.model_fields if name in given}
    known = {name: value for name, value in known.items() if value is not None}
    if "$schema" in given:
        known["schema_uri"] = given.pop("$schema")
    if kind == "parallel":
        given["task"] = task = dict(given["task"])
        known |= {key: task.pop(key) for key in ("code", "environment") if key in task}
    return PassthroughComponent(kind=kind, spec={**given, **extra}, inline=True, **known)
