"""What a YAML file is that is no job: an environment, a data asset, a deployment, a tool's own settings.

One finding names it. Read as a command job it would have a finding for every key, none of them true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        what: What it is.
        remedy: How a job uses it; empty where none does.
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
    """What a file is that is no job; None for one that is a job, or was meant as one."""
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
