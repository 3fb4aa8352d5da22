"""The kind of an Azure ML file by what is in it: the reader of a job, or the name of what is no job.

A file of one kind loads the readers of no other. A component in a file of its own is read as the job that it would be.
A file that is no job (an environment, a data asset, a deployment, a tool's own settings) has one finding, which names
it: read as a command job it would have a finding for every key, none of them true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.base.findings import Level
from jobs.azureml.read import command
from jobs.model.component import PRIMITIVES, NotGiven, asset
from jobs.model.pipeline import Pipeline, PipelineSettings, port_literals
from jobs.values import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobs.azureml.fields import Cursor, Reader
    from jobs.model.component import Port
    from jobs.model.job import Job

_DIALECT = ("distributedcomponent", "commandcomponent")
PLACELESS = PipelineSettings(default_compute="serverless")
"""The pipeline that runs a component says where its steps run; alone they run serverless."""


class JobReader(NamedTuple):
    """The reader of a kind of job file.

    Attributes:
        read: Reads the file; None when it is too broken to be a job.
        path_of: From a path in the job to the keys in its file.
    """

    read: Reader
    path_of: Callable[[str], tuple[str, ...]]


def is_schedule(content: Any) -> bool:
    """True for a schedule, which has no type."""
    return isinstance(content, dict) and "type" not in content and bool({"create_job", "trigger"} & content.keys())


def is_component(content: Any) -> bool:
    """True for a component of any type: by its schema, or by the version that only a component has."""
    if not isinstance(content, dict):
        return False
    schema = str(content.get("$schema", "")).lower()
    return "component" in schema if schema else "version" in content


def is_command_component(data: Any) -> bool:
    """True where a file of type command, or of no type, is a component, not a job."""
    if not isinstance(data, dict):
        return False
    if "launcher" in data or str(data.get("type")).lower() in _DIALECT:
        return True
    if data.get("type", "command") != "command":
        return False
    if "component" in str(data.get("$schema", "")).lower():
        return True
    return "$schema" not in data and ("is_deterministic" in data or ("version" in data and "name" in data))


def is_pipeline_component(data: Any) -> bool:
    """True where a file of type pipeline is a component, not a job: its schema says so, or it has what no job has."""
    if not isinstance(data, dict) or data.get("type") != "pipeline":
        return False
    if "$schema" in data:
        return "component" in str(data["$schema"]).lower()
    ports = data.get("inputs")
    kinds = [port.get("type") for port in ports.values() if isinstance(port, dict)] if isinstance(ports, dict) else []
    return "version" in data or "is_deterministic" in data or any(kind in PRIMITIVES for kind in kinds)


def reader_of(content: Any) -> JobReader | None:
    """The reader of a job file with this content; None for a kind that is not read."""
    if is_command_component(content):
        return JobReader(_read_command_component, command.path_of)
    match content.get("type", "command") if isinstance(content, dict) else "command":
        case "command":
            return JobReader(command.read, command.path_of)
        case "sweep":
            from jobs.azureml.read import sweep  # noqa: PLC0415

            return JobReader(sweep.read, sweep.path_of)
        case "pipeline":
            from jobs.azureml.read import pipeline  # noqa: PLC0415

            read = _read_pipeline_component if is_pipeline_component(content) else pipeline.read
            return JobReader(read, pipeline.path_of)
        case _:
            return None


def _read_command_component(cursor: Cursor) -> Job | None:
    """The job that a component would be; None when it is too broken to be one."""
    from jobs.azureml.read import component  # noqa: PLC0415 - most files are command jobs

    read = component.read_older_dialect if component.in_older_dialect(cursor.value) else component.read
    found = read(cursor)
    if found is None:
        return None
    _note_component(cursor, "the command job")
    job = found.job()
    # Run alone, a component gets no optional input, and the part of its command with one falls away.
    given = {
        name: NotGiven() if port.literal and port.default is None else job.inputs[name]
        for name, port in found.inputs.items()
        if not _left_out(port)
    }
    return job.model_copy(update={"inputs": given})


def _left_out(port: Port) -> bool:
    return bool(port.optional) and port.default is None


def _read_pipeline_component(cursor: Cursor) -> Pipeline | None:
    """The pipeline that a component would be; None when it is too broken to be one."""
    from jobs.azureml.read import passthrough, pipeline  # noqa: PLC0415 - most files are command jobs

    component = passthrough.read_component(cursor, "pipeline", passthrough.Steps(pipeline.steps, pipeline.path_of))
    if component is None:
        return None
    _note_component(cursor, "the pipeline")
    defaults = {name: port.default for name, port in component.inputs.items() if port.default is not None}
    return Pipeline(
        jobs=component.jobs,
        inputs={**port_literals(component.inputs), **defaults},
        outputs={name: Output(type=asset(port)) for name, port in component.outputs.items()},
        display_name=component.display_name,
        description=component.description,
        tags=component.tags,
        settings=PLACELESS,
    )


def _note_component(cursor: Cursor, what: str) -> None:
    """Says that the file is a component, and as what it is read."""
    cursor.bad(
        "component-alone",
        "The file is a component, not a job",
        f"Azure ML runs a component as a step of a pipeline; here it is read as {what} that it would be",
        "Name it in a pipeline: `component: file.yml`, or make it a job.",
        level=Level.WARNING,
    )


RULE = "A job file has a `command`, or a `type` such as `pipeline` with `jobs`"
OF_A_JOB = (
    *("command", "code", "compute", "component", "create_job", "distribution", "environment", "jobs", "limits"),
    *("launcher", "resources", "trial", "trigger"),
)
"""Keys of which a file has at least one that was meant as a job."""


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A kind of file that is no job.

    Attributes:
        what: Its name in a sentence.
        remedy: The way in which a job uses it; empty where none does.
    """

    what: str
    remedy: str = ""


CONDA = OtherFile("a conda environment", "Name it in a job: `environment: {image: IMAGE, conda_file: FILE}`.")
ENVIRONMENT = OtherFile("an environment", "Name it in a job: `environment: file:FILE`.")
DATA = OtherFile(
    "a data asset", "Create it with `az ml data create --file FILE` and name it in a job: `azureml:NAME@latest`."
)
MODEL = OtherFile(
    "a model", "Create it with `az ml model create --file FILE` and name it in a job: `azureml:NAME@latest`."
)
DATASTORE = OtherFile("a datastore", "Create it with `az ml datastore create --file FILE`.")
COMPUTE = OtherFile("a compute", "Create it with `az ml compute create --file FILE`.")
WORKSPACE = OtherFile("a workspace", "Create it with `az ml workspace create --file FILE`.")
ENDPOINT = OtherFile("an endpoint")
DEPLOYMENT = OtherFile("a deployment of a model")
FLOW = OtherFile("a prompt flow")
UNKNOWN = OtherFile("no job: it has no key of one")

_BY_SCHEMA: Mapping[str, OtherFile] = {
    "promptflow": FLOW,
    "environment": ENVIRONMENT,
    "deployment": DEPLOYMENT,
    "endpoint": ENDPOINT,
    "data.schema": DATA,
    "mltable": DATA,
    "model.schema": MODEL,
    "azureblob": DATASTORE,
    "azurefile": DATASTORE,
    "azuredatalake": DATASTORE,
    "compute": COMPUTE,
    "workspace": WORKSPACE,
}
"""Part of a `$schema` address, in lower case, to the kind of file; the first one that fits holds."""

_BY_TYPE: Mapping[str, OtherFile] = {
    **dict.fromkeys(("uri_file", "uri_folder", "mltable"), DATA),
    **dict.fromkeys(("mlflow_model", "custom_model", "triton_model"), MODEL),
    **dict.fromkeys(("azure_blob", "azure_file", "azure_data_lake_gen1", "azure_data_lake_gen2"), DATASTORE),
    **dict.fromkeys(("amlcompute", "computeinstance", "virtualmachine", "kubernetes", "synapsespark"), COMPUTE),
}
"""`type` of a file to its kind."""


def recognized(content: Any) -> OtherFile | None:
    """The kind of a file that is no job; None for one that is a job, or was meant as one."""
    if not isinstance(content, dict) or not content or "command" in content:
        return None
    schema = str(content.get("$schema", "")).lower()
    if not schema.endswith("job.schema.json") and not schema.endswith("component.schema.json"):
        for part, other in _BY_SCHEMA.items():
            if part in schema:
                return other
    if (kind := content.get("type")) is not None:
        return _BY_TYPE.get(str(kind).lower())
    return _by_keys(content) if not schema else None


def _by_keys(content: Mapping[Any, Any]) -> OtherFile | None:
    keys = {str(key) for key in content}
    if isinstance(content.get("dependencies"), list) and keys <= {"name", "channels", "dependencies", "prefix"}:
        return CONDA
    if keys & {"image", "build", "conda_file"} and not keys & {"code", "distribution", "resources", "jobs"}:
        return ENVIRONMENT
    import difflib  # noqa: PLC0415 - only a file without a command needs it

    meant = any(difflib.get_close_matches(key.lower(), OF_A_JOB, 1, cutoff=0.8) for key in keys)
    return None if meant else UNKNOWN
