"""The answers of jobs: the stored body, and what the service writes beside it.

Source: 264 answers to PUTs of jobs in recordings of azure-ai-ml, 2022-06 to 2023-05 (docs/maintain/recordings.md).
"""

from __future__ import annotations

import json
import math
import re
import uuid
from typing import TYPE_CHECKING, Final

from amlstack.base.text import seconds
from amlstack.sandbox.files.storage import ARTIFACT_STORE, artifact_prefix
from amlstack.sandbox.protocol.kind import Body, system_data
from amlstack.sandbox.protocol.times import with_offset

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import JobRow

TYPE: Final = "Microsoft.MachineLearningServices/workspaces/jobs"
BEGUN: Final = {"Command": "Starting", "Pipeline": "Preparing", "Sweep": "Running"}
"""The status in the answer to the PUT of a new job, by its type."""
_NULLS: Final = dict.fromkeys((
    "description", "computeId", "identity", "componentId", "notificationSetting", "secretsConfiguration",
))  # fmt: skip
_OF_COMMAND: Final = dict.fromkeys(("codeId", "distribution", "autologgerSettings", "limits", "queueSettings"))
_OF_TYPE: Final[dict[str, Body]] = {
    "Command": {**_OF_COMMAND, "parameters": {}, "environmentVariables": None},
    "Pipeline": {"settings": None, "jobs": None, "sourceJobId": None},
    "Sweep": {"earlyTermination": None, "queueSettings": None},
}
_RAY: Final = dict.fromkeys((
    "port", "address", "includeDashboard", "dashboardPort", "headNodeAdditionalArgs", "workerNodeAdditionalArgs",
))  # fmt: skip
_RESOURCES: Final = dict.fromkeys(("maxInstanceCount", "instanceType", "locations", "properties", "dockerArgs"))
_SERVICE: Final = dict.fromkeys(("port", "status", "errorMessage", "properties", "nodes"))
_DASHBOARD: Final[Body] = {
    "jobServiceType": "Custom", "endpoint": None, "port": 8265, "status": "NotStarted", "properties": {},
}  # fmt: skip
_OUTPUT: Final = {
    **dict.fromkeys(("description", "uri", "assetName", "assetVersion")), "mode": "ReadWriteMount",
    "autoDeleteSetting": None, "jobOutputType": "uri_folder",
}  # fmt: skip


def rendered(job: JobRow, base: str) -> Body:
    """The job as a GET answers it; who has changed it last is not told.

    Args:
        job: Its row.
        base: ``https://127.0.0.1:PORT``.
    """
    stamp = {**system_data(job.created, job.created, form=with_offset), **job.body.get("systemData", {})}
    given = job.properties.get("services") or {}
    own = {"displayName": job.name, "status": job.status, "services": {**_services(job, base), **given}}
    shown = filled(job.properties)
    if shown["jobType"] != "Pipeline":
        shown["outputs"] = {RUN: own_output(job.name), **shown["outputs"]}
    return {
        "id": job.arm_id,
        "name": job.name,
        "type": TYPE,
        "properties": {**own, **shown, "status": job.status, "services": own["services"]},
        "systemData": {name: value for name, value in stamp.items() if name.startswith("created")},
    }


RUN: Final = "default"
"""The output that every run has beside those of its body: the folder of its own files."""


def own_output(job: str) -> Body:
    """The output of a run's own files."""
    return {**_OUTPUT, "uri": f"azureml://datastores/{ARTIFACT_STORE}/{artifact_prefix(job)}".rstrip("/")}


def filled(properties: Body) -> Body:
    """A job's ``properties`` with what the service writes beside them."""
    given = {key: value for key, value in properties.items() if value is not None}
    kind = given.get("jobType", "")
    shown: Body = {**_NULLS, **_OF_TYPE.get(kind, {}), "experimentName": "Default", "isArchived": False, "tags": {}}
    shown = {**shown, "inputs": {}, "outputs": {}, **given}
    shown["properties"] = {**_properties(given, kind), **given.get("properties", {})}
    shown["inputs"] = {name: _input(port) for name, port in shown["inputs"].items()}
    shown["outputs"] = {name: _output(port) for name, port in shown["outputs"].items()}
    if kind == "Command":
        shown["resources"] = _resources(given.get("resources"), shm=True)
        if (shown["distribution"] or {}).get("distributionType") == "Ray":
            shown["distribution"] = {**_RAY, **shown["distribution"]}
        if shown["queueSettings"]:
            shown["queueSettings"] = {"priority": None, **shown["queueSettings"]}
    if kind == "Sweep":
        trial = given["trial"]
        shown["trial"] = {**dict.fromkeys(("codeId", "distribution")), **trial}
        shown["trial"]["resources"] = _resources(trial.get("resources"), shm=False)
        shown["samplingAlgorithm"] = _sampling(given["samplingAlgorithm"])
        shown["limits"] = {"trialTimeout": None, **(given.get("limits") or {})}
        shown["tags"] = {**_hyperdrive(given), **shown["tags"]}
    return shown


_DEFINED: Final = {
    **dict.fromkeys(("displayName", "properties", "tags", "inputs", "outputs", "services", "parameters")),
    "status": "NotStarted", "experimentName": "Default", "isArchived": False,
}  # fmt: skip


def defined(given: Body) -> Body:
    """A job in a schedule with what the service writes beside it: nothing that only a run has."""
    kind = given.get("jobType", "")
    known = {**_NULLS, **_OF_TYPE.get(kind, {}), **_DEFINED}
    shown: Body = {name: value for name, value in known.items() if name != "parameters" or kind == "Command"} | given
    for side, completed in (("inputs", _input), ("outputs", _output)):
        if shown[side]:
            shown[side] = {name: completed(port) for name, port in shown[side].items()}
    if kind == "Command":
        shown["resources"] = {"instanceCount": 1, "shmSize": "2g", **_RESOURCES, **(given.get("resources") or {})}
    return shown


def _output(port: Body | None) -> Body:
    return {**_OUTPUT, **_stated(port)}


def _mode(port: Body, mode: str) -> Body:
    return {} if port.get("jobInputType") == "literal" or port.get("mode") else {"mode": mode}


def _stated(port: Body | None) -> Body:
    return {key: value for key, value in (port or {}).items() if value is not None}


def _input(port: Body | None) -> Body:
    stated = _stated(port)
    return {"description": None, **_mode(stated, "ReadOnlyMount"), **stated}


def _resources(given: Body | None, *, shm: bool) -> Body:
    stated = _stated(given)
    return {"instanceCount": 1, **({"shmSize": "2g"} if shm else {}), **_RESOURCES, **stated}


def _sampling(given: Body) -> Body:
    random = given.get("samplingAlgorithmType") == "Random"
    return {**({"seed": None, "logbase": None, "rule": "Random"} if random else {}), **_stated(given)}


def _services(job: JobRow, base: str) -> Body:
    """The addresses at which a job is shown and tracked; the dashboard of a queued job of Ray has none here."""
    studio = f"https://ml.azure.com/runs/{job.name}?wsid={_studio(job.workspace)}"
    found = {"Studio": {"jobServiceType": "Studio", "endpoint": studio, **_SERVICE}}
    if job.properties["jobType"] != "Sweep":
        tracking = f"azureml://{base.removeprefix('https://')}/mlflow/v1.0{job.workspace}?"
        found["Tracking"] = {"jobServiceType": "Tracking", "endpoint": tracking, **_SERVICE}
    ray = job.properties.get("distribution") or {}
    if ray.get("distributionType") == "Ray" and ray.get("includeDashboard") is not False and job.status == "Queued":
        found["ray-dashboard"] = {**_SERVICE, **_DASHBOARD}
    return found


def _studio(workspace: str) -> str:
    """The id of a workspace as Studio writes it."""
    _, _, subscription, _, group, *_, name = workspace.split("/")
    return f"/subscriptions/{subscription}/resourcegroups/{group}/workspaces/{name}"


def _metric(given: Body) -> str:
    objective = given["objective"]
    return _compact({"name": objective["primaryMetric"], "goal": str(objective["goal"]).lower()})


def _hyperdrive(given: Body) -> Body:
    """The tags by which the service's sweeps keep their state."""
    limits, sampling = given.get("limits") or {}, _sampling(given["samplingAlgorithm"])
    duration = seconds(str(limits.get("timeout") or ""))
    policy = _stated(given.get("earlyTermination"))
    ends = {_snake(name): policy[name] for name in _POLICY if name in policy}
    truncates = policy.get("policyType") == "TruncationSelection"
    ends |= {"exclude_finished_jobs": policy.get("excludeFinishedJobs", False)} if truncates else {}
    kind = str(sampling.pop("samplingAlgorithmType"))
    random = {name: sampling.get(name) for name in ("rule", "logbase", "seed")}
    generator = {"name": kind.upper(), "parameter_space": given["searchSpace"], "properties": random}
    state = {
        "max_concurrent_jobs": limits.get("maxConcurrentTrials"),
        "max_total_jobs": limits.get("maxTotalTrials"),
        "max_duration_minutes": duration and math.ceil(duration / 60),
        "policy_config": _compact({"name": policy.get("policyType", "Default"), "properties": ends}),
        "generator_config": _compact(generator) if kind == "Random" else None,  # of the others nothing is recorded
        "primary_metric_config": _metric(given),
        "resume_child_runs": "null",
        "all_jobs_generated": "false",
        "cancellation_requested": "false",
    }
    return {f"_aml_system_{name}": str(value) for name, value in state.items() if value is not None}


_POLICY: Final = (
    *("evaluationInterval", "delayEvaluation"),
    *("slackAmount", "slackFactor", "truncationPercentage", "excludeFinishedJobs"),
)
"""The properties of an early termination, in HyperDrive's order."""


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


def _compact(value: Body) -> str:
    return json.dumps(value, separators=(",", ":"))


def _properties(given: Body, kind: str) -> Body:
    code = str(given.get("codeId") or (given.get("trial") or {}).get("codeId") or "")
    snapshot = {"ContentSnapshotId": str(uuid.uuid5(uuid.NAMESPACE_URL, code))} if code else {}
    if kind == "Command":
        return {"_azureml.ComputeTargetType": "amlctrain", **snapshot}
    if kind == "Sweep":
        source = {"runTemplate": "HyperDrive", "azureml.runsource": "hyperdrive", "platform": "AML"}
        return {"primary_metric_config": _metric(given), "resume_from": "null", **source, **snapshot}
    settings = given.get("settings") or {}
    compute = str(settings.get("default_compute") or given.get("computeId") or "").rpartition("/")[2]
    literal = {
        name: str(port.get("value"))
        for name, port in (given.get("inputs") or {}).items()
        if (port or {}).get("jobInputType") == "literal"
    }
    source = {"azureml.SourceComponentId": given["componentId"]} if given.get("componentId") else {}
    return {
        **source,
        "azureml.DevPlatv2": "true",
        "azureml.DatasetAccessMode": "Asset",
        "azureml.runsource": "azureml.PipelineRun",
        "runSource": "MFE",
        "runType": "HTTP",
        "azureml.parameters": json.dumps(literal, separators=(",", ":")),
        "azureml.continue_on_step_failure": str(settings.get("continue_on_step_failure", True)),
        "azureml.continue_on_failed_optional_input": str(settings.get("continue_on_failed_optional_input", True)),
        "azureml.enforceRerun": str(settings.get("force_rerun", False)),
        **({"azureml.defaultComputeName": compute} if compute else {}),
        "azureml.defaultDataStoreName": str(settings.get("default_datastore") or "workspaceblobstore").rpartition("/")[
            2
        ],
        "azureml.pipelineComponent": "pipelinerun",
    }
