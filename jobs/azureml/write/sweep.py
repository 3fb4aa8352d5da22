"""A sweep as an Azure ML CLI v2 file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.write.command import SCHEMAS, command_file
from jobs.model.search_space import DISTRIBUTIONS
from jobs.wire.component import resources_file
from jobs.wire.keys import blocks

if TYPE_CHECKING:
    from jobs.model.pipeline import Pipeline
    from jobs.model.step import SweepStep
    from jobs.model.sweep import Sweep

_SWEEP = ("search_space", "objective", "sampling_algorithm", "early_termination", "limits")


def sweep_file(sweep: Sweep) -> dict[str, Any]:
    """A sweep job file."""
    result = command_file(sweep.trial)
    file = {"$schema": f"{SCHEMAS}/sweepJob.schema.json", "type": "sweep", **names(sweep)}
    file["trial"] = {key: result[key] for key in blocks("trial") if key in result}
    file |= {key: result[key] for key in blocks("sweep") if key in result}
    return file | sweep_keys(sweep)


def names(run: Sweep | Pipeline) -> dict[str, Any]:
    """What names a run."""
    result = {name: getattr(run, name) for name in blocks("run")}
    return {key: value for key, value in result.items() if value}


def sweep_keys(sweep: Sweep | SweepStep) -> dict[str, Any]:
    """What makes a job or a step a sweep."""
    result = {name: plain_values(getattr(sweep, name)) for name in _SWEEP}
    policy = sweep.early_termination
    if policy is not None:
        result["early_termination"] |= {name: None for name in policy.model_fields_set if getattr(policy, name) is None}
    result["resources"] = None if sweep.resources is None else resources_file(sweep.resources) or {}
    return {key: value for key, value in result.items() if value is not None}


def plain_values(value: Any) -> Any:
    """A value of a model as YAML has it."""
    match value:
        case dict():
            return {key: plain_values(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain_values(inner) for inner in value]
        case _ if isinstance(value, DISTRIBUTIONS):
            return {name: plain_values(getattr(value, name)) for name in type(value).model_fields}
        case None | str() | int() | float():
            return value
        case _:
            return value.model_dump(exclude_none=True)
