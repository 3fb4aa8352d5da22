"""A sweep's body read: what is varied, how, how often, and the body of each trial."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import invalid, near
from amlstack.sandbox.parents import early_termination, sampling, space
from amlstack.sandbox.runner.contract.spec import RefusedError, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.parents.early_termination import Policy
    from amlstack.sandbox.parents.sampling import Sampling
    from amlstack.sandbox.parents.space import Distribution

_BOUND = re.compile(r"\$\{\{\s*search_space\.(?P<name>[\w.-]+?)\s*\}\}")
VARIABLE = "AZUREML_SWEEP_"
"""Prefix of the environment variables that tell a trial its values."""
MOST = 1000
"""Trials of a sweep that does not say how many."""
OF_THE_TRIAL = ("codeId", "environmentId", "distribution", "resources")
OF_THE_SWEEP = ("computeId", "experimentName", "identity", "queueSettings")


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """One sweep.

    Attributes:
        space: What is varied, by name.
        sampling: How its values are drawn.
        goal: ``minimize`` or ``maximize``.
        metric: The primary metric's name.
        policy: When a trial is ended early; None for never.
        total: Trials in all, at most.
        concurrent: Trials at once, at most.
    """

    space: Mapping[str, Distribution]
    sampling: Sampling
    goal: str
    metric: str
    policy: Policy | None
    total: int
    concurrent: int


def read(name: str, properties: Mapping[str, Any]) -> SweepSpec:
    """Reads ``body["properties"]`` of a sweep job.

    Args:
        name: The job's name.
        properties: Its properties.

    Raises:
        Refused: The sandbox cannot run it.
    """
    varied = space.read(properties.get("searchSpace"))
    objective = properties.get("objective") or {}
    goal, metric = str(objective.get("goal") or "").lower(), str(objective.get("primaryMetric") or "")
    if goal not in ("minimize", "maximize") or not metric:
        raise invalid("properties.objective", "a goal (Minimize or Maximize) and a primaryMetric are needed.")
    limits = properties.get("limits") or {}
    total = int(limits.get("maxTotalTrials") or MOST)
    concurrent = int(limits.get("maxConcurrentTrials") or total)
    if total < 1 or concurrent < 1:
        raise invalid("properties.limits", f"{total} trials in all, {concurrent} at once; both are at least 1.")
    for key in ("timeout", "trialTimeout"):
        _check_duration(limits.get(key), f"properties.limits.{key}")
    command = str((properties.get("trial") or {}).get("command") or "")
    if odd := next((found for found in _BOUND.finditer(command) if found["name"] not in varied), None):
        message = f"the command refers to {odd[0]}, which the search space does not have.{near(odd['name'], varied)}"
        raise invalid("properties.trial.command", message)
    algorithm = sampling.read(properties.get("samplingAlgorithm") or {"samplingAlgorithmType": "Random"}, varied, name)
    policy = early_termination.read(properties.get("earlyTermination"))
    return SweepSpec(varied, algorithm, goal, metric, policy, total, concurrent)


def body(properties: Mapping[str, Any], parent: str, number: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """The ``properties`` of the child that is a trial: a command job.

    Args:
        properties: Those of the sweep.
        parent: The sweep's name.
        number: The trial's, from 0.
        values: What it tries.
    """
    trial, limits = properties["trial"], properties.get("limits") or {}
    texts = {name: text(value) for name, value in values.items()}
    literals = {name: {"jobInputType": "literal", "value": value} for name, value in texts.items()}
    timeout = limits.get("trialTimeout")
    wire = {
        "jobType": "Command",
        **{key: trial.get(key) for key in OF_THE_TRIAL},
        **{key: properties.get(key) for key in OF_THE_SWEEP},
        "outputs": _outputs(properties, parent, f"{parent}_{number}"),
        "resources": trial.get("resources") or properties.get("resources"),
        "command": _BOUND.sub(lambda found: texts[found["name"]], trial["command"]),
        "environmentVariables": {
            **(trial.get("environmentVariables") or {}),
            **{f"{VARIABLE}{name}": value for name, value in texts.items()},
        },
        "inputs": {**(properties.get("inputs") or {}), **literals},
        "limits": {"jobLimitsType": "Command", "timeout": timeout} if timeout else None,
        "parentJobName": parent,
        "displayName": f"{parent}_{number}",
        "tags": {"hyperparameters": json.dumps(dict(values))},
        "properties": {"azureml.runsource": "hyperdrive.trial", "hyperparameters": json.dumps(dict(values))},
    }
    return {key: value for key, value in wire.items() if value is not None}


def _outputs(properties: Mapping[str, Any], parent: str, trial: str) -> dict[str, Any] | None:
    """Where a trial's outputs go: what a pipeline's step has by the name of its job, each trial has by its own."""
    outputs: dict[str, Any] | None = properties.get("outputs")
    if not outputs or not properties.get("parentJobName"):
        return outputs
    return {
        name: {**wire, "uri": wire["uri"].replace(f"/{parent}/", f"/{trial}/")} if wire.get("uri") else wire
        for name, wire in outputs.items()
    }


def text(value: Any) -> str:
    """A value as the command gets it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_duration(text: Any, where: str) -> None:
    if text is None:
        return
    try:
        seconds(str(text))
    except RefusedError as error:
        raise invalid(where, str(error)) from None
