"""Pipelines and schedules out of the steps of SDK v1, and all files of one program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from amlstack.migrate import commands
from amlstack.migrate.constructs import constructs, type_of
from amlstack.migrate.data import DATA, OUTPUTS, JobPorts, free, shown, slug, text
from amlstack.migrate.distributions import ESTIMATORS, TYPES
from amlstack.migrate.jobs import SCHEMAS, Parameter, file_of, flat, objects, ordered
from amlstack.migrate.sweeps import Sweeps
from amlstack.migrate.values import Made

Makers = dict[tuple[str, ...], str]

_STEPS: Final = frozenset(name for name, row in constructs().items() if name.endswith("Step") and row.takes)
_HANDED_ON: Final = ("arguments", "estimator_entry_script_arguments", "command", "script_params", "side_inputs",
                     "inputs")  # fmt: skip
_PARTS: Final = ("run_config", "estimator", "runconfig", "hyperdrive_config", "parallel_run_config", "steps",
                 "pipeline")  # fmt: skip


@dataclass
class Document:
    """One job file.

    Attributes:
        stem: The beginning of its name.
        content: What stands in it.
        file: The program that it comes from.
        line: The line there.
        name: The name that the file gets, by which later ones refer to it.
    """

    stem: str
    content: dict[str, Any]
    file: str
    line: int
    name: str = ""


@dataclass
class _Bound:
    """An input that is what another step writes."""

    step: str
    data: Made


class Writer(Sweeps):
    """All job files of one program."""

    def documents(self, made: Sequence[Made]) -> Iterator[Document]:
        """The files; what is part of another object, and was not submitted by itself, has none."""
        part = {id(each) for whole in made for each in _parts(whole)}
        self._all = [(each, {data.key for data in _written(each)}) for each in made if each.kind in _STEPS]
        stem, self._written = slug(self.path.stem, "job"), dict[int, Document]()
        for each in made:
            apart = id(each) in part or "_elsewhere" in each.fields
            row = constructs().get(each.kind)
            if row is None or not row.file or (apart and not each.fields.get("_submitted")):
                continue
            content = getattr(self, f"{row.file}_file")(each)
            found = next((other for other in self._written.values() if other.content == content), None)
            self._written[id(each)] = found or Document(stem, content, each.file, each.line)
            if found is None:
                yield self._written[id(each)]
        for each in made:
            holds = type_of(each.kind) in TYPES or each.kind == "ParallelRunConfig"
            if holds and not {"_used", "_elsewhere"} & each.fields.keys():
                self.told(each, "distribution-unused", kind=each.kind)
        if not any(each.kind == "Pipeline" for each in made):
            for each, _ in self._all:
                self.told(each, "step-alone", kind=each.kind)

    def pipeline_file(self, made: Made) -> dict[str, Any]:
        """A pipeline job."""
        steps: dict[str, Made] = {}
        for each in self._closed([each for each in objects(made.get("steps")) if each.kind in constructs()]):
            steps[free(slug(each.get("name", "script_name"), "step").lower(), steps)] = each
        makers = {data.key: name for name, each in steps.items() for data in _written(each)}
        ports = {name: JobPorts(self.told) for name in steps}
        inputs, jobs = dict[str, Any](), dict[str, Any]()
        for name, each in steps.items():
            jobs[name] = self._step(each, ports[name], makers, inputs)
            for output in _written(each):
                ports[name].declare(output)
            jobs[name] |= {"outputs": ports[name].outputs} if ports[name].outputs else {}
        for name, data in ports.items():
            for port, bound in data.inputs.items():
                if isinstance(bound, _Bound):
                    source = ports[bound.step].name_of(bound.data) or slug(bound.data.get("name"), "output")
                    jobs[name]["inputs"][port] = f"${{{{parent.jobs.{bound.step}.outputs.{source}}}}}"
        if any(each.calls for each in steps.values()):
            self.told(made, "run_after")
        content = {"description": made.get("description"), "inputs": inputs, "jobs": jobs or made.open("steps")}
        return file_of("pipeline", made, content)

    def _closed(self, steps: Sequence[Made]) -> list[Made]:
        """The steps, each once, and those that write what they read, which v1 takes along."""
        found, waiting = list[Made](), [*steps]
        while waiting:
            each = waiting.pop(0)
            if not any(each is other for other in found):
                found.append(each)
                read = {data.key for data in _read(each)} - {data.key for data in _written(each)}
                waiting += (other for other, written in self._all if read & written)
        return found

    def _step(self, made: Made, data: JobPorts, makers: Makers, inputs: dict[str, Any]) -> dict[str, Any]:
        def parameter(each: Made) -> str:
            name = slug(each.get("name"), "parameter")
            default = each.get("default_value")
            plain = default is not None and not isinstance(default, (Made, dict, list))
            inputs[name] = shown(default) if plain else each.open(name)
            data.inputs[name] = f"${{{{parent.inputs.{name}}}}}"
            return f"${{{{inputs.{name}}}}}"

        data.bound = lambda value: _Bound(makers[value.key], value) if value.key in makers else None
        data.own = frozenset(each.key for each in _written(made))
        given = made.get("estimator_entry_script_arguments")
        if made.kind == "HyperDriveStep":
            inner = made.part("hyperdrive_config", kind="HyperDriveConfig")
            return ordered("sweep", self.sweep(inner, data, parameter, given))
        if made.kind == "ParallelRunStep":
            return self._parallel(made, data, parameter)
        if made.kind not in _STEPS:
            return {"type": made.open(made.kind)}
        if made.get("params"):
            self.told(made, "params")
        inner = made.part("estimator", "runconfig")
        if inner.kind in (*ESTIMATORS, "ScriptRunConfig"):
            own = {key: value for key, value in made.given().items() if key not in ("estimator", "runconfig", "name")}
            made = inner.copy(**own, **({"script_params": given} if given else {}))
        return ordered("command", self.command(made, data, parameter))

    def _parallel(self, made: Made, data: JobPorts, parameter: Parameter) -> dict[str, Any]:
        config = made.part("parallel_run_config", kind="ParallelRunConfig")
        config.fields["_used"] = True
        words = [*commands.words_of(made.get("arguments"), data, parameter)]
        read = [data.word(each, "data") for each in objects(made.get("inputs"))]
        for each in objects(made.get("side_inputs")):
            if each.kind in DATA | OUTPUTS:
                data.word(each, "side")
        task = {
            "type": "run_function",
            "code": self.code(config),
            "entry_script": text(config.get("entry_script") or config.open("entry_script")),
            "environment": self.environments.written(config.get("environment"), config),
            "program_arguments": " ".join(words),
        }
        if isinstance(output := made.get("output"), Made):
            word = data.word(output, "output")
            if text(config.get("output_action")) == "append_row":
                task["append_row_to"] = f"{word}/{text(config.get('append_row_file_name') or 'parallel_run_step.txt')}"
        retries = {"max_retries": config.get("run_max_try"), "timeout": config.get("run_invocation_timeout")}
        size, nodes = config.get("mini_batch_size"), config.get("node_count")
        return ordered("parallel", {
            "task": {key: value for key, value in task.items() if value},
            "compute": self.compute(config, made),
            "inputs": data.inputs,
            "outputs": data.outputs,
            "input_data": read[0] if read else made.open("inputs"),
            "mini_batch_size": None if size is None else text(size),
            "error_threshold": config.get("error_threshold"),
            "max_concurrency_per_instance": config.get("process_count_per_node"),
            "retry_settings": {key: shown(value) for key, value in retries.items() if value is not None},
            "resources": {"instance_count": 1 if nodes is None else shown(nodes)},
        })  # fmt: skip

    def schedule_file(self, made: Made) -> dict[str, Any]:
        """A schedule with the pipeline that it starts."""
        pipeline, recurrence = made.part("pipeline_id"), made.get("recurrence")
        if isinstance(recurrence, Made):
            trigger = _trigger(recurrence)
        else:
            self.told(made, "Schedule.create")
            trigger = {"type": made.open("recurrence")}
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", text(made.get("name") or "schedule")).strip("-")
        written = self._written.get(id(pipeline))
        started = {
            "type": "pipeline",
            "job": f"./{written.name}" if written else made.open("pipeline_id"),
            "experiment_name": made.get("experiment_name") and text(made.get("experiment_name")),
        }
        content = {
            "description": made.get("description"),
            "trigger": trigger,
            "create_job": {key: value for key, value in started.items() if value},
        }
        said = {key: value for key, value in content.items() if value is not None}
        return {"$schema": f"{SCHEMAS}/schedule.schema.json", "name": name, **said}


def _trigger(recurrence: Made) -> dict[str, Any]:
    frequency, interval = text(recurrence.get("frequency")).lower(), recurrence.get("interval")
    found: dict[str, Any] = {"type": "recurrence", "frequency": frequency, "interval": shown(interval)}
    hours, minutes = recurrence.get("hours"), recurrence.get("minutes")
    if clock := re.fullmatch(r"(\d{1,2}):(\d{2})", text(recurrence.get("time_of_day"))):
        hours, minutes = [int(clock[1])], [int(clock[2])]
    days = [text(day).lower() for day in flat(recurrence.get("week_days"))]
    if hours or minutes or days:
        found["schedule"] = {"hours": shown(hours or [0]), "minutes": shown(minutes or [0])}
        found["schedule"] |= {"week_days": days} if days else {}
    return found | {key: text(recurrence.get(key)) for key in ("start_time", "time_zone") if recurrence.get(key)}


def _parts(whole: Made) -> Iterator[Made]:
    for name in _PARTS:
        for each in objects(whole.fields.get(name)):
            yield each
            yield from _parts(each)


def _handed_on(step: Made) -> Iterator[Made]:
    """The data among a step's arguments, or among those of what it runs."""
    for holder in (step, step.part("runconfig"), step.part("estimator")):
        for name in _HANDED_ON:
            yield from objects(holder.get(name))


def _written(step: Made) -> Iterator[Made]:
    """The data that a step writes: its outputs, and output configurations among its arguments."""
    yield from (each for name in ("outputs", "output") for each in objects(step.get(name)))
    yield from (each for each in _handed_on(step) if each.kind == "OutputFileDatasetConfig")


def _read(step: Made) -> Iterator[Made]:
    """The data that a step reads."""
    for each in _handed_on(step):
        dataset = each.get("dataset") if each.kind == "Consumption" else each
        if isinstance(dataset, Made):
            yield dataset
