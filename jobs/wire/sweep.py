"""A sweep as the body that Azure's REST API takes: the command body of its trial, dealt out over two levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from amlstack.base.text import camel, snake
from jobs.model.sweep import SEARCH_DISTRIBUTIONS, Choice, MedianStopping
from jobs.wire.command import LOCAL, Rendered, block, body, dumped, duration, is_local, resources, some
from jobs.wire.component import resources_file
from jobs.wire.keys import wire_blocks

if TYPE_CHECKING:
    from jobs.model.pipeline import SweepStep
    from jobs.model.sweep import EarlyTermination, Sampling, SearchSpace, Sweep, SweepLimits
    from jobs.wire.references import Refs

OF_THE_TRIAL = wire_blocks("trial")
OF_THE_SWEEP = wire_blocks("sweep")
SHORTEST = 60


def render_sweep(sweep: Sweep, refs: Refs) -> Rendered:
    """Render a sweep whose trial's launcher is lowered already (`SweepPlan.enriched`).

    Args:
        sweep: The sweep.
        refs: What the references in it point to.
    """
    local = is_local(sweep.trial.compute)
    trial = sweep.trial.model_copy(update={"compute": None}) if local else sweep.trial
    rendered = body(trial, refs)["properties"]
    own = None if sweep.resources is None else resources(sweep.resources)
    properties = {
        **{key: rendered[key] for key in OF_THE_SWEEP if key in rendered},
        "jobType": "Sweep",
        "computeId": LOCAL if local else rendered.get("computeId"),
        "trial": {key: rendered[key] for key in OF_THE_TRIAL if key in rendered},
        "searchSpace": {name: space(value) for name, value in sweep.search_space.items()},
        "samplingAlgorithm": _sampling(sweep.sampling_algorithm),
        "objective": {"goal": sweep.objective.goal, "primaryMetric": sweep.objective.primary_metric},
        "limits": _limits(sweep.limits),
        "earlyTermination": early_termination(sweep.early_termination),
        "resources": own or rendered.get("resources"),
        "displayName": sweep.display_name or None,
        "description": sweep.description,
        "experimentName": sweep.experiment_name or None,
        "isArchived": False,
        "tags": dict(sweep.tags),
        "properties": dict(sweep.properties),
    }
    return Rendered({"properties": some(**properties)})


def space(value: SearchSpace) -> list[Any]:
    """A distribution: its name and its arguments, ``["uniform", [0.1, 1]]``."""
    if isinstance(value, Choice):
        return [value.type, [[_chosen(each) for each in value.values]]]
    return [value.type, [getattr(value, name) for name in type(value).model_fields if name != "type"]]


def _chosen(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: space(cast("SearchSpace", inner)) if isinstance(inner, SEARCH_DISTRIBUTIONS) else inner
            for name, inner in value.items()
        }
    return value


def _sampling(value: str | Sampling | None) -> dict[str, Any] | None:
    if isinstance(value, str):
        return {"samplingAlgorithmType": value.capitalize()}
    return block(value, {}, samplingAlgorithmType=value and value.type.capitalize())


def early_termination(value: EarlyTermination | None) -> dict[str, Any] | None:
    """A policy, with zeros for what it leaves out, as azure-ai-ml fills them in; what is null by word is not sent."""
    if value is None:
        return None
    nulls = {name for name in value.model_fields_set if getattr(value, name) is None}
    return {key: each for key, each in _policy(value).items() if snake(key) not in nulls}


def _policy(value: EarlyTermination) -> dict[str, Any]:
    names = dict.fromkeys(("delay_evaluation", "evaluation_interval", *type(value).model_fields))
    sent = {camel(name): getattr(value, name) or 0 for name in names if name != "type"}
    if isinstance(value, MedianStopping) and value.evaluation_interval is None:
        sent["evaluationInterval"] = 1
    return {"policyType": type(value).__name__, **sent}


def _limits(value: SweepLimits) -> dict[str, Any]:
    return some(
        jobLimitsType="Sweep",
        maxTotalTrials=value.max_total_trials,
        maxConcurrentTrials=value.max_concurrent_trials,
        timeout=duration(floored(value.timeout)),
        trialTimeout=duration(floored(value.trial_timeout)),
    )


def floored(seconds: int | None) -> int | None:
    """A timeout of a sweep, a minute at least: azure-ai-ml raises what the service would take for days."""
    return max(seconds, SHORTEST) if seconds else seconds


def sweep_node_keys(step: SweepStep) -> dict[str, Any]:
    """The keys that only the node of a sweeping step has, in the spelling of nodes."""
    algorithm = step.sampling_algorithm
    return {
        "search_space": {name: _space_of_a_node(value) for name, value in step.search_space.items()} or None,
        "objective": step.objective.model_dump(exclude_none=True),
        "limits": some(
            max_total_trials=step.limits.max_total_trials,
            max_concurrent_trials=step.limits.max_concurrent_trials,
            timeout=floored(step.limits.timeout),
            trial_timeout=floored(step.limits.trial_timeout),
        ),
        "sampling_algorithm": algorithm if isinstance(algorithm, str) else dumped(algorithm),
        "early_termination": _policy_of_a_node(early_termination(step.early_termination), step),
        "queue_settings": dumped(step.queue_settings),
        "resources": None if step.resources is None else resources_file(step.resources),
        **step.extra,
    }


def _space_of_a_node(value: Any) -> Any:
    rendered = value.model_dump()
    return {key: list(inner) if isinstance(inner, tuple) else inner for key, inner in rendered.items()}


def _policy_of_a_node(rendered: dict[str, Any] | None, step: SweepStep) -> dict[str, Any] | None:
    """A policy; of a bandit's two slacks a step leaves out what a sweep job sends as zero."""
    if rendered is None:
        return None
    given = step.early_termination
    return {
        snake(key): value
        for key, value in rendered.items()
        if not (key.startswith("slack") and not getattr(given, snake(key), None))
    }
