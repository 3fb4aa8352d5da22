"""Inputs and outputs of a job out of datasets, datastores and output configurations of SDK v1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from amlstack.migrate.values import Made, Unread

if TYPE_CHECKING:
    from collections.abc import Callable

_INPUT_MODES: Final = {"mount": "ro_mount", "download": "download", "direct": "direct"}
_OUTPUT_MODES: Final = {"mount": "rw_mount", "upload": "upload"}
_RUN: Final = {"{run-id}": "${{name}}", "{output-name}": "${{output_name}}"}
DATA: Final = frozenset(("Consumption", "Dataset", "Tabular", "Uploaded", "DataReference"))
OUTPUTS: Final = frozenset(("OutputFileDatasetConfig", "PipelineData"))
_DEFAULT: Final = "workspaceblobstore"
"""The default datastore of a new workspace."""


def slug(text: Any, otherwise: str) -> str:
    """A name for an input, an output or a step."""
    found = re.sub(r"\W+", "_", text if isinstance(text, str) and "<fill:" not in text else "").strip("_")
    return found if re.match(r"[A-Za-z_]", found) else otherwise


def text(value: Any) -> str:
    """A value as text; a placeholder where it is not known."""
    if isinstance(value, Made):
        default = value.get("default_value") if value.kind == "PipelineParameter" else None
        return text(default) if default is not None else str(Unread(value.kind, value.file, value.line))
    return str(value)


def shown(value: Any) -> Any:
    """A plain value as it is, of a list each part; anything else as text."""
    if isinstance(value, (list, tuple)):
        return [*map(shown, value)]
    if isinstance(value, Made) and value.kind == "PipelineParameter" and value.get("default_value") is not None:
        return shown(value.get("default_value"))
    if isinstance(value, dict):
        return {shown(key): shown(each) for key, each in value.items()}
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
            name = self._names[key] = self._free(slug(given, slug(option.lstrip("-"), kind[:-1])))
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
            how = "Hand it on in the command: `${{outputs.NAME}}`."
            self._told(output, output.kind, "hand", "no argument hands its path to the code", how)

    def name_of(self, output: Made) -> str:
        """The name of an output that the step writes."""
        return next((name for key, name in self._names.items() if key[0] == "outputs" and key[1:5] == output.key), "")

    def _free(self, name: str) -> str:
        taken = {*self.inputs, *self.outputs}
        return next(each for each in (name, *(f"{name}_{number}" for number in range(2, 999))) if each not in taken)

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
            how = "Declare it under `outputs:`, with the same path, where the code writes to it."
            self._told(value, "DataReference", "hand", "v1 mounts it writable, an input of v2 is read-only", how)
        if isinstance(mode, str) and mode.lower() in _INPUT_MODES:
            found["mode"] = _INPUT_MODES[mode.lower()]
        if value.get("path_on_compute"):
            said = f"`{text(value.get('path_on_compute'))}` is not kept: v2 hands the path to the command"
            self._told(value, "path_on_compute", "hand", said, "Let the code take the path of its argument.")
        return found

    def _dataset(self, dataset: Made) -> dict[str, Any]:
        path = dataset.get("path")
        if dataset.kind in ("DataReference", "DataPath"):
            return {"path": address(dataset.get("datastore"), dataset.get("path_on_datastore") or "")}
        name = dataset.get("registered") or (dataset.get("name") if path is None else None)
        if name:
            version = dataset.get("version")
            return {
                "type": "mltable" if dataset.kind == "Tabular" else "uri_folder",
                "path": f"azureml:{text(name)}{'@latest' if version in (None, 'latest') else f':{text(version)}'}",
            }
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
            self._told(dataset, dataset.kind, "hand", f"it has {len(path)} paths, an input of v2 has one",
                       "Declare an input for each, or name the folder above them.")  # fmt: skip
        return {"path": text(Unread("path", dataset.file, dataset.line))}

    def output(self, value: Made) -> dict[str, Any]:
        """An output of a file."""
        found: dict[str, Any] = {"type": "uri_folder"}
        mode = value.get("mode", "output_mode")
        if isinstance(mode, str) and mode.lower() in _OUTPUT_MODES:
            found["mode"] = _OUTPUT_MODES[mode.lower()]
        destination = value.get("destination")
        if isinstance(destination, tuple) and len(destination) == 2:
            path = address(*destination)
            for old, new in _RUN.items():
                path = path.replace(old, new)
            found["path"] = path
        elif destination is not None:
            found["path"] = text(Unread("destination", value.file, value.line))
        if value.get("source"):
            self._told(value, "source", "hand", "the code writes to a folder of its own, which v1 uploaded from there",
                       "Let the code write to the output's path, which the command hands on.")  # fmt: skip
        if value.get("registered"):
            found["name"] = text(value.get("registered"))
        return found
