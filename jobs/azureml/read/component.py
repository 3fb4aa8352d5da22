"""An Azure ML CLI v2 command component file as a `Component`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Level
from amlstack.base.near_misses import did_you_mean
from jobs.azureml.containers import keys, listed
from jobs.azureml.cursor import Cursor
from jobs.azureml.fields import by_text, mapping, text, truth, unsent, word
from jobs.azureml.read import command, data, port, runtime
from jobs.launchers import Custom
from jobs.model.component import Component

if TYPE_CHECKING:
    from collections.abc import Collection


def _resources(cursor: Cursor) -> Any:
    """Resources; unknown keys are taken and not sent, as azure-ai-ml does."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping of keys")
    extra = [key for key in cursor.value if key not in runtime.RESOURCES]
    _warned(cursor, extra, runtime.RESOURCES, "the resources", "azure-ai-ml does not send it")
    return runtime.resources(_of(cursor, {key: each for key, each in cursor.value.items() if key not in extra}))


def _warned(cursor: Cursor, extra: Collection[Any], known: Collection[str], what: str, rule: str) -> None:
    for key in extra:
        remedy = did_you_mean(str(key), known)
        cursor.bad(
            "key-unknown",
            f"`{key}` is not a known key of {what}",
            rule,
            remedy if remedy.startswith("Did") else "Remove it, unless Azure ML knows it.",
            level=Level.WARNING,
            key=key,
        )


KEYS = {
    **{
        key: command.KEYS[key]
        for key in (
            "command",
            "code",
            "environment",
            "distribution",
            "display_name",
            "description",
            "tags",
        )
    },
    "type": word({"command": "command"}),
    "name": unsent,
    "version": unsent,
    "resources": _resources,
    "properties": mapping,
    "is_deterministic": truth,
    "inputs": port.inputs,
    "outputs": port.outputs,
    "additional_includes": listed(text),
    "environment_variables": data.variables,
    "$schema": text,
}
"""Keys of a component."""
SKIPPED = ("id", "creation_context", "latest_version")


def read(cursor: Cursor) -> Component | None:
    """Read a component; None when it is too broken to be one."""
    if not isinstance(cursor.value, dict):
        cursor.bad("not-a-mapping", "This is no mapping", "A component is a mapping of keys")
        return None
    if (of := str(cursor.value.get("type", "command")).lower()) in ("parallel", "spark", "pipeline"):
        cursor.bad("component-kind", f"The component is of type `{of}`", "A command step runs a command component")
        return None
    written = by_text(cursor)
    known = {key: value for key, value in written.items() if key in KEYS or key in SKIPPED}
    extra = {key: value for key, value in written.items() if key not in known}
    rule = "It is kept with the component, as azure-ai-ml does, and Azure ML may do nothing with it"
    _warned(cursor, extra, KEYS, "a component", rule)
    if extra.get("intellectual_property"):
        cursor.bad(
            "key-unsupported",
            "`intellectual_property` cannot be sent",
            "azure-ai-ml has no form of it for Azure ML",
            "Remove it.",
            key="intellectual_property",
        )
    fields = dict(keys(_of(cursor, known), KEYS, ignored=SKIPPED, what="a component"))
    for key in ("command", "environment"):
        if key not in cursor.value:
            cursor.bad("key-missing", f"The component has no `{key}`", f"A command component has a `{key}`")
    if not {"command", "environment"} <= fields.keys():
        return None
    if fields.pop("environment_variables", None):
        cursor.bad(
            "lost-in-rendering",
            "`environment_variables` stands in the component",
            "Azure ML sends none of a component",
            "Write them at the step.",
            level=Level.WARNING,
            key="environment_variables",
        )
    return made(cursor, {**fields, "extra": extra})


def _of(cursor: Cursor, value: Any) -> Cursor:
    return Cursor(value, cursor.path, cursor.findings, cursor.base)


def made(cursor: Cursor, fields: dict[str, Any]) -> Component:
    """A component of the values of its keys."""
    fields.pop("type", None)
    if fields.get("additional_includes") and "code" not in fields:
        cursor.bad(
            "lost-in-rendering",
            "`additional_includes` is written without `code`",
            "What it names is uploaded with a code folder only",
            "Name a code folder.",
            level=Level.WARNING,
            key="additional_includes",
        )
    fields |= fields.pop("resources", {})
    if fields.get("resource_properties") == {}:
        del fields["resource_properties"]
    if "distribution" in fields:
        fields["launcher"] = Custom(distribution=fields.pop("distribution"))
    if "$schema" in fields:
        fields["schema_uri"] = fields.pop("$schema")
    return Component(**fields, inline=True)
