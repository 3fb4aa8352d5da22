"""Inputs and outputs of a job out of datasets, datastores and output configurations of SDK v1."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from itertools import chain, count
from typing import Any, Final

from amlstack.migrate.values import Made

_INPUT_MODES: Final = {"mount": "ro_mount", "download": "download", "direct": "direct"}
_OUTPUT_MODES: Final = {"mount": "rw_mount", "upload": "upload"}
DATA: Final = frozenset(("Consumption", "Dataset", "Tabular", "Uploaded", "DataReference"))
OUTPUTS: Final = frozenset(("OutputFileDatasetConfig", "PipelineData"))
_DEFAULT: Final = "workspaceblobstore"
"""The default datastore of a new workspace."""


def slug(text: Any, otherwise: str) -> str:
    """A name for an input, an output or a step."""
    found = re.sub(r"\W+", "_", text if isinstance(text, str) and "<fill:" not in text else "").strip("_")
    return found if re.match(r"[A-Za-z_]", found) else otherwise


def free(name: str, taken: Container[str], form: str = "{}") -> str:
    """The first of NAME, NAME_2, NAME_3 … that is not taken."""
    names = (form.format(each) for each in chain((name,), (f"{name}_{number}" for number in count(2))))
    return next(each for each in names if each not in taken)


def _plain(value: Any) -> Any:
    """The default of a parameter of a pipeline; anything else as it is."""
    if isinstance(value, Made) and value.kind == "PipelineParameter" and value.get("default_value") is not None:
        return _plain(value.get("default_value"))
    return value


def listed(value: Any) -> list[Any]:
    """The values of a list; a single value counts as a list of one."""
    return [*value] if isinstance(value, (list, tuple)) else [] if value is None else [value]


def text(value: Any) -> str:
    """A value as text; a placeholder where it is not known."""
    return str(_plain(value))


def shown(value: Any) -> Any:
    """A plain value as it is, of a list each part; anything else as text."""
    value = _plain(value)
    if isinstance(value, (list, tuple)):
        return [*map(shown, value)]
    if isinstance(value, dict):
        return {key if isinstance(key, int) else text(key): shown(each) for key, each in value.items()}
    return value if value is None or isinstance(value, (int, float)) else text(value)


def address(datastore: Any, path: Any) -> str:
    """The address of a path on a datastore."""
    held = datastore.get("name", "datastore_name") or datastore if isinstance(datastore, Made) else datastore
    plain = datastore is None or getattr(datastore, "kind", "") == "DefaultDatastore"
    name = _DEFAULT if plain else text(held)
    rest = re.sub(r"/?\*+.*$", "", text(path)).strip("/")
    return f"azureml://datastores/{name}/paths/{rest}"


class JobPorts:
    """The inputs and outputs of one job or step, as its arguments name them.

    Attributes:
        inputs: Inputs of its file, by name.
        outputs: Outputs of its file, by name.
        own: In a pipeline the keys of what the step writes; None where all outputs are the job's own.
        bound: In a pipeline what binds an input to the step that writes it.
    """

    def __init__(self, told: Callable[..., None]) -> None:
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        self.own: frozenset[tuple[str, ...]] | None = None
        self.bound: Callable[[Made], Any] = lambda _: None
        self._told = told
        self._names: dict[tuple[str, ...], str] = {}

    def word(self, value: Made, option: str) -> str:
        """The word of a command for a dataset or an output; it is noted as input or output."""
        dataset = value.get("dataset") if value.kind == "Consumption" else value
        origin = dataset if isinstance(dataset, Made) else value
        writes = value.kind in OUTPUTS and (self.own is None or value.key in self.own)
        kind = "outputs" if writes else "inputs"
        key = (kind, *value.key, *origin.key)
        if key not in self._names:
            given = value.get("name", "output_name", "data_reference_name") or origin.get("name")
            wanted = slug(given, slug(option.lstrip("-"), kind[:-1]))
            name = self._names[key] = free(wanted, {*self.inputs, *self.outputs})
            if writes:
                self.outputs[name] = self.output(value)
            else:
                bound = self.bound(origin) if origin.kind in OUTPUTS else None
                self.inputs[name] = self.input(value) if bound is None else bound
        return f"${{{{{kind}.{self._names[key]}}}}}"

    def declare(self, output: Made) -> None:
        """An output that no argument hands on is declared, and named."""
        if not self.name_of(output):
            self.word(output, "output")
            self._told(output, "output-unused", kind=output.kind)

    def name_of(self, output: Made) -> str:
        """The name of an output that the step writes."""
        return next((name for key, name in self._names.items() if key[0] == "outputs" and key[1:5] == output.key), "")

    def input(self, value: Made) -> dict[str, Any]:
        """An input of a file."""
        dataset = value.get("dataset") if value.kind == "Consumption" else value
        if isinstance(dataset, Made) and dataset.kind == "PipelineParameter":
            dataset = dataset.get("default_value")
        found: dict[str, Any] = {"type": "uri_folder", "path": text(value)}
        if isinstance(dataset, Made):
            found |= self._dataset(dataset)
        elif dataset is not None:
            found["path"] = text(dataset)
        mode = value.get("mode")
        if value.kind == "DataReference" and mode != "download":
            self._told(value, "DataReference")
        if isinstance(mode, str) and mode.lower() in _INPUT_MODES:
            found["mode"] = _INPUT_MODES[mode.lower()]
        if value.get("path_on_compute"):
            self._told(value, "path_on_compute", path=value.get("path_on_compute"))
        return found

    def _dataset(self, dataset: Made) -> dict[str, Any]:
        path = dataset.get("path")
        if dataset.kind in ("DataReference", "DataPath"):
            return {"path": address(dataset.get("datastore"), dataset.get("path_on_datastore") or "")}
        name = dataset.get("registered") or (dataset.get("name") if path is None else None)
        if name:
            version = dataset.get("version")
            label = "@latest" if version in (None, "latest") else f":{text(version)}"
            kind = "mltable" if dataset.kind == "Tabular" else "uri_folder"
            return {"type": kind, "path": f"azureml:{text(name)}{label}"}
        if isinstance(path, list) and len(path) == 1:
            [path] = path
        if isinstance(path, tuple) and len(path) == 2:
            return {"path": address(*path)}
        if isinstance(path, Made):
            return self._dataset(path)
        if isinstance(path, str):
            folder = re.sub(r"/?\*+.*$", "", path)
            single = folder == path and re.search(r"\.\w{1,7}$", path) is not None
            return {"type": "uri_file" if single else "uri_folder", "path": folder}
        if isinstance(path, list):
            self._told(dataset, "paths", kind=dataset.kind, count=len(path))
        return {"path": dataset.open("path")}

    def output(self, value: Made) -> dict[str, Any]:
        """An output of a file."""
        found: dict[str, Any] = {"type": "uri_folder"}
        mode = value.get("mode", "output_mode")
        if isinstance(mode, str) and mode.lower() in _OUTPUT_MODES:
            found["mode"] = _OUTPUT_MODES[mode.lower()]
        destination = value.get("destination")
        if isinstance(destination, tuple) and len(destination) == 2:
            path = address(*destination)
            found["path"] = path.replace("{run-id}", "${{name}}").replace("{output-name}", "${{output_name}}")
        elif destination is not None:
            found["path"] = value.open("destination")
        if value.get("source"):
            self._told(value, "source")
        if value.get("registered"):
            found["name"] = text(value.get("registered"))
        return found
