"""Pipelines and their components as the sandbox receives them: taken only when everything in them holds together."""

# ruff: noqa: E501 - one line per row of a table reads best

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.planes import run_history
from tests.support.sandbox.sandbox_client import CURATED, cluster

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

SPEC: dict[str, Any] = {
    "type": "command",
    "command": "echo ${{inputs.data}} > ${{outputs.model}}/x",
    "environment": CURATED,
    "inputs": {"data": {"type": "uri_folder", "optional": True}, "lr": {"type": "number", "default": "0.1"}},
    "outputs": {"model": {"type": "uri_folder"}},
}


@pytest.fixture
def train(manager: Manager) -> str:
    """The id of a component, in a workspace with a cluster of two nodes."""
    manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())
    path = f"{manager.workspace}/components/train/versions/1"
    assert manager.call("PUT", path, {"properties": {"componentSpec": SPEC}})[0] == 201
    return path


def body(manager: Manager, train: str, **more: Any) -> dict[str, Any]:
    """A pipeline of two steps, the second of which reads what the first writes."""
    steps = {
        "first": {"type": "command", "componentId": train},
        "second": {
            "type": "command",
            "componentId": train,
            "inputs": {"data": {"job_input_type": "literal", "value": "${{parent.jobs.first.outputs.model}}"}},
            "outputs": {"model": {"type": "literal", "value": "${{parent.outputs.best}}"}},
        },
    }
    properties = {
        "jobType": "Pipeline",
        "jobs": steps,
        "settings": {"default_compute": f"{manager.workspace}/computes/gpu"},
        "outputs": {"best": {"jobOutputType": "uri_folder"}},
    }
    return copy.deepcopy({"properties": {**properties, **more}})


def put(manager: Manager, fields: dict[str, Any]) -> tuple[int, Any]:
    return manager.call("PUT", f"{manager.workspace}/jobs/pipe", fields)


def test_a_pipeline_is_taken_and_stays_as_it_was_put(manager: Manager, train: str) -> None:
    fields = body(manager, train)

    assert put(manager, fields)[0] == 201
    assert manager.store.jobs["pipe"].body == fields
    status, again = put(manager, fields)
    assert (status, again["properties"]["status"]) == (200, "NotStarted")
    fields["properties"]["jobs"]["first"]["inputs"] = {"lr": {"job_input_type": "literal", "value": "2"}}
    assert put(manager, fields)[1]["code"] == "JobPropertyImmutable"


CHANGES = [
    ("second", {"componentId": "{W}/components/trian/versions/1"}, 404, "Did you mean '{W}/components/train/versions/1'?"),
    ("second", {"componentId": "azureml://registries/azureml/components/c/versions/1"}, 501, "components of a registry"),
    ("second", {"componentId": None}, 400, "the step names no component"),
    ("second", {"type": "spark"}, 501, "steps of the type 'spark' (properties.jobs.second), only command, sweep, pipeline, parallel"),
    ("second", {"type": "parallel"}, 400, "a step of the type 'parallel' names a component of the type 'command'"),
    ("second", {"type": "pipeline"}, 400, "a step of the type 'pipeline' names a component of the type 'command'"),
    ("second", {"inputs": {"date": "x"}}, 400, "the component has no input 'date'. Did you mean 'data'?"),
    ("second", {"outputs": {"modle": {}}}, 400, "the component has no output 'modle'. Did you mean 'model'?"),
    ("second", {"inputs": {"data": "${{parent.jobs.frist.outputs.model}}"}}, 400, "there is no step 'frist'. Did you mean 'first'?"),
    ("second", {"inputs": {"data": "${{parent.jobs.first.outputs.modell}}"}}, 400, "the step 'first' has no output 'modell'."),
    ("second", {"inputs": {"lr": "${{parent.inputs.rate}}"}}, 400, "the pipeline has no input 'rate'."),
    ("second", {"inputs": {"lr": "${{parent.lr}}"}}, 400, "'${{parent.lr}}' binds nothing"),
    ("second", {"outputs": {"model": {"value": "${{parent.inputs.best}}"}}}, 400, "the pipeline has no input 'best'."),
    ("first", {"inputs": {"data": "${{parent.jobs.second.outputs.model}}"}}, 400, "the steps wait for each other in a circle: "),
    ("first", {"computeId": "{W}/computes/gppu"}, 400, "properties.jobs.first: '{W}/computes/gppu' was not found in the workspace. Did you mean"),
    ("first", {"computeId": "local"}, 501, "the compute 'local'"),
    ("first", {"resources": {"instance_count": 3}}, 400, "The job asks for 3 nodes, but the compute 'gpu' has at most 2"),
    ("first", {"resources": {"instance_cuont": 3}}, 400, "Did you mean 'instanceCount' or "),
    ("first", {"distribution": {"type": "pitorch"}}, 400, "'pitorch' is not allowed."),
]  # fmt: skip


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: f"{row[0]}-{'-'.join(row[1])}")
def test_what_does_not_hold_together_is_refused_by_name(
    manager: Manager, train: str, row: tuple[str, dict[str, Any], int, str]
) -> None:
    step, change, status, part = row
    fields = body(manager, train)
    placed = {
        key: value.replace("{W}", manager.workspace) if isinstance(value, str) else value
        for key, value in change.items()
    }
    fields["properties"]["jobs"][step].update(placed)

    seen, error = put(manager, fields)

    assert seen == status, error
    assert part.replace("{W}", manager.workspace) in error["message"]
    assert manager.store.jobs.list() == ()


def test_an_input_without_a_default_must_be_given(manager: Manager, train: str) -> None:
    path = f"{manager.workspace}/components/strict/versions/1"
    manager.call("PUT", path, {"properties": {"componentSpec": {**SPEC, "inputs": {"data": {"type": "uri_folder"}}}}})
    fields = body(manager, train)
    fields["properties"]["jobs"]["first"]["componentId"] = path

    status, error = put(manager, fields)

    assert (status, error["target"]) == (400, "properties.jobs.first.inputs.data")
    assert "the required input 'data' of the component is not given." in error["message"]


TUNE: dict[str, Any] = {
    "type": "sweep",
    "search_space": {"lr": {"type": "uniform", "min_value": 0, "max_value": 1}},
    "objective": {"goal": "minimize", "primary_metric": "loss"},
    "limits": {"max_total_trials": 2, "max_concurrent_trials": 2},
    "early_termination": {"policy_type": "MedianStopping", "evaluation_interval": 1, "delay_evaluation": 0},
}


def test_a_step_that_is_a_sweep_is_taken(manager: Manager, train: str) -> None:
    fields = body(manager, train)
    fields["properties"]["jobs"]["first"] = {**TUNE, "trial": {"componentId": train}}

    status, answer = put(manager, fields)

    assert status == 201, answer


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"early_termination": {"type": "median_stoping"}}, "'MedianStoping' is not allowed. Did you mean 'MedianStopping'"),
        ({"objective": {"goal": "least", "primary_metric": "loss"}}, "'least' is not allowed."),
        ({"search_space": {"lr": {"type": "uniform"}}}, "uniform takes 2 argument(s)"),
        ({"computeId": "none"}, "computes/none' was not found in the workspace."),
    ],
)  # fmt: skip
def test_a_step_that_is_no_sweep_is_refused_by_name(
    manager: Manager, train: str, change: dict[str, Any], part: str
) -> None:
    fields = body(manager, train)
    fields["properties"]["jobs"]["first"] = {**TUNE, "trial": {"componentId": train}, **change}

    status, error = put(manager, fields)

    assert (status, error["message"].startswith("properties.jobs.first: ")) == (400, True), error
    assert part in error["message"]


def test_what_is_wrong_in_a_step_of_a_step_is_refused_with_the_way_to_it(manager: Manager, train: str) -> None:
    path = f"{manager.workspace}/components/deep/versions/1"
    inner = {"first": {"type": "command", "componentId": train, "inputs": {"date": "x"}}}
    spec = {"type": "pipeline", "jobs": inner}
    assert manager.call("PUT", path, {"properties": {"componentSpec": spec}})[0] == 201
    fields = body(manager, train)
    fields["properties"]["jobs"]["deep"] = {"type": "pipeline", "componentId": path}

    status, error = put(manager, fields)

    assert status == 400
    assert error["message"].startswith("properties.jobs.deep: ")
    assert (
        "'properties.jobs.first.inputs.date': the component has no input 'date'. Did you mean 'data'?"
        in error["message"]
    )


def test_a_pipeline_names_a_component_of_a_pipeline(manager: Manager, train: str) -> None:
    status, error = put(manager, {"properties": {"jobType": "Pipeline", "componentId": train}})

    assert (status, error["target"]) == (400, "properties.componentId")


def test_a_pipeline_has_steps(manager: Manager) -> None:
    status, error = put(manager, {"properties": {"jobType": "Pipeline"}})

    assert (status, error["target"]) == (400, "properties.jobs")


SPECS = [
    (None, "the required property 'componentSpec'"),
    ({**SPEC, "command": ""}, "the required property 'command' of a command component is missing."),
    ({**SPEC, "environment": None}, "the required property 'environment'"),
    ({**SPEC, "inputs": {"data": "uri_folder"}}, "an input or output is an object with a 'type'."),
    ({**SPEC, "type": "import"}, "components of the type 'import', only command, pipeline, parallel"),
    ({"type": "pipeline"}, "the required property 'jobs' of a pipeline component is missing."),
    ({"type": "pipeline", "jobs": {"a": {"componentId": "/none"}}}, "the component '/none' was not found"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "part"), SPECS)
def test_a_component_says_what_it_runs(manager: Manager, spec: Any, part: str) -> None:
    path = f"{manager.workspace}/components/bad/versions/1"

    status, error = manager.call("PUT", path, {"properties": {"componentSpec": spec}})

    assert status in {400, 501}
    assert part in error["message"]


@pytest.mark.parametrize("kind", ["automl", "data_transfer", "spark"])
def test_a_component_that_the_sandbox_cannot_run_is_kept_and_not_run(manager: Manager, train: str, kind: str) -> None:
    path = f"{manager.workspace}/components/kept/versions/1"
    assert manager.call("PUT", path, {"properties": {"componentSpec": {**SPEC, "type": kind}}})[0] == 201
    fields = body(manager, train)
    fields["properties"]["jobs"]["first"] = {"type": "command", "componentId": path}

    status, error = put(manager, fields)

    assert (status, error["code"]) == (501, "SandboxNotEmulated")
    assert f"components of the type '{kind}'" in error["message"]


def test_children_are_in_run_history_not_in_the_list_and_go_with_their_parent(manager: Manager, train: str) -> None:
    put(manager, body(manager, train))
    child = manager.store.jobs.add(manager.workspace, "child", {"properties": {"jobType": "Command"}})
    manager.store.family.add(child.id, "pipe", "first")
    path = f"/history/v1.0{manager.workspace}/runs"

    fields = run_history.answer(manager.context, "GET", f"{path}/pipe/children", None).body["value"]
    (own,) = fields

    assert (own["runId"], own["parentRunId"], own["rootRunId"]) == ("child", "pipe", "pipe")
    listed = manager.call("GET", f"{manager.workspace}/jobs")[1]["value"]
    assert [row["name"] for row in listed] == ["pipe"]
    manager.store.jobs.move("child", "Completed")
    assert manager.call("DELETE", f"{manager.workspace}/jobs/child")[1]["code"] == "JobIsActive"
    manager.store.jobs.move("pipe", "Completed")
    status, error = manager.call("POST", f"{manager.workspace}/jobs/pipe/cancel", {})
    assert (status, error["code"]) == (400, "UserError"), "as Azure was recorded to refuse it"
    assert error["message"] == "The pipeline run pipe is in terminal status, it can't be canceled."
    assert manager.call("POST", f"{manager.workspace}/jobs/child/cancel", {})[0] == 200
    assert manager.call("DELETE", f"{manager.workspace}/jobs/pipe")[0] == 200
    assert manager.store.jobs.list() == ()


def test_tags_are_removed_through_run_history(manager: Manager, train: str) -> None:
    put(manager, body(manager, train, tags={"a": "1", "b": "2"}))
    path = f"/history/v1.0{manager.workspace}/experiments/Default/runs/pipe/tags"

    fields = run_history.answer(
        manager.context, "PATCH", path, {"tagsToModify": {"c": "3"}, "tagsToDelete": ["a"]}
    ).body

    assert fields["tags"] == {"b": "2", "c": "3"}


PARALLEL: dict[str, Any] = {
    "type": "parallel",
    "mini_batch_size": "2",
    "input_data": "${{inputs.data}}",
    "inputs": {"data": {"type": "uri_folder"}},
    "outputs": {"rows": {"type": "uri_file"}},
    "task": {"type": "run_function", "entry_script": "score.py", "environment": CURATED},
}


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"input_data": "${{inputs.date}}"}, "`input_data` must be one of the step's inputs"),
        ({"mini_batch_size": "ten"}, "`mini_batch_size` must be a number of files, or a size such as 10kb"),
        ({"mini_batch_error_threshold": -2}, "`mini_batch_error_threshold` must be a whole number of at least -1"),
        ({"retry_settings": {"timeout": 0}}, "`timeout` must be a whole number of at least 1 and at most 259200"),
        ({"logging_level": "loud"}, "`logging_level` must be one of INFO, WARNING, DEBUG, got `LOUD`."),
        ({"partition_keys": "Store"}, "`partition_keys` must be a list of names of columns, got `Store`."),
        ({"task": {"append_row_to": "${{outputs.row}}"}}, "`append_row_to` must name an output of the step"),
        ({"task": {"type": "model"}}, "parallel tasks of the type 'model', only run_function"),
    ],
)
def test_a_parallel_step_that_cannot_be_split_is_refused(manager: Manager, step: dict[str, Any], says: str) -> None:
    path = f"{manager.workspace}/components/score/versions/1"
    assert manager.call("PUT", path, {"properties": {"componentSpec": PARALLEL}})[0] == 201
    uri = "azureml://datastores/workspaceblobstore/paths/in/"
    fields = {
        "type": "parallel",
        "componentId": path,
        "inputs": {"data": {"job_input_type": "uri_folder", "uri": uri}},
        **step,
    }
    properties = {"jobType": "Pipeline", "jobs": {"score": fields}}

    status, answer = put(manager, {"properties": properties})

    assert (status in (400, 501), says in answer["message"]) == (True, True), answer


def test_a_parallel_component_without_a_script_is_refused(manager: Manager) -> None:
    spec = {**PARALLEL, "task": {"type": "run_function", "environment": CURATED}}

    answer = manager.call(
        "PUT", f"{manager.workspace}/components/score/versions/1", {"properties": {"componentSpec": spec}}
    )

    assert answer[0] == 400
    assert "the required property 'entry_script' of a parallel task is missing" in answer[1]["message"]
