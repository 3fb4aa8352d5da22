"""The one renderer: a job as the body that Azure's REST API (2025-12-01) takes.

The form, with its oddities, is that of azure-ai-ml given the same job: literals as text, empty maps kept, a
TensorFlow distribution always with its parameter servers.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Any

from jobs.launchers import Custom
from jobs.model.distribution import Distribution, Mpi, PyTorch, Ray, TensorFlow
from jobs.model.values import EXPRESSION, Input
from jobs.wire.references import Refs

if TYPE_CHECKING:
    from jobs.model.job import Job
    from jobs.model.values import Identity, Output, QueueSettings, Scalar, Service

API_VERSION = "2025-12-01"
"""The API version that bodies are written for."""

INPUT_MODES = {
    "mount": "ReadOnlyMount",
    "ro_mount": "ReadOnlyMount",
    "rw_mount": "ReadWriteMount",
    "download": "Download",
    "direct": "Direct",
    "eval_mount": "EvalMount",
    "eval_download": "EvalDownload",
}
OUTPUT_MODES = {"mount": "ReadWriteMount", "rw_mount": "ReadWriteMount", "upload": "Upload", "direct": "Direct"}
SERVICES = {"ssh": "SSH", "jupyter_lab": "JupyterLab", "tensor_board": "TensorBoard", "vs_code": "VSCode"}
IDENTITIES = {"managed": "Managed", "user_identity": "UserIdentity", "aml_token": "AMLToken"}
PRIORITIES = {"low": 1, "medium": 2, "high": 3}
RESOURCE_PROPERTIES = {
    "aisupercomputer": "AISuperComputer",
    "singularity": "AISuperComputer",
    "itp": "itp",
    "target_selector": "target_selector",
}
LOCAL = "local"
_OLD_BINDING = re.compile(r"(?<!\{)\{(inputs|outputs|search_space)\.([^}]*)\}(?!\})")


def body(job: Job, refs: Refs | None = None) -> dict[str, Any]:
    """Render a job whose launcher is lowered already (`Plan.enriched`).

    Args:
        job: The job; its launcher is `Custom`.
        refs: What the references in it point to; None leaves them short.

    Returns:
        ``{"properties": …}``.

    Raises:
        TypeError: If the launcher is a typed one: `jobs.plan` lowers it.
    """
    refs = refs or Refs()
    if not isinstance(job.launcher, Custom):
        message = f"the {job.launcher.type} launcher is not lowered yet: render Plan.enriched"
        raise TypeError(message)
    local = job.compute is not None and job.compute.lower() == LOCAL
    environment = job.environment if isinstance(job.environment, str) else None
    properties: dict[str, Any] = {
        "jobType": "Command",
        "command": _OLD_BINDING.sub(r"${{\1.\2}}", job.command),
        "environmentId": refs.environment_id(environment),
        "codeId": refs.code_id(job.code.path) if job.code else None,
        "computeId": refs.compute_id(job.compute) if job.compute and not local else None,
        "displayName": job.display_name or None,
        "description": job.description,
        "experimentName": job.experiment_name or None,
        "isArchived": False,
        "inputs": {name: input_body(value, refs) for name, value in job.inputs.items()},
        "outputs": {name: output_body(value) for name, value in job.outputs.items()},
        "environmentVariables": {name: plain(value) for name, value in job.environment_variables.items()},
        "distribution": _distribution(job.launcher.distribution),
        "resources": resources(job, local=local),
        "limits": None if job.limits is None else some(jobLimitsType="Command", timeout=duration(job.limits.timeout)),
        "queueSettings": _queue(job.queue_settings),
        "identity": identity_body(job.identity),
        "services": None
        if job.services is None
        else {name: service_body(value) for name, value in job.services.items()},
        "tags": dict(job.tags),
        "properties": {key: value for key, value in job.properties.items() if key != "_azureml.ComputeTargetType"},
        "parentJobName": job.parent_job_name,
    }
    return {"properties": some(**properties)}


def some(**values: Any) -> dict[str, Any]:
    """Those that have a value: the wire leaves the others out."""
    return {key: value for key, value in values.items() if value is not None}


def input_body(value: Input | Scalar, refs: Refs) -> dict[str, Any]:
    """One input."""
    if not isinstance(value, Input):
        return {"jobInputType": "literal", "value": str(value)}
    if value.path is not None and EXPRESSION.search(value.path):
        return {"jobInputType": "literal", "value": value.path}
    return some(
        jobInputType=value.type,
        uri=None if value.path is None else refs.data_uri(value.path, value.type),
        mode=INPUT_MODES[value.mode] if value.mode else None,
    )


def output_body(value: Output) -> dict[str, Any]:
    """One output."""
    return some(
        jobOutputType=value.type,
        uri=value.path,
        mode=OUTPUT_MODES[value.mode] if value.mode else None,
        assetName=value.name,
        assetVersion=value.version,
        description=value.description,
    )


def _distribution(value: Distribution | None) -> dict[str, Any] | None:
    match value:
        case None:
            return None
        case PyTorch():
            return some(distributionType="PyTorch", processCountPerInstance=value.process_count_per_instance)
        case Mpi():
            return some(distributionType="Mpi", processCountPerInstance=value.process_count_per_instance)
        case TensorFlow():
            return some(
                distributionType="TensorFlow",
                workerCount=value.worker_count,
                parameterServerCount=value.parameter_server_count,
            )
        case Ray():
            return some(
                distributionType="Ray",
                port=value.port,
                address=value.address,
                includeDashboard=value.include_dashboard,
                dashboardPort=value.dashboard_port,
                headNodeAdditionalArgs=value.head_node_additional_args,
                workerNodeAdditionalArgs=value.worker_node_additional_args,
            )


def resources(job: Job, *, local: bool) -> dict[str, Any] | None:
    """The job's resources; None when it names none."""
    parts = (
        job.nodes,
        job.instance_type,
        job.locations,
        job.max_instance_count,
        job.shm_size,
        job.docker_args,
        job.resource_properties,
    )
    if not local and all(part is None for part in parts):
        return None
    properties = {
        RESOURCE_PROPERTIES.get(key.lower(), key): value
        for key, value in without_nulls(job.resource_properties or {}).items()
    }
    if local:
        properties["IsLocal"] = {"IsLocal": True}
    told = some(instanceCount=job.nodes, instanceType=job.instance_type, properties=properties, shmSize=job.shm_size)
    if isinstance(job.docker_args, tuple) and job.docker_args:
        # With a list of arguments azure-ai-ml sends neither locations nor the bound; jobs.plan says so.
        return {**told, "dockerArgsList": list(job.docker_args)}
    return told | some(
        dockerArgs=list(job.docker_args) if isinstance(job.docker_args, tuple) else job.docker_args,
        locations=None if job.locations is None else list(job.locations),
        maxInstanceCount=job.max_instance_count,
    )


def without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """A mapping without what is null, all the way down."""
    return {
        key: without_nulls(inner) if isinstance(inner, dict) else plain(inner)
        for key, inner in value.items()
        if inner is not None
    }


def _queue(value: QueueSettings | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return some(
        jobTier=value.job_tier.capitalize() if value.job_tier else None,
        priority=PRIORITIES[value.priority] if value.priority else None,
    )


def identity_body(value: Identity | None) -> dict[str, Any] | None:
    """The identity."""
    if value is None:
        return None
    return some(
        identityType=IDENTITIES[value.type],
        clientId=value.client_id,
        objectId=value.object_id,
        resourceId=value.resource_id,
    )


def service_body(value: Service) -> dict[str, Any]:
    """One service."""
    properties = dict(value.properties) if value.properties is not None else None
    for key, more in (("sshPublicKeys", value.ssh_public_keys), ("logDir", value.log_dir)):
        if more:  # azure-ai-ml leaves an empty one out
            properties = {**(properties or {}), key: more}
    return some(
        jobServiceType=SERVICES[value.type] if value.type else None,
        nodes={"nodesValueType": "All"} if value.nodes else None,
        port=value.port,
        endpoint=value.endpoint,
        properties=properties,
    )


def plain(value: Any) -> Any:
    """A YAML value as JSON has it: dates as text, mappings and lists all the way down."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def duration(seconds: int | None) -> str | None:
    """Seconds as an ISO-8601 duration, ``PT15M``; None for none."""
    if not seconds:
        return None
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    clock = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if number)
    return f"P{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}"
