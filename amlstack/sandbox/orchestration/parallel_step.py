"""A parallel step as the command job that drives it on each of its nodes.

How the service drives such a step is docs/reference/unproven.md#parallel-steps: its record here is a command job with
one process on each node. What the step's keys mean, and their defaults, is (CLI v2 YAML reference of the parallel job).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from amlstack.sandbox.protocol.refusals import invalid, not_emulated

PROPERTY = "azureml.parallelrunstep"
"""Property of such a job; the runner lays the driver beside its code."""
TASKS = ("run_function",)
LEVELS = ("INFO", "WARNING", "DEBUG")
_INPUT = re.compile(r"\$\{\{\s*inputs\.(?P<name>[\w-]+)(?:\.path)?\s*\}\}")
_OUTPUT = re.compile(r"\$\{\{\s*outputs\.(?P<name>[\w-]+)(?:\.path)?\s*\}\}")
_SIZE = re.compile(r"(?P<count>\d+)\s*(?P<unit>[kmg]b|b)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
INHERITED = (
    "input_data",
    "mini_batch_size",
    "partition_keys",
    "resources",
    "retry_settings",
    "logging_level",
    "error_threshold",
    "mini_batch_error_threshold",
    "max_concurrency_per_instance",
    "environment_variables",
)
"""A step takes these of its component if it does not give them itself."""


def merged(step: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """A step's keys with what it takes of its component; of the task key by key."""
    own = {key: step[key] if step.get(key) is not None else spec.get(key) for key in INHERITED}
    return {**own, "task": {**(spec.get("task") or {}), **(step.get("task") or {})}}


def split_input(given: Mapping[str, Any], inputs: Mapping[str, Any], where: str) -> str:
    """The name of the input that is split.

    Raises:
        Refused: ``input_data`` is no input of the step.
    """
    text = str(given.get("input_data") or "")
    found = _INPUT.fullmatch(text.strip())
    if found is None or found["name"] not in inputs:
        known = ", ".join(sorted(inputs)) or "none"
        raise invalid(
            f"{where}.input_data",
            f"`input_data` must be one of the step's inputs, such as `${{{{inputs.NAME}}}}`, got `{text}`; "
            f"its inputs are: {known}.",
        )
    return found["name"]


def check_task(task: Any, where: str) -> None:
    """Refuses a task that is none.

    Raises:
        Refused: It lacks what it needs, or is of a kind that the sandbox does not run.
    """
    if not isinstance(task, dict):
        raise invalid(where, "the required property 'task' of a parallel component is missing.")
    kind = str(task.get("type") or TASKS[0]).lower()
    if kind not in TASKS:
        raise not_emulated(f"parallel tasks of the type '{kind}', only {', '.join(TASKS)}")
    for name in ("entry_script", "environment"):
        if not isinstance(task.get(name), str) or not task[name]:
            raise invalid(f"{where}.{name}", f"the required property '{name}' of a parallel task is missing.")


def command(given: Mapping[str, Any], outputs: Mapping[str, Any], where: str) -> str:
    """The command that drives the step, its inputs and outputs still to be put in.

    Args:
        given: Of `merged`.
        outputs: Of the step, by name.
        where: Its place in the body.

    Raises:
        Refused: A value is out of range.
    """
    task = given["task"]
    retries = given.get("retry_settings") or {}
    level = str(given.get("logging_level") or LEVELS[0]).upper()
    if level not in LEVELS:
        raise invalid(f"{where}.logging_level", f"`logging_level` must be one of {', '.join(LEVELS)}, got `{level}`.")
    numbers = {
        "max_retries": _number(retries, "max_retries", f"{where}.retry_settings", 2, least=0),
        "timeout": _number(retries, "timeout", f"{where}.retry_settings", 60, least=1, most=259200),
        "error_threshold": _number(given, "error_threshold", where, -1, least=-1),
        "mini_batch_error_threshold": _number(given, "mini_batch_error_threshold", where, -1, least=-1),
    }
    processes = _number(given, "max_concurrency_per_instance", where, 0, least=0)
    keys = _keys(given.get("partition_keys"), f"{where}.partition_keys")
    append = str(task.get("append_row_to") or "")
    for found in _OUTPUT.finditer(append):
        if found["name"] not in outputs:
            known = ", ".join(sorted(outputs)) or "none"
            raise invalid(
                f"{where}.task.append_row_to",
                f"`append_row_to` must name an output of the step, got `{append}`; its outputs are: {known}.",
            )
    words = ["--entry_script", shlex.quote(str(task["entry_script"])), "--input_data", f"'{given['input_data']}'"]
    if size := _size(given.get("mini_batch_size"), f"{where}.mini_batch_size"):
        words += ["--mini_batch_size", str(size)]
    if keys:
        words += ["--partition_keys", shlex.quote(json.dumps(keys))]
    if append:
        words += ["--append_row_to", f"'{append}'"]
    for name, value in numbers.items():
        words += [f"--{name}", str(value)]
    if processes:
        words += ["--process_count_per_node", str(processes)]
    words += ["--logging_level", level]
    arguments = " ".join(str(task.get("program_arguments") or "").split("\n")).strip()
    own = " ".join(words)
    driver = "PYTHONPATH=driver${PYTHONPATH:+:$PYTHONPATH} python -m amlparallel"
    return f"{driver} {own} -- {arguments}" if arguments else f"{driver} {own}"


def _number(
    given: Mapping[str, Any], name: str, where: str, default: int, *, least: int, most: int | None = None
) -> int:
    value = given.get(name)
    if value is None or value == "":
        return default
    try:
        number = int(str(value))
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        until = "" if most is None else f" and at most {most}"
        raise invalid(f"{where}.{name}", f"`{name}` must be a whole number of at least {least}{until}, got `{value}`.")
    return number


def _size(value: Any, where: str) -> int:
    if value in (None, ""):
        return 0
    found = _SIZE.fullmatch(str(value).strip())
    if found is None:
        message = f"`mini_batch_size` must be a number of files, or a size such as 10kb for a table, got `{value}`."
        raise invalid(where, message)
    return int(found["count"]) * _UNITS[(found["unit"] or "").lower()]


def _keys(value: Any, where: str) -> list[str]:
    """Names of columns; azure-ai-ml sends them as a JSON list in a text."""
    if value in (None, "", "null"):
        return []
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise invalid(where, f"`partition_keys` must be a list of names of columns, got `{value}`.")
    return list(found)
