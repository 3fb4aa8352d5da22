"""Whatever is declared as an Azure ML CLI v2 file: the rendered body, spelt as ``az ml job create -f`` takes it.

A file that exists gets some values added or changed; all else is left as it was written: comments, order, quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

import yaml

from amlstack.base.text import snake
from jobs.azureml.read.passthrough import scaled
from jobs.launchers import Custom
from jobs.model.job import NO_ENVIRONMENT, SEARCH_DISTRIBUTIONS, Component, Job, Sweep
from jobs.model.pipeline import (
    AnyStep,
    BareOutput,
    Declared,
    PassthroughComponent,
    PassthroughStep,
    Pipeline,
    Schedule,
    Step,
    SweepStep,
)
from jobs.values import Environment, Input, Output
from jobs.wire.command import (
    DISTRIBUTIONS,
    IDENTITIES,
    INPUT_MODES,
    OUTPUT_MODES,
    PRIORITIES,
    SERVICES,
    TIERS,
    body,
    dumped,
    some,
)
from jobs.wire.component import resources_file
from jobs.wire.keys import BLOCKS, RESOURCES, blocks
from jobs.wire.pipeline import BOUND

SCHEMAS = "https://azuremlschemas.azureedge.net/latest"


def command_file(job: Job) -> dict[str, Any]:
    """The file's content, in the order in which people write it.

    Args:
        job: A job whose launcher is lowered (`Plan.enriched`).
    """
    sent = body(job)["properties"]
    values = {
        key: _WRITTEN[key](job, sent.get(wire)) if key in _WRITTEN else sent.get(wire) for key, wire in BLOCKS.items()
    }
    return {"$schema": f"{SCHEMAS}/commandJob.schema.json", "type": "command"} | {
        key: value for key, value in values.items() if value is not None and (value != {} or key in _MAY_BE_EMPTY)
    }


def _back(table: Mapping[str, Any], wire: Any) -> Any:
    """The word for a wire value; of several the most telling, which is the last."""
    return None if wire is None else [word for word, value in table.items() if value == wire][-1]


def _bare_file(**fields: Any) -> dict[str, Any]:
    """The file of a job that has these fields and no command."""
    return command_file(Job.model_validate({"command": "", "environment": NO_ENVIRONMENT, **fields}))


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that say something."""
    return {key: value for key, value in values.items() if value is not None and value not in ({}, [])}


def _environment(job: Job, sent: Any) -> Any:
    if isinstance(job.environment, Environment):
        return dumped(job.environment)
    if job.environment.startswith("azureml:"):
        return None if job.environment == NO_ENVIRONMENT else job.environment
    return sent


def _input(declared: Any, wire: dict[str, Any]) -> Any:
    if not isinstance(declared, Input):
        return declared
    return some(
        type=declared.type,
        path=declared.path,
        mode=_back(INPUT_MODES, wire.get("mode")),
        datastore=declared.datastore,
        path_on_compute=declared.path_on_compute,
    )


def _output(wire: dict[str, Any]) -> Any:
    mode = _back(OUTPUT_MODES, wire.get("mode"))
    path = wire.get("uri")
    name = wire.get("assetName")
    return some(type=wire["jobOutputType"], mode=mode, path=path, name=name, version=wire.get("assetVersion"))


def _words(wire: dict[str, Any] | None, **back: Mapping[str, Any]) -> Any:
    """A block in the spelling of files, its words exchanged."""
    if wire is None:
        return None
    return {snake(key): _back(back[key], value) if key in back else value for key, value in wire.items()}


def _typed(wire: dict[str, Any] | None, key: str, words: Mapping[str, Any]) -> Any:
    """A block whose type is called otherwise on the wire, with the type first."""
    if wire is None:
        return None
    return {"type": _back(words, wire[key]), **_words({name: value for name, value in wire.items() if name != key})}


def _resources(wire: dict[str, Any] | None) -> Any:
    if wire is None:
        return None
    properties = {key: value for key, value in wire["properties"].items() if key != "IsLocal"}
    names = {key.on_wire: key.in_file for key in RESOURCES} | {"dockerArgsList": "docker_args"}
    rest = {names[key]: value for key, value in wire.items() if key != "properties"}
    result = rest | ({"properties": properties} if properties else {})
    return result or (None if "IsLocal" in wire["properties"] else {})


def _service(wire: dict[str, Any]) -> Any:
    return some(
        type=_back(SERVICES, wire.get("jobServiceType")) or "Custom",
        nodes="all" if "nodes" in wire else None,
        port=wire.get("port"),
        properties=wire.get("properties"),
    )


_WRITTEN: Mapping[str, Callable[[Job, Any], Any]] = {
    "name": lambda job, _: job.name,
    "code": lambda job, _: job.code and job.code.path,
    "environment": _environment,
    "inputs": lambda job, sent: {name: _input(job.inputs[name], value) for name, value in sent.items()},
    "outputs": lambda _, sent: {name: _output(value) for name, value in sent.items()},
    "compute": lambda job, _: job.compute,
    "distribution": lambda _, sent: _typed(sent, "distributionType", DISTRIBUTIONS),
    "resources": lambda _, sent: _resources(sent),
    "limits": lambda job, _: None if job.limits is None else some(timeout=job.limits.timeout),
    "queue_settings": lambda _, sent: _words(sent, jobTier=TIERS, priority=PRIORITIES),
    "identity": lambda _, sent: _typed(sent, "identityType", IDENTITIES),
    "services": lambda _, sent: sent and {name: _service(value) for name, value in sent.items()},
}
"""Key to what a file has for it; what is written as it is sent needs no entry."""
_MAY_BE_EMPTY = ("resources", "limits", "queue_settings", "services")


_SWEEP = ("search_space", "objective", "sampling_algorithm", "early_termination", "limits")


def sweep_file(sweep: Sweep) -> dict[str, Any]:
    """A sweep job file."""
    result = command_file(sweep.trial)
    file = {"$schema": f"{SCHEMAS}/sweepJob.schema.json", "type": "sweep", **names(sweep)}
    file["trial"] = {key: result[key] for key in blocks("trial") if key in result}
    file |= {key: result[key] for key in blocks("sweep") if key in result}
    return file | sweep_keys(sweep)


def names(run: Sweep | Pipeline) -> dict[str, Any]:
    """The keys that name a run."""
    result = {name: getattr(run, name) for name in blocks("run")}
    return {key: value for key, value in result.items() if value}


def sweep_keys(sweep: Sweep | SweepStep) -> dict[str, Any]:
    """The keys that make a job or a step a sweep."""
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
        case _ if isinstance(value, SEARCH_DISTRIBUTIONS):
            return {name: plain_values(getattr(value, name)) for name in type(value).model_fields}
        case None | str() | int() | float():
            return value
        case _:
            return value.model_dump(exclude_none=True)


def _other(step: PassthroughStep) -> dict[str, Any]:
    """A parallel or spark step, or a pipeline in the pipeline, which names its file."""
    named = step.component
    result = {"type": step.kind, **_names(step)}
    result |= {key: each for key, each in _given(_bare_file(inputs=step.inputs), step).items() if key == "inputs"}
    result |= _outputs(step.outputs) | {"compute": step.compute}
    result["identity"] = dumped(step.identity)
    if named is None:
        result |= step.spec
    elif isinstance(named, str):
        result |= {"component": named, **step.spec}
    elif named.kind == "pipeline":
        result |= {"component": named.source and named.source.file, **step.spec}
    elif named.inline and not named.inputs and not named.outputs and _same_inline(named):
        result |= {**_other_component(named), **step.spec}
    else:
        result |= {"component": {"type": step.kind, **_other_component(named)}, **step.spec}
    return {key: value for key, value in result.items() if value is not None}


def _same_inline(component: PassthroughComponent) -> bool:
    """True where a component would be read as the same from the step itself."""
    conf = component.spec.get("conf") or {}
    return component.kind != "spark" or scaled(conf) == conf


def _other_component(component: PassthroughComponent) -> dict[str, Any]:
    given = _code_and_environment(component)
    result = {
        **{name: getattr(component, name) for name in ("display_name", "description", "tags", "properties")},
        "is_deterministic": component.is_deterministic,
        "inputs": {name: _port(port) for name, port in component.inputs.items()},
        "outputs": {name: _port(port) for name, port in component.outputs.items()},
        **component.spec,
        "$schema": component.schema_uri,
    }
    result |= {"task": {**component.spec.get("task", {}), **given}} if component.kind == "parallel" else given
    return _filled(result)


def _code_and_environment(component: Component | PassthroughComponent) -> dict[str, Any]:
    environment = component.environment
    return some(
        code=component.code.path if component.code else None,
        environment=dumped(environment) if isinstance(environment, Environment) else environment,
    )


def _names(step: Step | SweepStep | PassthroughStep) -> dict[str, Any]:
    return {name: getattr(step, name) for name in ("display_name", "tags", "properties", "comment") if
            getattr(step, name)}  # fmt: skip


def step_keys(step: AnyStep) -> dict[str, Any]:
    """A step of a pipeline."""
    return _WRITERS[type(step)](step)


def _inline(step: Job) -> dict[str, Any]:
    result = _given(command_file(step), step)
    del result["$schema"]
    if "resources" in result:
        result["resources"] = {key: value for key, value in (resources_file(step) or {}).items() if value != {}}
    return result | _outputs(step.outputs)


def _step(step: Step) -> dict[str, Any]:
    kept = ["environment_variables", "limits", "services"]
    kept += ["distribution"] if step.launcher is not None else []
    kept += ["resources"] if resources_file(step) is not None else []
    return {**_of_component(step, kept), **step.extra}


def _sweep_step(step: SweepStep) -> dict[str, Any]:
    return {**_of_component(step), **sweep_keys(step), **step.extra}


def _of_component(step: Step | SweepStep, kept: Sequence[str] = ()) -> dict[str, Any]:
    """The keys that all steps of a component have, and further keys of a command that their kind has."""
    named = step.runs
    whole = Component(command="", environment=NO_ENVIRONMENT) if isinstance(named, str) else named
    result = _given(command_file(step.job_of(whole.model_copy(update={"inputs": {}, "outputs": {}}))), step)
    file = {"type": step.kind, **_names(step), step.RUNS: named if isinstance(named, str) else _component(named)}
    keys = ("inputs", "compute", "identity", "queue_settings", *kept)
    return {**file, **{key: result[key] for key in keys if key in result}, **_outputs(step.outputs)}


_WRITERS: Mapping[type, Callable[..., dict[str, Any]]] = {
    Job: _inline,
    Step: _step,
    SweepStep: _sweep_step,
    PassthroughStep: _other,
}
"""The kinds of steps, one row each."""


def _given(result: dict[str, Any], step: AnyStep) -> dict[str, Any]:
    """The same with the modes of bound inputs, which a job on its own does not send."""
    for name, value in step.inputs.items():
        if isinstance(value, Input) and value.mode is not None:
            result["inputs"][name]["mode"] = value.mode
    return result


def _outputs(outputs: Mapping[str, Output | None]) -> dict[str, Any]:
    """Outputs of a step: bound with a text, named alone, or described."""
    if not outputs:
        return {}
    described = {name: value for name, value in outputs.items() if value is not None}
    result = _bare_file(outputs=described).get("outputs", {})
    for name, value in outputs.items():
        if value is None or isinstance(value, BareOutput):
            result[name] = None
        elif value.path is not None and BOUND.fullmatch(value.path) and not {"type", "mode"} & value.model_fields_set:
            result[name] = value.path
    return {"outputs": result}


def _component(component: Component) -> dict[str, Any]:
    if not isinstance(component.launcher, Custom):
        raise TypeError(f"the {component.launcher.type} launcher is not lowered yet")
    result = {
        "type": "command",
        **{name: getattr(component, name) for name in ("display_name", "description", "tags", "properties")},
        "inputs": {name: _port(port) for name, port in component.inputs.items()},
        "outputs": {name: _port(port) for name, port in component.outputs.items()},
        "command": component.command,
        **_code_and_environment(component),
        "distribution": dumped(component.launcher.distribution),
        "resources": resources_file(component),
        "is_deterministic": None if component.is_deterministic else False,
        "additional_includes": list(component.additional_includes),
        **component.extra,
        "$schema": component.schema_uri,
    }
    return _filled(result)


def _port(port: Any) -> dict[str, Any]:
    result = port.model_dump(exclude_none=True)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in result.items()}


def pipeline_file(pipeline: Pipeline) -> dict[str, Any]:
    """A pipeline job file; components stand inline in it."""
    result = _bare_file(
        inputs=pipeline.inputs,
        outputs={name: value for name, value in pipeline.outputs.items() if value is not None},
        **{name: getattr(pipeline, name) for name in ("compute", "identity", "services")},
    )
    file = {"$schema": f"{SCHEMAS}/pipelineJob.schema.json", "type": "pipeline", **names(pipeline)}
    outputs = {**result.get("outputs", {}), **{name: None for name, value in pipeline.outputs.items() if value is None}}
    file |= {key: result[key] for key in ("inputs", "compute", "identity", "services") if key in result}
    if outputs:
        file["outputs"] = outputs
    if pipeline.settings is not None:
        settings = pipeline.settings.model_dump(exclude_none=True, exclude={"extra"})
        file["settings"] = {**settings, **pipeline.settings.extra}
    if pipeline.component is not None:
        return {**file, "component": pipeline.component}
    return {**file, "jobs": {name: step_keys(step) for name, step in pipeline.jobs.items()}}


def schedule_file(schedule: Schedule) -> dict[str, Any]:
    """A schedule file; what it starts stands in a file of its own, which it names."""
    result = schedule.model_dump(exclude_none=True, exclude={"create_job", "source_job", "is_enabled"})
    named = (
        schedule.create_job
        if isinstance(schedule.create_job, str)
        else schedule.source_job or (schedule.source and schedule.source.file)
    )
    file = {
        "$schema": f"{SCHEMAS}/schedule.schema.json",
        **{key: plain_values(value) for key, value in result.items() if value},
    }
    return {**file, "create_job": named or "./job.yml"}


WRITERS: dict[type[Declared], Callable[[Any], dict[str, Any]]] = {
    Job: command_file,
    Sweep: sweep_file,
    Pipeline: pipeline_file,
    Schedule: schedule_file,
}
"""Kind of declaration to the writer of its file."""


def file_of(declared: Declared) -> dict[str, Any]:
    """The file's content, for ``az ml job create -f``.

    Args:
        declared: ``enriched`` of a plan.
    """
    return next(WRITERS[kind] for kind in type(declared).__mro__ if kind in WRITERS)(declared)


_MISSING: Any = object()


def rewritten(text: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """The text of a job file with the difference of two renderings of its job put in.

    Args:
        text: The file as it was written.
        before: The job of the file as file content (`write.files.file_of`).
        after: The same job with what is to be changed.

    Returns:
        The new text; the old one when nothing differs. None when the file's form cannot hold the change in place
        (a value that several keys share by an alias).
    """
    if before == after:
        return text
    from ruamel.yaml import YAML  # noqa: PLC0415 - only a file that is changed needs it
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415
    from ruamel.yaml.util import load_yaml_guess_indent  # noqa: PLC0415

    mark, body = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    plain = body.replace("\r\n", "\n")
    try:
        writer = YAML()
        writer.preserve_quotes = True
        writer.width = 100_000
        written, indent, offset = load_yaml_guess_indent(plain, yaml=writer)
        writer.indent(mapping=indent or 2, sequence=(offset or 0) + 2, offset=offset or 0)
    except (YAMLError, ValueError):
        return None
    _change(written, before, after)
    stream = StringIO()
    writer.dump(written, stream)
    result = stream.getvalue()
    if yaml.safe_load(result) != _changed(yaml.safe_load(plain), before, after):
        return None
    return mark + (result.replace("\n", "\r\n") if "\r\n" in body else result)


def _change(written: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Put the difference into a mapping of ruamel's, in place."""
    for key in before:
        if key not in after and key in written:
            del written[key]
    ahead: list[str] = []  # keys that stand before this one, for the place of a new one
    for key, value in after.items():
        old = before.get(key, _MISSING)
        if old == value and type(old) is type(value):
            pass
        elif isinstance(old, dict) and isinstance(value, dict) and isinstance(written.get(key), dict):
            _change(written[key], old, value)
        elif key in written:
            written[key] = _ruamel_node(value)
        else:
            found = [index for index, name in enumerate(written) if name in ahead]
            place = max(found, default=len(written) - 1)
            neighbour = list(written)[place] if written else None
            written.insert(place + 1, key, _ruamel_node(value))
            if neighbour is not None:
                _hand_on(_leaf(written, neighbour), _leaf(written, key))
        ahead.append(key)


def _leaf(parent: Any, key: Any) -> tuple[Any, Any]:
    """The place of the last value below a key: ruamel keeps with it what follows, up to the next key."""
    while isinstance(parent[key], (dict, list)) and parent[key] and not parent[key].fa.flow_style():
        parent = parent[key]
        key = list(parent)[-1] if isinstance(parent, dict) else len(parent) - 1
    return parent, key


def _hand_on(old: tuple[Any, Any], new: tuple[Any, Any]) -> None:
    """Empty lines and comments after a value's own line belong to what follows: behind the value put in between."""
    from ruamel.yaml.tokens import CommentToken  # noqa: PLC0415

    (parent, key), (other, last) = old, new
    slot = 2 if isinstance(parent, dict) else 0
    token = (parent.ca.items.get(key) or [None] * 4)[slot]
    if token is None or isinstance(token, list):
        return
    own, _, rest = token.value.partition("\n")
    if not rest:
        return
    token.value = f"{own}\n" if own else ""
    moved = CommentToken(f"\n{rest}", token.start_mark, None)
    other.ca.items[last] = [None, None, moved, None] if isinstance(other, dict) else [moved, None]
    if not own:
        del parent.ca.items[key]


def _changed(written: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> Any:
    """The content that a file must have after the change: the same on plain values."""
    result = {key: value for key, value in written.items() if key not in before or key in after}
    for key, value in after.items():
        old = before.get(key, _MISSING)
        if old == value and type(old) is type(value):
            continue
        nested = isinstance(old, dict) and isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = _changed(result[key], old, value) if nested else value
    return result


def _ruamel_node(value: Any) -> Any:
    """A new value as ruamel writes it so that PyYAML, which reads YAML 1.1, reads the same."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq  # noqa: PLC0415
    from ruamel.yaml.scalarstring import LiteralScalarString, SingleQuotedScalarString  # noqa: PLC0415

    if isinstance(value, dict):
        return CommentedMap((key, _ruamel_node(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return CommentedSeq(_ruamel_node(inner) for inner in value)
    if not isinstance(value, str):
        return value
    if "\n" in value:
        return LiteralScalarString(value)
    return value if _reads_as_text(value) else SingleQuotedScalarString(value)


def _reads_as_text(value: str) -> bool:
    try:
        return bool(yaml.safe_load(f"a: {value}") == {"a": value})
    except (yaml.YAMLError, ValueError):
        return False
