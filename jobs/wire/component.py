"""Components and sweeps as bodies: each holds a command body without what only one run has, on levels of its own."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from amlstack.base.text import camel, snake
from jobs.launchers import Custom
from jobs.model.job import (
    NO_ENVIRONMENT,
    SEARCH_DISTRIBUTIONS,
    Choice,
    Component,
    EarlyTermination,
    MedianStopping,
    Port,
    Resources,
    Sampling,
    SearchSpace,
    Sweep,
    SweepLimits,
)
from jobs.wire.command import (
    LOCAL,
    PREFIX,
    Refs,
    Rendered,
    block,
    body,
    dumped,
    duration,
    is_local,
    plain,
    resources,
    some,
)
from jobs.wire.keys import RESOURCES, wire_blocks

if TYPE_CHECKING:
    from jobs.model.pipeline import PassthroughComponent, SweepStep
    from jobs.values import Environment

ANONYMOUS = "azureml_anonymous"
"""Name under which azure-ai-ml registers the components of a pipeline's own file.

The service answers with a version of its own choice, and not with the one of the request (azure-sdk-assets,
test_component, 2026-03-27), so that an id cannot be composed before."""
INLINE = "amlstack_inline"
"""Name under which a stack registers them: an ordinary component keeps the version that it is given."""


def component_body(component: Component, refs: Refs | None = None) -> dict[str, Any]:
    """A component of a pipeline as the body of an anonymous component version.

    Args:
        component: Its launcher is `Custom`.
        refs: Where its code and environment are; None leaves references short.
    """
    refs = refs or Refs()
    spec = some(
        name=ANONYMOUS,
        version="1",
        type="command",
        command=component.command,
        code=None if component.code is None else code_reference(refs.code_id(component.code.path)),
        environment=environment_reference(component.environment, refs),
        distribution=_distribution(component),
        display_name=component.display_name,
        description=component.description,
        is_deterministic=component.is_deterministic,
        inputs=ports(component.inputs) or None,
        outputs=ports(component.outputs) or None,
        resources=resources_file(component),
        tags=dict(component.tags) or None,
        properties=plain(component.properties) or None,
        additional_includes=list(component.additional_includes) or None,
    )
    spec |= {key: value for key, value in plain(component.extra).items() if value is not None and value != {}}
    return version_body(component, spec)


def version_body(
    component: Component | PassthroughComponent, spec: Mapping[str, Any], *, archived: bool | None = False
) -> dict[str, Any]:
    """A component version around its specification.

    Args:
        component: Of any kind.
        spec: The specification, without where it comes from.
        archived: `isArchived`; None leaves it out.
    """
    source: dict[str, Any] = {"_source": "YAML.JOB" if component.inline else "YAML.COMPONENT"}
    if component.schema_uri is not None:
        source["$schema"] = component.schema_uri
    properties = some(
        componentSpec={**spec, **source},
        description=component.description,
        isAnonymous=True,
        isArchived=archived,
        properties=plain(component.properties),
        tags=dict(component.tags),
    )
    return {"properties": properties}


def version(body: Mapping[str, Any]) -> str:
    """The version that azure-ai-ml registers an anonymous component body under: a hash of its content."""
    spec = {
        key: value
        for key, value in body["properties"]["componentSpec"].items()
        if key not in ("name", "version", "id", "_source")
    }
    return str(uuid.UUID(hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:32]))


def component_id(body: Mapping[str, Any], refs: Refs) -> str:
    """The id of what `registered_component` makes of a body in the workspace; short and anonymous without one."""
    if refs.workspace is None:
        return f"{ANONYMOUS}:{version(body)}"
    return f"{refs.workspace}/components/{INLINE}/versions/{version(body)}"


def registered_component(body: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of an anonymous component body as a version of `INLINE`."""
    properties = body["properties"]
    spec = {**properties["componentSpec"], "name": INLINE, "version": version(body)}
    return {**properties, "componentSpec": spec, "isAnonymous": False}


def resources_file(given: Resources) -> dict[str, Any] | None:
    """Resources of a component or job as a file has them; None for none."""
    values = {key.in_file: getattr(given, key.field) for key in RESOURCES}
    return some(**{key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}) or None


def code_reference(asset: str) -> str:
    """An id as a file refers to it: ``azureml:`` before it; what is no reference stays."""
    if asset.startswith(("azureml:", "git+", "http://", "https://")) or "/" not in asset:
        return asset
    return f"{PREFIX}{asset}" if asset.startswith("/subscriptions/") else asset


def environment_reference(environment: str | Environment | None, refs: Refs) -> str | None:
    """An environment as a component refers to it; one that is written inline is registered, and the refs know it."""
    if environment is None or environment == NO_ENVIRONMENT:
        return None
    written = environment if isinstance(environment, str) else None
    found = refs.environment_id(written)
    if found is None or found.startswith("azureml:"):
        return found
    return f"{PREFIX}{found}"


def _distribution(component: Component) -> dict[str, Any] | None:
    if not isinstance(component.launcher, Custom):
        raise TypeError(f"the {component.launcher.type} launcher is not lowered yet")
    return dumped(component.launcher.distribution)


def ports(declared: Mapping[str, Port]) -> dict[str, Any]:
    """Inputs or outputs as a component declares them."""
    return {name: _port(port) for name, port in declared.items()}


def _port(port: Port) -> dict[str, Any]:
    return some(
        type=port.type,
        description=port.description,
        optional=port.optional,
        default=_text(port, port.default),
        min=_text(port, port.min),
        max=_text(port, port.max),
        enum=None if port.enum is None else list(port.enum),
        mode=port.mode,
    )


def _text(port: Port, value: Any) -> str | None:
    """A value of a port, which is text in a component; numbers as their type writes them."""
    if value is None:
        return None
    if isinstance(value, bool) and port.type != "string":
        return str(value)
    try:
        match port.type:
            case "number":
                return str(float(value))
            case "integer":
                return str(int(value))
            case "boolean" if isinstance(value, str):
                return value.capitalize()
            case "string" if isinstance(value, int):
                return str(float(value))
            case _:
                return str(value)
    except ValueError:
        return str(value)


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
