"""The record of a job as a GET answers it: what the service fills in beside what the request gave.

Source: 334 answers to the PUT of a job in recordings of azure-ai-ml's tests, 2022-06 to 2023-04 (a fork of
azure-sdk-for-python of June 2023).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.files.datastores import DEFAULT_STORE
from amlstack.sandbox.orchestration.parent import PARENTS
from amlstack.sandbox.protocol.kind import Body, system_data

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.store.store import JobRow

TYPE: Final = "Microsoft.MachineLearningServices/workspaces/jobs"
DEFAULTS: Final[Mapping[str, Any]] = {
    "experimentName": "Default",
    "isArchived": False,
    "tags": {},
    "properties": {},
    "environmentVariables": {},
    "inputs": {},
    "outputs": {},
}
RESOURCE_DEFAULTS: Final[Mapping[str, Any]] = {"instanceCount": 1, "shmSize": "2g", "properties": {}}
_MODES: Final = (("inputs", "jobInputType", "ReadOnlyMount"), ("outputs", "jobOutputType", "ReadWriteMount"))
_OF_PIPELINES: Final[Mapping[str, str]] = {
    "azureml.DevPlatv2": "true",
    "azureml.DatasetAccessMode": "Asset",
    "azureml.runsource": "azureml.PipelineRun",
    "runSource": "MFE",
    "runType": "HTTP",
    "azureml.pipelineComponent": "pipelinerun",
}


def rendered(job: JobRow, base: str) -> Body:
    """The job as a GET answers it.

    Args:
        job: Its row.
        base: ``https://127.0.0.1:PORT``.
    """
    properties = {**filled(job.properties), "status": job.status}
    properties.setdefault("displayName", job.name)
    if job.properties.get("jobType") == "Pipeline":
        properties["properties"] = {**_of_pipeline(job.properties), **properties["properties"]}
    words = job.workspace.split("/")
    workspace = f"/subscriptions/{words[2]}/resourcegroups/{words[4]}/workspaces/{words[8]}"
    tracking = f"azureml://{base.removeprefix('https://')}/mlflow/v1.0{job.workspace}?"
    services = {"Tracking": tracking, "Studio": f"https://ml.azure.com/runs/{job.name}?wsid={workspace}"}
    own = {name: {"jobServiceType": name, "endpoint": endpoint} for name, endpoint in services.items()}
    properties["services"] = {**properties.get("services", {}), **own}
    return {
        "id": job.arm_id,
        "name": job.name,
        "type": TYPE,
        "properties": properties,
        "systemData": system_data(job.created, job.ended or job.started or job.created),
    }


def filled(properties: Mapping[str, Any]) -> Body:
    """A job's ``properties`` with the service's defaults.

    The output ``default`` of recordings, the place of a run's own files, is left out: azure-ai-ml 1.35 would read logs
    there, sign their addresses with the datastore's SAS as if it were a key, and fail.
    """
    given: Body = {key: value for key, value in properties.items() if value is not None}
    kind = given.get("jobType")
    shown = {**DEFAULTS, **given}
    if kind in PARENTS:
        del shown["environmentVariables"]
    else:
        shown["resources"] = {**RESOURCE_DEFAULTS, **(given.get("resources") or {})}
    shown |= {side: shown[side] or {} for side, _, _ in _MODES} | with_modes(shown)
    return shown


def with_modes(properties: Mapping[str, Any]) -> Body:
    """A job's inputs and outputs, each with the mode that it gets where the request names none."""
    return {
        side: {key: _port(port, tag, mode) for key, port in properties[side].items()}
        for side, tag, mode in _MODES
        if properties.get(side)
    }


def _port(port: Any, tag: str, mode: str) -> Any:
    if not isinstance(port, dict) or port.get(tag) == "literal" or port.get("mode"):
        return port
    return {**port, "mode": mode}


def _of_pipeline(properties: Mapping[str, Any]) -> dict[str, str]:
    """What run history says of a pipeline: its literal inputs, and its settings."""
    settings = properties.get("settings") or {}
    inputs = properties.get("inputs") or {}
    literals = {name: port["value"] for name, port in inputs.items() if (port or {}).get("jobInputType") == "literal"}
    compute = properties.get("computeId") or settings.get("default_compute")
    store = str(settings.get("default_datastore") or DEFAULT_STORE)
    return {
        **_OF_PIPELINES,
        "azureml.parameters": json.dumps(literals, separators=(",", ":")),
        "azureml.continue_on_step_failure": _word(settings.get("continue_on_step_failure"), "True"),
        "azureml.continue_on_failed_optional_input": _word(settings.get("continue_on_failed_optional_input"), "True"),
        "azureml.enforceRerun": _word(settings.get("force_rerun"), "False"),
        "azureml.defaultDataStoreName": store.rsplit("/", 1)[-1],
        **({"azureml.defaultComputeName": str(compute).rsplit("/", 1)[-1]} if compute else {}),
    }


def _word(given: Any, default: str) -> str:
    return default if given is None else str(given).capitalize()
