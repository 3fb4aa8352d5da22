"""Steps of an Azure ML pipeline file that move data: copies, imports, exports. They are carried to Azure ML."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from jobs.azureml.cursor import Bad, Cursor
from jobs.azureml.fields import keys, listed, mapping, nullable, same, text, word
from jobs.azureml.read import command, passthrough
from jobs.azureml.read.runtime import services
from jobs.model.passthrough import PassthroughComponent, PassthroughStep
from jobs.model.values import EXPRESSION, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Readers = Mapping[str, Callable[[Cursor], Any]]

TASKS = ("copy_data", "import_data", "export_data")
_TASK = word(same(*TASKS))
_ENDS: Mapping[str, Readers] = {
    "database": {
        "type": text,
        **dict.fromkeys(("query", "table_name", "stored_procedure", "connection"), text),
        "stored_procedure_params": listed(mapping),
    },
    "file_system": {"type": text, "path": text, "connection": text},
}
_END = word(same(*_ENDS))
_INLINE = ("tags", "display_name", "properties", "compute")
_UNSENT = ("name", "description", "experiment_name", "services")
_COMPONENT_ONLY = ("is_deterministic", "resources", "code", "command", "environment")


def _end(cursor: Cursor) -> Any:
    """Where data outside of Azure ML comes from or goes to."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping with `type` and `connection`")
    for key in ("type", "connection"):
        if key not in cursor.value:
            cursor.bad("key-missing", f"There is no `{key}`", f"`{cursor.path[-1]}` has its `{key}`")
    kind: Any = _END(cursor.at("type")) if "type" in cursor.value else Bad
    if kind is Bad or "connection" not in cursor.value:
        return Bad
    told = dict(keys(cursor, _ENDS[kind], what=f"a {kind}"))
    return {key: list(value) if isinstance(value, tuple) else value for key, value in told.items()} | {"type": kind}


def read_step(cursor: Cursor, node: Readers) -> Any:
    """Read a step; `Bad` when it is too broken to be one.

    Args:
        cursor: The step.
        node: Readers of the keys that every step has.
    """
    if "task" not in cursor.value:
        words = ", ".join(f"`{name}`" for name in TASKS)
        return cursor.bad("key-missing", "The step has no `task`", f"A step that moves data has a `task`: {words}")
    task: Any = _TASK(cursor.at("task"))
    if task is Bad:
        return Bad
    inline = "component" not in cursor.value
    own = _own(task)
    if inline:
        unsent = {
            **{key: command.KEYS[key] for key in ("name", "description", "experiment_name")},
            "services": services,
        }
        sides = {"copy_data": ("inputs", "outputs"), "import_data": ("outputs",), "export_data": ("inputs",)}[task]
        table: Readers = {
            **{key: node[key] for key in (*_INLINE, *sides)},
            **own, **unsent, "type": text, "task": text,
        }  # fmt: skip
        told = dict(keys(cursor, table, ignored=command.READ_ONLY, what=f"a step for {task}"))
        extra: dict[str, Any] = {}
    else:
        table = {**node, **own, "type": text, "task": text, "component": partial(_component, task=task)}
        table = {**table, **dict.fromkeys((*_UNSENT, *_COMPONENT_ONLY), nullable(lambda each: each.value))}
        told, extra = passthrough.split(cursor, table, f"a step for {task}", sent=True)
    if not _whole(cursor, task, told) or (not inline and "component" not in told):
        return Bad
    component = told.pop("component", None)
    description = told.pop("description", None)
    for key in ("type", "task", *_UNSENT, *_COMPONENT_ONLY):
        told.pop(key, None)
    known = {name: told.pop(name) for name in PassthroughStep.model_fields if name in told}
    if inline and task == "copy_data":
        known.pop("properties", None)  # azure-ai-ml sends none of such a step
        source = {"tags": known.get("tags", {}), "description": description}
        component = PassthroughComponent(kind="data_transfer", spec={"task": task, **told}, inline=True, **source)
    if not inline and task == "import_data" and not known.get("outputs"):
        known["outputs"] = {"sink": Output(type="mltable")}  # as azure-ai-ml says where such a step says nothing
    if "queue_settings" in told:
        told["queue_settings"] = told["queue_settings"].model_dump(exclude_none=True)
    return PassthroughStep(kind="data_transfer", component=component, spec={"task": task, **told, **extra}, **known)


def _own(task: str) -> Readers:
    if task == "copy_data":
        return {"data_copy_mode": passthrough.COPY_MODE}
    return {"source" if task == "import_data" else "sink": _end}


def _component(cursor: Cursor, task: str) -> Any:
    from jobs.azureml.read import component_file  # noqa: PLC0415 - it reads component files of every kind

    if task != "copy_data" and not (isinstance(cursor.value, str) and cursor.value.startswith("azureml:")):
        return cursor.wrong("`azureml:NAME:VERSION`, a registered component")
    return component_file.reference(cursor, partial(passthrough.read_component, kind="data_transfer"))


def _whole(cursor: Cursor, task: str, told: Mapping[str, Any]) -> bool:
    """Whether a step has what its task wants; what is missing is reported."""
    if task == "copy_data":
        for name, value in told.get("inputs", {}).items():
            if isinstance(value, (bool, int, float)) or _is_text(value):
                rule, remedy = "What is copied is data", "Write `path:`."
                cursor.at("inputs").bad("input-kind", f"`{value}` is a value", rule, remedy, key=name)
                return False
        return True
    key, side, only = ("source", "outputs", "sink") if task == "import_data" else ("sink", "inputs", "source")
    if key not in told:
        if key not in cursor.value:
            cursor.bad("key-missing", f"The step has no `{key}`", f"A step for {task} has its `{key}`")
        return False
    if task == "export_data" and told[key]["type"] == "file_system":
        cursor.bad("key-unsupported", "Data is exported to a file system", "azure-ai-ml cannot send that yet", key=key)
        return False
    if side in told and tuple(told[side]) != (only,):
        cursor.bad("port-unknown", f"The {side} are {', '.join(told[side]) or 'none'}",
                   f"A step for {task} has one, `{only}`", key=side)  # fmt: skip
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not EXPRESSION.search(value)
