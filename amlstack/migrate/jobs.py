"""Command jobs out of the objects that a program of SDK v1 submits: ScriptRunConfig, estimators, run configurations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from amlstack.migrate import commands
from amlstack.migrate.data import DATA, OUTPUTS, JobPorts, listed, shown, text
from amlstack.migrate.distributions import ESTIMATORS, distribution
from amlstack.migrate.environments import Environments
from amlstack.migrate.report import Item, noted
from amlstack.migrate.values import Made, Unread

Parameter = Callable[[Made], str]

SCHEMAS: Final = "https://azuremlschemas.azureedge.net/latest"
_LONGEST: Final = 2_592_000
"""The seconds that ScriptRunConfig gives a run where a program says nothing."""
_IGNORED: Final = frozenset(("compute_target", "environment", "distributed_job_config", "max_run_duration_seconds",
                             "docker_runtime_config"))  # fmt: skip
"""Arguments that ScriptRunConfig does not look at beside a run configuration."""
_CONFIGURED: Final = ("target", "environment", "distributed_job_config", "node_count")
"""Attributes of a run configuration without which a job is not known."""
_ORDER: Final = ("description", "experiment_name", "tags", "code", "command", "inputs", "outputs", "environment",
                 "environment_variables", "compute", "distribution", "resources", "limits")  # fmt: skip


class Commands:
    """The commands of one program, as job files have them.

    Attributes:
        path: The program.
        items: What is to be said of its constructs beyond their rows.
    """

    def __init__(self, path: Path, roots: Sequence[Path], out: Path) -> None:
        self.path, self._roots, self._out = path, roots, out
        self.items: list[Item] = []
        self.environments = Environments(self.told, self.relative, self.found)

    def told(self, place: Made, note: str, /, **values: Any) -> None:
        """Note something on a construct, a row of `notes.toml`; twice the same is once."""
        item = noted(place.file, place.line, note, **{name: text(value) for name, value in values.items()})
        if item not in self.items:
            self.items.append(item)

    def found(self, value: Any) -> Path | None:
        """The file or folder that a path of the program names: from its own folder, or from where it is started."""
        name = text(value)
        if "<fill:" in name or not name:
            return None
        places = (folder / name for folder in (self.path.parent, *self._roots))
        try:
            return next((place for place in places if place.exists()), None)
        except (OSError, ValueError):
            return None

    def relative(self, value: Any, place: Made) -> str:
        """A path as the job file names it, which lies elsewhere than the program."""
        name = text(value)
        if "<fill:" in name:
            return name
        target = self.found(name)
        if target is None:
            self.told(place, "absent-file", name=name)
            target = self.path.parent / name
        return Path(os.path.relpath(target, self._out)).as_posix()

    def command_file(self, made: Made) -> dict[str, Any]:
        """A command job."""
        return file_of("command", made, self.command(made, JobPorts(self.told), lambda each: each.open(each.kind)))

    def command(self, made: Made, data: JobPorts, parameter: Parameter) -> dict[str, Any]:
        """The keys of a command.

        Args:
            made: What is submitted, or a step.
            data: Its inputs and outputs.
            parameter: Gives the word of a command for a parameter of a pipeline.
        """
        config = made.get("run_config", "runconfig")
        of = _over(made, config) if isinstance(config, Made) else made
        if isinstance(config, Unread):
            of = Made(made.kind, {**made.fields, **dict.fromkeys(_CONFIGURED, config)}, made.file, made.line)
        environment = of.get("environment", "environment_definition")
        inner = of.part("environment", "environment_definition")
        line, stays = commands.with_torchrun(self._line(made, of, data, parameter))
        if stays:
            self.told(made, "torch.distributed.launch")
        variables = {**_items(inner.get("environment_variables")), **_items(of.get("environment_variables"))}
        for _, note, values in commands.names_of_v1([line, *map(str, variables)]):
            self.told(made, note, **values)
        own = made.kind in ESTIMATORS and environment is None
        compute = self.compute(of, made)
        spread, nodes = distribution(of, made, self.told)
        limit = of.get("max_run_duration_seconds")
        return {
            "code": self.code(made),
            "command": line,
            "inputs": data.inputs,
            "outputs": data.outputs,
            "environment": self._own(of) if own else self.environments.written(environment, made),
            "environment_variables": {text(name): text(value) for name, value in variables.items()},
            "compute": compute,
            "distribution": spread,
            "resources": _resources(of, inner, nodes, serverless=compute is None),
            "limits": {"timeout": shown(limit)} if limit not in (None, _LONGEST) else None,
        }

    def code(self, made: Made) -> str:
        """The code folder; v1 takes the one that the program is started in where it names none."""
        given = made.get("source_directory")
        return self.relative("." if given is None else given, made)

    def _line(self, made: Made, of: Made, data: JobPorts, parameter: Parameter) -> str:
        command = made.get("command") or of.get("command")
        if command is not None:
            return commands.joined(command, data, parameter)
        name = made.get("script", "entry_script", "script_name") or of.get("script", "entry_script")
        given = made.get("arguments", "script_params", "estimator_entry_script_arguments")
        given = of.get("arguments", "script_params") if given is None else given
        script = commands.quoted(str(PurePosixPath(text(name or made.open("script")))))
        words = ["python", script, *commands.words_of(given, data, parameter)]
        for each in objects(made.get("inputs")):
            if each.kind in DATA | OUTPUTS:
                data.word(each, "")
        return " ".join(words)

    def _own(self, of: Made) -> Any:
        """The environment of an estimator, which its own arguments describe."""
        image = of.get("custom_docker_image", "custom_docker_base_image")
        if of.kind != "Estimator" and image is None:
            return self.environments.written(f"AzureML-{of.kind}-{text(of.get('framework_version') or '')}", of)
        packages = {name: of.get(name) for name in ("conda_packages", "pip_packages")}
        conda = Made("CondaDependencies", packages, of.file, of.line)
        python = {"user_managed_dependencies": of.get("user_managed") is True, "conda_dependencies": conda}
        fields = {
            "image": image,
            "conda_specification": of.get("conda_dependencies_file", "conda_dependencies_file_path"),
            "pip_requirements": of.get("pip_requirements_file", "pip_requirements_file_path"),
            "python": Made("python", python),
        }
        return self.environments.written(Made("Environment.from_docker_image", fields, of.file, of.line), of)

    def compute(self, of: Made, made: Made) -> str | None:
        """The cluster; None for machines that Azure ML finds itself, by their size."""
        target = of.get("compute_target", "target")
        if isinstance(target, Made):
            target = target.get("name") or target.open("compute_target")
        if target in (None, "amlcompute") and of.get("vm_size"):
            return None
        if target is None and made.kind.endswith("Step"):
            target = made.open("compute_target")
        if target in (None, "local"):
            self.told(made, "compute_target")
            return "local"
        return f"azureml:{text(target)}"


def _resources(of: Made, inner: Made, nodes: Any, *, serverless: bool) -> dict[str, Any]:
    """Nodes, size and container of a job."""
    docker = of.part("docker_runtime_config", "docker")
    docker = docker if docker.given() else inner.part("docker")
    found = {
        "instance_count": nodes,
        "instance_type": of.get("vm_size") if serverless else None,
        "shm_size": of.get("shm_size") or docker.get("shm_size"),
        "docker_args": " ".join(map(text, listed(docker.get("arguments")))),
    }
    return {key: shown(value) for key, value in found.items() if value}


def flat(value: Any) -> Iterator[Any]:
    """The values of a list, of lists in it, or of a mapping."""
    for each in [*value.values()] if isinstance(value, dict) else listed(value):
        yield from flat(each) if isinstance(each, (list, tuple)) else (each,)


def objects(value: Any) -> Iterator[Made]:
    """The objects of v1 among such values."""
    return (each for each in flat(value) if isinstance(each, Made))


def _over(made: Made, config: Made) -> Made:
    """An object with its run configuration, which counts before what stands beside it."""
    # Only some attributes of a `run_config` were set, and a step has its own compute beside its configuration.
    whole = config.kind != "run_config" and not made.kind.endswith("Step")
    kept = {name: value for name, value in made.fields.items() if not whole or name not in _IGNORED}
    own = {name: value for name, value in config.given().items() if name not in ("script", "arguments", "command")}
    late = {name: value for name, value in config.given().items() if kept.get(name) is None}
    return Made(made.kind, {**kept, **late, **own}, made.file, made.line)


def _items(value: Any) -> dict[Any, Any]:
    """A mapping, or an attribute whose items were set."""
    return value.given() if isinstance(value, Made) else value if isinstance(value, dict) else {}


def ordered(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """The keys that say something, in the order in which people write them."""
    found = {key: content[key] for key in (*_ORDER, *content) if key in content}
    return {"type": kind} | {key: value for key, value in found.items() if value not in (None, {}, [], "")}


def file_of(kind: str, made: Made, content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file, with its schema and what its submission says."""
    experiment, tags = made.fields.get("_experiment"), made.fields.get("_tags")
    content["experiment_name"] = None if experiment is None else text(experiment)
    content["tags"] = {text(key): text(value) for key, value in tags.items()} if isinstance(tags, dict) else None
    return {"$schema": f"{SCHEMAS}/{kind}Job.schema.json", **ordered(kind, content)}
