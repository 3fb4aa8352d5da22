"""The environment of a job: of a curated one what lives in its place, of an own one its image and conda file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from amlstack.catalog import environments as catalogue
from amlstack.code_reading.code_files import text_of
from amlstack.migrate.data import listed, text
from amlstack.migrate.values import Made, known

Relative = Callable[[Any, Made], str]

CPU: Final = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
GPU: Final = "mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.8-cudnn8-ubuntu22.04"
"""The images that azureml-core 1.61 takes where none is named."""
PYTHON: Final = "3.10.18"
"""The Python that it takes."""
_OWN: Final = re.compile(r"azureml[-_](?!mlflow\b|inference-server-http\b)[\w-]+.*", re.IGNORECASE)
_INSTEAD: Final = ("mlflow", "azureml-mlflow")


class Environments:
    """Environments of the jobs of one file."""

    def __init__(self, told: Callable[..., None], relative: Relative, found: Callable[[Any], Path | None]) -> None:
        self._told, self._relative, self._found = told, relative, found

    def written(self, value: Any, place: Made) -> Any:
        """The value of `environment` in a job file."""
        if value is None:
            self._told(place, "default-environment", image=CPU, python=PYTHON)
            return place.open("environment")
        if isinstance(value, str):
            return self._by_name(value, None, place)
        if not isinstance(value, Made):
            return text(value)
        if value.kind == "Environment.get":
            return self._by_name(value.get("name"), value.get("version"), value)
        if value.kind == "Environment.from_dockerfile":
            return self._of_dockerfile(value.get("dockerfile"), value)
        if value.kind == "Environment.from_docker_build_context":
            context = value.part("docker_build_context")
            if not context.get("path"):
                return value.open("docker_build_context")
            file = context.get("dockerfile_path")
            build = {"path": self._relative(context.get("path"), value)}
            return {"build": build | ({"dockerfile_path": text(file)} if file else {})}
        if value.kind not in ("Environment", "environment") and not value.kind.startswith("Environment.from_"):
            return text(value)
        return self._own(value)

    def _by_name(self, name: Any, version: Any, place: Made) -> str:
        if not known(name):
            return f"azureml:{text(name)}@latest"
        living = catalogue.get(name)
        is_curated = name.lower().startswith(catalogue.SHORT_PREFIX)
        if is_curated and living is None and not version:
            others = catalogue.successors(name) or _by_framework(name)
            if not others:
                self._told(place, "environment-lost", name=name)
                return place.open(name)
            living = catalogue.get(others[0])
            assert living is not None  # noqa: S101 - a name of the catalogue
            self._told(place, "environment-retired", name=name, new=living.name, has=living.describe())
        if is_curated and living is not None:
            version = version or living.version
            return living.version_id(text(version)) if version else living.label_id()
        return f"azureml:{name}:{text(version)}" if version else f"azureml:{name}@latest"

    def _own(self, value: Made) -> Any:
        docker, python = value.part("docker"), value.part("python")
        image = value.get("image") or docker.get("base_image")
        if image is None and (dockerfile := docker.get("base_dockerfile")) is not None:
            return self._of_dockerfile(dockerfile, value)
        if image is None and not python.get("user_managed_dependencies"):
            image = CPU
        conda = self._conda(value, python)
        return {"image": _image(image) or value.open("base_image")} | ({} if conda is None else {"conda_file": conda})

    def _conda(self, value: Made, python: Made) -> Any:
        if python.get("user_managed_dependencies") is True:
            return None
        listed = value.kind == "Environment.from_pip_requirements"
        file = None if listed else value.get("file_path", "conda_specification")
        if file is not None:
            return self._file(file, value)
        requirements = value.get("file_path" if listed else "pip_requirements")
        if requirements is not None:
            return conda_of([], self._lines(requirements, value), PYTHON)
        given = python.get("conda_dependencies")
        return self.dependencies(given) if isinstance(given, Made) else None if given is None else text(given)

    def dependencies(self, given: Made) -> Any:
        """The conda file that a `CondaDependencies` is."""
        if (file := given.get("conda_dependencies_file_path")) is not None:
            return self._file(file, given)
        conda, pip = ([*map(text, listed(given.get(name)))] for name in ("conda_packages", "pip_packages"))
        version, channels = text(given.get("python_version") or PYTHON), list[str]()
        added = {"add_pip_package": pip, "": pip, "add_conda_package": conda, "add_channel": channels}
        for name, arguments in given.calls:
            value = next(iter(arguments.values()), "")
            if name in added:
                added[name].append(text(value))
            elif name == "set_python_version":
                version = text(value)
            elif name == "set_pip_requirements":
                pip[:] = map(text, listed(value))
            elif name in ("remove_pip_package", "remove_conda_package"):
                pip[:] = [each for each in pip if re.split(r"[=<>\[~!]", each)[0] != text(value)]
        return conda_of(conda, pip, version, channels)

    def _file(self, file: Any, value: Made) -> Any:
        """A conda file: its path, or its content where v1's packages in it give way to others."""
        path = self._found(file)
        try:
            content = yaml.safe_load(text_of(path) or "") if path else None
        except yaml.YAMLError:
            content = None
        if not isinstance(content, dict) or not isinstance(content.get("dependencies"), list):
            return self._relative(file, value)
        renewed = [
            {**each, "pip": without_v1(each["pip"])}
            if isinstance(each, dict) and isinstance(each.get("pip"), list)
            else each
            for each in content["dependencies"]
        ]
        if renewed == content["dependencies"]:
            return self._relative(file, value)
        self._told(value, "azureml-* packages", file=file)
        return {**{key: each for key, each in content.items() if key != "name"}, "dependencies": renewed}

    def _lines(self, file: Any, value: Made) -> list[str]:
        path = self._found(file)
        if path is None:
            return [value.open(f"packages of {text(file)}")]
        lines = (line.partition("#")[0].strip() for line in (text_of(path) or "").splitlines())
        return [line for line in lines if line]

    def _of_dockerfile(self, dockerfile: Any, value: Made) -> Any:
        path = self._found(dockerfile)
        if path is None:
            self._told(value, "base_dockerfile")
            return {"build": {"path": value.open("folder of the Dockerfile")}}
        folder = self._relative(path.parent.as_posix(), value)
        return {"build": {"path": folder} | ({"dockerfile_path": path.name} if path.name != "Dockerfile" else {})}


def _by_framework(name: str) -> Sequence[str]:
    """Names of today with the framework of an old one (``AzureML-PyTorch-1.6-GPU``), for the same devices first."""
    words = re.split(r"[-_.]", name.lower())
    words += ["pytorch"] if "deepspeed" in words else []
    same = [each for each in catalogue.all_environments() if each.framework in words]
    return [each.name for each in sorted(same, key=lambda each: bool(each.cuda) is ("cpu" in words))]


def _image(value: Any) -> str:
    dotted = getattr(value, "dotted", "")
    if dotted.endswith(("DEFAULT_GPU_IMAGE", "MPI_GPU_IMAGE")):
        return GPU
    return CPU if dotted.endswith(("DEFAULT_CPU_IMAGE", "MPI_CPU_IMAGE")) else "" if value is None else text(value)


def without_v1(packages: Sequence[Any]) -> list[Any]:
    """Requirements with MLflow in the place of the packages of SDK v1."""
    kept = [each for each in packages if not (isinstance(each, str) and _OWN.fullmatch(each.strip()))]
    if len(kept) == len(packages):
        return kept
    names = {re.split(r"[=<>\[~! ]", each)[0].lower() for each in kept if isinstance(each, str)}
    return [*kept, *(each for each in _INSTEAD if each not in names)]


def conda_of(conda: Sequence[str], pip: Sequence[str], python: str, channels: Sequence[str] = ()) -> dict[str, Any]:
    """The content of a conda file; v1 adds its own package where a program names none, v2 needs MLflow there."""
    others = [each for each in conda if not re.match(r"(python|pip)\b(?!-)", each)]
    itself = [each for each in conda if re.match(r"pip\b(?!-)", each)] or ["pip"]
    packages = [f"python={python}", *others, *itself, {"pip": without_v1([*pip, "azureml-defaults"])}]
    return {"channels": [*channels, "conda-forge"], "dependencies": packages}
