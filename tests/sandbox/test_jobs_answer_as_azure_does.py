"""The record of a job has what the service fills in, as recordings of azure-ai-ml's tests show it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.orchestration import progress
from tests.support.sandbox.sandbox_client import CURATED, cluster, job

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager


@pytest.fixture
def gpu(manager: Manager) -> str:
    """The id of a cluster."""
    path = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", path, cluster())
    return path


def component(manager: Manager, name: str, **spec: Any) -> str:
    """The id of a component that is registered."""
    path = f"{manager.workspace}/components/{name}/versions/1"
    whole = {"type": "command", "command": "true", "environment": CURATED, **spec}
    status, answer = manager.call("PUT", path, {"properties": {"componentSpec": whole}})
    assert status == 201, answer
    return path


def put(manager: Manager, properties: dict[str, Any], name: str = "one") -> dict[str, Any]:
    status, answer = manager.call("PUT", f"{manager.workspace}/jobs/{name}", {"properties": properties})
    assert status in {200, 201}, answer
    found: dict[str, Any] = answer["properties"]
    return found


URI = "azureml://datastores/workspaceblobstore/paths/a/"


def test_data_are_mounted_where_no_mode_is_asked_for(manager: Manager, gpu: str) -> None:
    ports = {
        "inputs": {
            "data": {"jobInputType": "mltable", "uri": URI},
            "copy": {"jobInputType": "uri_folder", "uri": URI, "mode": "Download"},
            "lr": {"jobInputType": "literal", "value": "1"},
        },
        "outputs": {"model": {"jobOutputType": "uri_folder"}},
    }
    shown = put(manager, job(gpu, **ports)["properties"])
    modes = {name: port.get("mode") for name, port in shown["inputs"].items()}
    assert modes == {"data": "ReadOnlyMount", "copy": "Download", "lr": None}
    assert shown["outputs"]["model"]["mode"] == "ReadWriteMount"
    del shown["status"]  # that of its first moment
    assert put(manager, shown).items() >= shown.items()


def test_a_runs_own_files_are_an_output_that_may_be_put_back(manager: Manager, gpu: str) -> None:
    shown = put(manager, job(gpu)["properties"])
    assert shown["outputs"]["default"]["uri"] == "azureml://datastores/workspaceartifactstore/ExperimentRun/dcid.one"
    del shown["status"]
    assert put(manager, {**shown, "displayName": "other"})["outputs"] == shown["outputs"]
    assert not manager.store.jobs["one"].properties.get("outputs"), "it is no output of the job's own"


def test_a_queued_job_of_ray_has_a_dashboard(manager: Manager, gpu: str) -> None:
    body, at = job(gpu, distribution={"distributionType": "Ray"}), {"api-version": "2023-04-01-preview"}
    assert manager.call("PUT", f"{manager.workspace}/jobs/one", body, **at)[0] == 201
    manager.store.jobs.move("one", "Queued")
    shown = manager.call("GET", f"{manager.workspace}/jobs/one")[1]["properties"]["services"]["ray-dashboard"]
    assert (shown["jobServiceType"], shown["port"], shown["status"]) == ("Custom", 8265, "NotStarted")


def sweep(gpu: str, **properties: Any) -> dict[str, Any]:
    trial = {"command": "echo ${{search_space.lr}}", "environmentId": CURATED}
    return {
        "jobType": "Sweep", "computeId": gpu, "trial": trial, "searchSpace": {"lr": ["uniform", [0.001, 0.1]]},
        "samplingAlgorithm": {"samplingAlgorithmType": "Random"},
        "objective": {"goal": "Maximize", "primaryMetric": "accuracy"}, **properties,
    }  # fmt: skip


def test_a_sweep_keeps_its_state_in_tags(manager: Manager, gpu: str) -> None:
    policy = {"policyType": "TruncationSelection", "evaluationInterval": 1, "truncationPercentage": 40}
    limits = {"jobLimitsType": "Sweep", "maxConcurrentTrials": 2, "maxTotalTrials": 3, "timeout": "PT90S"}
    tags = put(manager, sweep(gpu, earlyTermination=policy, limits=limits))["tags"]
    ours = {name.removeprefix("_aml_system_"): value for name, value in tags.items()}
    counts = ours["max_concurrent_jobs"], ours["max_total_jobs"], ours["max_duration_minutes"]
    assert counts == ("2", "3", "2")
    assert ours["policy_config"] == (
        '{"name":"TruncationSelection","properties":'
        '{"evaluation_interval":1,"truncation_percentage":40,"exclude_finished_jobs":false}}'
    )
    assert json.loads(ours["generator_config"])["parameter_space"] == {"lr": ["uniform", [0.001, 0.1]]}
    plain = put(manager, sweep(gpu, limits={"jobLimitsType": "Sweep"}), "two")["tags"]
    assert plain["_aml_system_policy_config"] == '{"name":"Default","properties":{}}'
    assert "_aml_system_max_duration_minutes" not in plain


def test_the_short_name_of_a_curated_environment_is_answered_by_its_id(manager: Manager, gpu: str) -> None:
    trial = {**sweep(gpu)["trial"], "environmentId": "azureml:AzureML-sklearn-1.0-ubuntu20.04-py38-cpu:33"}
    shown = put(manager, sweep(gpu, trial=trial))["trial"]["environmentId"]
    assert shown == f"{manager.workspace}/environments/AzureML-sklearn-1.0-ubuntu20.04-py38-cpu/versions/33"
    assert put(manager, sweep(gpu, trial=trial))["trial"]["environmentId"] == shown


def test_a_queue_that_is_none_is_shown_since_2023_02(manager: Manager, gpu: str) -> None:
    put(manager, job(gpu)["properties"])
    path = f"{manager.workspace}/jobs/one"
    shown = {at: manager.call("GET", path, **{"api-version": at})[1] for at in ("2022-10-01", "2023-04-01")}
    assert ["queueSettings" in one["properties"] for one in shown.values()] == [False, True]


def test_services_are_tracking_and_the_studio(manager: Manager, gpu: str) -> None:
    shown = put(manager, job(gpu)["properties"])["services"]
    words = manager.workspace.split("/")
    short = f"/subscriptions/{words[2]}/resourcegroups/{words[4]}/workspaces/{words[8]}"
    assert shown["Studio"]["endpoint"] == f"https://ml.azure.com/runs/one?wsid={short}"
    assert shown["Tracking"]["endpoint"].startswith("azureml://")
    assert shown["Tracking"]["endpoint"].endswith(f"/mlflow/v1.0{manager.workspace}?")


def test_a_pipeline_says_its_literals_and_settings(manager: Manager, gpu: str) -> None:
    step = {"type": "command", "componentId": component(manager, "step")}
    settings = {"default_compute": gpu, "continue_on_step_failure": False}
    inputs = {"lr": {"jobInputType": "literal", "value": "1"}, "data": {"jobInputType": "uri_file", "uri": URI}}
    shown = put(manager, {"jobType": "Pipeline", "jobs": {"a": step}, "settings": settings, "inputs": inputs})
    properties = shown["properties"]
    assert json.loads(properties["azureml.parameters"]) == {"lr": "1"}
    assert (properties["azureml.continue_on_step_failure"], properties["azureml.enforceRerun"]) == ("False", "False")
    assert (properties["azureml.defaultComputeName"], properties["azureml.runsource"]) == (
        "gpu",
        "azureml.PipelineRun",
    )


def test_a_pipeline_of_a_component_says_which(manager: Manager, gpu: str) -> None:
    steps = {"a": {"type": "command", "componentId": component(manager, "step")}}
    whole = component(manager, "whole", type="pipeline", jobs=steps)
    shown = put(manager, {"jobType": "Pipeline", "componentId": whole, "settings": {"default_compute": gpu}})
    assert shown["properties"]["azureml.SourceComponentId"] == whole


def test_a_schedules_job_has_its_modes_too(manager: Manager, gpu: str) -> None:
    definition = job(gpu, inputs={"data": {"jobInputType": "uri_file", "uri": URI}})["properties"]
    trigger = {"triggerType": "Cron", "expression": "0 2 * * *"}
    action = {"actionType": "CreateJob", "jobDefinition": definition}
    path = f"{manager.workspace}/schedules/nightly"
    shown = manager.call("PUT", path, {"properties": {"trigger": trigger, "action": action}})[1]
    assert shown["properties"]["action"]["jobDefinition"]["inputs"]["data"]["mode"] == "ReadOnlyMount"


def test_a_steps_compute_may_be_the_plain_name_in_an_input(manager: Manager, gpu: str) -> None:
    step = {"type": "command", "componentId": component(manager, "step"), "computeId": "${{parent.inputs.where}}"}
    for name, where in (("one", "gpu"), ("two", gpu), ("three", "serverless")):
        inputs = {"where": {"jobInputType": "literal", "value": where}}
        assert put(manager, {"jobType": "Pipeline", "jobs": {"a": step}, "inputs": inputs}, name)


def test_the_name_of_the_pipeline_and_paths_below_data_can_be_bound(manager: Manager, gpu: str) -> None:
    step = component(manager, "step", inputs={"data": {"type": "uri_folder"}, "run": {"type": "string"}})
    given = {"data": "${{parent.inputs.data}}/part/${{parent.inputs.where}}", "run": "of ${{parent.name}}"}
    bound = {name: {"value": text} for name, text in given.items()}
    inputs = {
        "where": {"jobInputType": "literal", "value": "gpu"},
        "data": {"jobInputType": "uri_folder", "uri": URI},
    }
    steps = {"a": {"type": "command", "componentId": step, "inputs": bound, "other": "${{parent.inputs.data}}"}}
    put(manager, {"jobType": "Pipeline", "jobs": steps, "inputs": inputs, "settings": {"default_compute": gpu}})
    progress.advance(manager.store, manager.store.jobs["one"], 0.0)
    (child,) = manager.store.children("one").values()
    assert child.properties["inputs"] == {
        "data": {"jobInputType": "uri_folder", "uri": f"{URI}part/gpu"},
        "run": {"jobInputType": "literal", "value": "of one"},
    }


@pytest.mark.parametrize("serverless", ["serverless", "{W}/computes/serverless"])
def test_the_steps_of_a_pipeline_may_be_serverless(manager: Manager, serverless: str) -> None:
    step = {"type": "command", "componentId": component(manager, "step")}
    where = serverless.replace("{W}", manager.workspace)
    assert put(manager, {"jobType": "Pipeline", "jobs": {"a": step}, "settings": {"default_compute": where}})


def test_a_pipeline_with_values_as_outputs_is_taken(manager: Manager, gpu: str) -> None:
    first = component(manager, "first", outputs={"count": {"type": "integer"}})
    second = component(manager, "second", inputs={"count": {"type": "integer"}})
    bound = {"count": {"job_input_type": "literal", "value": "${{parent.jobs.a.outputs.count}}"}}
    steps = {
        "a": {"type": "command", "componentId": first},
        "b": {"type": "command", "componentId": second, "inputs": bound},
    }
    assert put(manager, {"jobType": "Pipeline", "jobs": steps, "settings": {"default_compute": gpu}})


def test_named_outputs_of_a_pipeline_and_of_its_steps_become_assets(manager: Manager, gpu: str) -> None:
    step = component(manager, "step", outputs={"model": {"type": "uri_folder"}, "rest": {"type": "uri_folder"}})
    bound = {"type": "literal", "value": "${{parent.outputs.best}}", "name": "hidden", "version": "2"}
    outputs = {"model": bound, "rest": {"name": "rest", "version": "4"}}
    steps = {"a": {"type": "command", "componentId": step, "outputs": outputs}}
    best = {"jobOutputType": "uri_folder", "assetName": "best"}
    settings = {"default_compute": gpu}
    put(manager, {"jobType": "Pipeline", "jobs": steps, "outputs": {"best": best}, "settings": settings})
    progress.advance(manager.store, manager.store.jobs["one"], 0.0)
    (child,) = manager.store.children("one").values()
    assert {name: port.get("assetName") for name, port in child.properties["outputs"].items()} == {
        "model": None,
        "rest": "rest",
    }
    manager.store.jobs.move(child.id, "Completed")
    progress.advance(manager.store, manager.store.jobs["one"], 0.0)
    status, made = manager.call("GET", f"{manager.workspace}/data/best/versions/1")
    assert (status, made["properties"]["dataType"]) == (200, "uri_folder")
    assert manager.call("GET", f"{manager.workspace}/data/hidden/versions/2")[0] == 404


def test_an_output_of_a_pipeline_is_early_where_its_steps_is(manager: Manager) -> None:
    port = {"type": "boolean", "is_control": True}
    step = component(manager, "step", outputs={"ready": {**port, "early_available": True}})
    bound = {"ready": {"type": "literal", "value": "${{parent.outputs.done}}"}}
    jobs = {"a": {"type": "command", "componentId": step, "outputs": bound}}
    spec = {"type": "pipeline", "jobs": jobs, "outputs": {"done": port}}
    path = f"{manager.workspace}/components/whole/versions/1"
    shown = manager.call("PUT", path, {"properties": {"componentSpec": spec}})[1]["properties"]["componentSpec"]
    assert shown["outputs"] == {"done": {"type": "boolean", "is_control": "True", "early_available": "True"}}


def test_a_virtual_cluster_is_refused_by_name(manager: Manager) -> None:
    where = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/virtualclusters/vc"
    status, error = manager.call("PUT", f"{manager.workspace}/jobs/one", job(where))
    assert (status, error["code"]) == (501, "SandboxNotEmulated")
    assert "virtual clusters" in error["message"]


def test_a_compute_instance_is_refused_by_name(manager: Manager) -> None:
    properties = {"vmSize": "Standard_D2s_v3", "enableRootAccess": True, "enableOSPatching": False}
    body = {"location": "eastus", "properties": {"computeType": "ComputeInstance", "properties": properties}}
    status, error = manager.call("PUT", f"{manager.workspace}/computes/mine", body)
    assert (status, error["code"]) == (501, "SandboxNotEmulated")
    assert "ComputeInstance" in error["message"]
