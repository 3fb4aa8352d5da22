"""Pipelines with steps that move data, in the manner of the guides; `folder` lays out the component that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

COPY = """\
$schema: https://azuremlschemas.azureedge.net/latest/dataTransferCopyComponent.schema.json
name: copy
display_name: Copy
type: data_transfer
task: copy_data
data_copy_mode: merge_with_overwrite
inputs: {a: {type: uri_folder}}
outputs: {o: {type: uri_folder}}
"""
START = "inputs: {t: {type: uri_folder, path: 'azureml:t:1'}, q: select 1}\noutputs: {z: {type: uri_folder}}\n"
_IN = "inputs: {a: '${{parent.inputs.t}}'}"
_FROM = "source: {type: database, query: '${{parent.inputs.q}}', connection: azureml:c}"
_TO = "sink: {type: database, table_name: t, connection: azureml:c}"


def folder(base: Path) -> None:
    """The component file."""
    (base / "sub" / "copy.yml").write_text(COPY)


def _step(task: str, more: str) -> str:
    return f"{START}jobs: {{s: {{type: data_transfer, task: {task}, {more}}}}}"


ACCEPTED = {
    "copy-inline": _step(
        "copy_data",
        f"{_IN}, outputs: {{o: {{type: uri_folder}}}}, data_copy_mode: merge_with_overwrite, compute: azureml:adf,"
        " display_name: D, description: d, tags: {a: b}, properties: {c: d}, name: n, experiment_name: e",
    ),
    "copy-bare": _step(
        "Copy_Data", "inputs: {a: {type: uri_file, path: 'azureml:x:1'}}, outputs: {o: '${{parent.outputs.z}}'}"
    ),
    "copy-component": _step(
        "copy_data",
        f"component: ./sub/copy.yml, {_IN}, data_copy_mode: fail_if_conflict, comment: c, properties: {{a: b}}",
    ),
    "copy-component-inline": _step(
        "copy_data",
        "component: {type: data_transfer, task: copy_data, inputs: {a: {type: uri_folder}},"
        f" outputs: {{o: {{type: uri_folder}}}}}}, {_IN}, outputs: {{o: '${{{{parent.outputs.z}}}}'}}",
    ),
    "copy-registered": _step("copy_data", f"component: azureml:x:1, {_IN}, data_copy_mode: fail_if_conflict"),
    "import-database": _step("import_data", f"compute: serverless, {_FROM}, outputs: {{sink: {{type: mltable}}}}"),
    "import-procedure": _step(
        "import_data",
        "source: {type: Database, stored_procedure: p, stored_procedure_params: [{name: a, value: b, type: String}],"
        " connection: azureml:c}, outputs: {sink: '${{parent.outputs.z}}'}, tags: {a: b}, properties: {c: d}",
    ),
    "import-files": _step(
        "import_data",
        "source: {type: file_system, path: 's3://x', connection: azureml:c},"
        " outputs: {sink: {type: uri_folder, path: 'azureml://datastores/x/paths/y'}}",
    ),
    "import-registered": _step(
        "import_data", f"component: 'azureml://registries/r/components/i/versions/1', {_FROM}, display_name: D"
    ),
    "export-database": _step("export_data", f"inputs: {{source: {{type: uri_file, path: 'azureml:t:1'}}}}, {_TO}"),
    "export-bound": _step("export_data", f"inputs: {{source: '${{{{parent.inputs.t}}}}'}}, {_TO}, compute: azureml:c"),
    "copy-and-a-command": (
        f"{START}jobs:\n  s: {{type: data_transfer, task: copy_data, {_IN}, outputs: {{o: {{type: mltable}}}}}}\n"
        "  c: {command: 'ls ${{inputs.m}}', environment: 'azureml:e:1',"
        " inputs: {m: '${{parent.jobs.s.outputs.o}}'}}\n"
    ),
}

REFUSED = {
    "move-without-task": f"{START}jobs: {{s: {{type: data_transfer, {_IN}}}}}",
    "move-of-another-task": _step("move_data", _IN),
    "copy-mode": _step("copy_data", f"{_IN}, data_copy_mode: merge"),
    "import-without-source": _step("import_data", "outputs: {sink: {type: mltable}}"),
    "import-of-another-kind": _step("import_data", "source: {type: ftp, connection: azureml:c}"),
    "import-without-connection": _step("import_data", "source: {type: database, query: q}"),
    "import-job": "jobs: {s: {type: import, source: {type: azuresqldb, query: q, connection: azureml:c}}}",
}
