"""Sweeps on the sandbox: trials really run, within their limits, each with its own values."""

from __future__ import annotations

import asyncio
import json
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.orchestration.sweep import body
from amlstack.sandbox.store import store
from tests.support.runner.children_lab import (
    FOLDER,
    bound,
    child_log,
    children,
    component,
    pipeline,
    statuses,
    step,
    sweep,
)
from tests.support.runner.runner_lab import CLUSTER

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

GRID = {"samplingAlgorithmType": "Grid"}
TWO = {"lr": ["choice", [[0.1, 0.2]]]}


def test_every_combination_of_a_grid_is_given_to_a_trial(lab: Lab) -> None:
    space = {"lr": ["choice", [[0.1, 0.2]]], "kind": ["choice", [["a", "b"]]]}
    command = "echo ${{search_space.lr}} ${{inputs.kind}} $AZUREML_SWEEP_lr ${{inputs.epochs}} $AZUREML_ROOT_RUN_ID"
    inputs = {"epochs": {"jobInputType": "literal", "value": "3"}}

    row = lab.run(key := sweep(lab, command, space, samplingAlgorithm=GRID, inputs=inputs))

    assert row.status == "Completed", row.error
    assert [child_log(lab, key, str(number)) for number in range(4)] == [
        "0.1 a 0.1 3 sweep\n",
        "0.1 b 0.1 3 sweep\n",
        "0.2 a 0.2 3 sweep\n",
        "0.2 b 0.2 3 sweep\n",
    ]
    assert [child.name for child in children(lab, key).values()] == ["sweep_0", "sweep_1", "sweep_2", "sweep_3"]
    assert json.loads(children(lab, key)["3"].properties["tags"]["hyperparameters"]) == {"lr": 0.2, "kind": "b"}
    assert "trial 3: lr = 0.2, kind = b" in (lab.folder(key) / "runner.log").read_text()


def test_not_more_trials_than_in_all_and_at_once(lab: Lab) -> None:
    lab.cluster(high=4)
    limits = {"jobLimitsType": "Sweep", "maxTotalTrials": 3, "maxConcurrentTrials": 1}

    row = lab.run(key := sweep(lab, "true", {"lr": ["uniform", [0, 1]]}, limits=limits))

    assert row.status == "Completed", row.error
    rows = list(children(lab, key).values())
    assert len(rows) == 3
    for before, after in pairwise(rows):
        assert after.created >= (before.ended or 0)


def test_the_best_trial_is_named_by_what_trials_logged(lab: Lab) -> None:
    """The trials wait until their metrics are in the store, as if they had logged them."""
    up, go = lab.pipe(), lab.pipe()
    command = f"echo > {up}; cat {go}"
    objective = {"goal": "Maximize", "primaryMetric": "accuracy"}
    limits = {"jobLimitsType": "Sweep", "maxConcurrentTrials": 1}
    key = sweep(lab, command, TWO, samplingAlgorithm=GRID, objective=objective, limits=limits)

    async def trial(number: int, values: list[float]) -> None:
        await asyncio.to_thread(up.read_text)
        for value in values:
            lab.store.metrics.log(f"sweep_{number}", "accuracy", value)
        await asyncio.to_thread(go.write_text, "go")

    async def all_of_it() -> None:
        driving = asyncio.create_task(lab.drive(lambda: lab.ended(key)))
        await trial(0, [0.5, 0.9, 0.7])
        await trial(1, [0.8])
        await driving

    asyncio.run(all_of_it())

    fields = lab.store.jobs[key].properties["properties"]
    assert (fields["best_child_run_id"], fields["score"], fields["best_metric_status"]) == (
        "sweep_0",
        "0.9",
        "Succeeded",
    )
    assert "best trial: sweep_0 with accuracy = 0.9" in (lab.folder(key) / "runner.log").read_text()


def heard(line: int, count: int) -> None:
    """Waits for so many bytes."""
    while count:
        count -= len(os.read(line, count))


POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"policyType": "Bandit", "slackFactor": 0.1, "evaluationInterval": 1}, "Bandit"),
    ({"policyType": "MedianStopping", "evaluationInterval": 1}, "MedianStopping"),
    ({"policyType": "TruncationSelection", "truncationPercentage": 50, "evaluationInterval": 1}, "TruncationSelection"),
]


@pytest.mark.parametrize(("policy", "kind"), POLICIES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_hopeless_trial_is_ended_as_soon_as_its_metric_says_so(lab: Lab, policy: dict[str, Any], kind: str) -> None:
    up, go = lab.pipe(), lab.pipe()
    line = os.open(up, os.O_RDWR)  # both directions: no writer waits, and none is lost between two readers
    command = f"echo > {up}; [ ${{{{search_space.lr}}}} = 0.2 ] && sleep 1000; cat {go}"
    key = sweep(lab, command, TWO, samplingAlgorithm=GRID, earlyTermination=policy)

    async def all_of_it() -> None:
        driving = asyncio.create_task(lab.drive(lambda: lab.ended(key)))
        await asyncio.to_thread(heard, line, 2)  # both trials run
        lab.store.metrics.log("sweep_0", "loss", 0.1)
        lab.store.metrics.log("sweep_1", "loss", 0.9)
        lab.wake.set()
        await lab.until_ended("sweep_1")
        await asyncio.to_thread(go.write_text, "go")
        await driving

    asyncio.run(all_of_it())
    os.close(line)

    assert statuses(lab, key) == {"0": "Completed", "1": "Canceled"}
    assert lab.store.jobs[key].status == "Completed"
    assert f"trial 1: ended early by {kind} at interval 1" in (lab.folder(key) / "runner.log").read_text()
    assert lab.survivors() == ()


def test_trials_that_all_fail_fail_the_sweep_and_the_first_is_named(lab: Lab) -> None:
    row = lab.run(key := sweep(lab, "echo KeyError: lr >&2; exit 4", TWO, samplingAlgorithm=GRID))

    assert row.status == "Failed"
    assert row.error is not None
    assert row.error.message.startswith("None of 2 trial(s) completed. Trial 0 (job sweep_0) failed: Execution failed:")
    assert "exited with code 4" in row.error.message
    assert set(statuses(lab, key).values()) == {"Failed"}


def test_a_sweep_that_only_fails_is_given_up(lab: Lab) -> None:
    limits = {"jobLimitsType": "Sweep", "maxTotalTrials": 20, "maxConcurrentTrials": 1}

    row = lab.run(key := sweep(lab, "exit 4", {"lr": ["uniform", [0, 1]]}, limits=limits))

    assert row.status == "Failed"
    assert statuses(lab, key) == dict.fromkeys(("0", "1", "2"), "Failed")


def test_one_failed_trial_is_noted_and_the_sweep_goes_on(lab: Lab) -> None:
    row = lab.run(key := sweep(lab, "[ ${{search_space.lr}} = 0.2 ]", TWO, samplingAlgorithm=GRID))

    assert row.status == "Completed"
    assert statuses(lab, key) == {"0": "Failed", "1": "Completed"}
    log = (lab.folder(key) / "runner.log").read_text()
    assert "trial(s) 0 failed" in log
    assert "no trial logged the primary metric 'loss'" in log


def test_a_trial_and_a_sweep_have_time_limits(lab: Lab) -> None:
    limits = {"jobLimitsType": "Sweep", "trialTimeout": "PT0.2S"}
    row = lab.run(key := sweep(lab, "sleep 1000", TWO, samplingAlgorithm=GRID, limits=limits))
    assert set(statuses(lab, key).values()) == {"Canceled"}
    assert row.status == "Completed"

    limits = {"jobLimitsType": "Sweep", "timeout": "PT0.2S"}
    row = lab.run(key := sweep(lab, "sleep 1000", TWO, name="late", samplingAlgorithm=GRID, limits=limits))
    assert row.status == "Canceled"
    assert row.error is not None
    assert row.error.message == "The sweep ran longer than its limit of PT0.2S (limits.timeout) and was cancelled."
    assert set(statuses(lab, key).values()) == {"Canceled"}
    assert lab.survivors() == ()


def test_a_cancel_ends_all_trials_and_starts_no_more(lab: Lab) -> None:
    pipe = lab.pipe()
    limits = {"jobLimitsType": "Sweep", "maxConcurrentTrials": 1, "maxTotalTrials": 5}
    key = sweep(lab, f"echo up > {pipe}; sleep 1000", {"lr": ["uniform", [0, 1]]}, limits=limits)

    asyncio.run(lab.during(key, act=lambda: lab.store.jobs.request_cancel(key) and None, pipe=pipe))

    assert lab.store.jobs[key].status == "Canceled"
    assert statuses(lab, key) == {"0": "Canceled"}
    assert lab.survivors() == ()


def test_a_sweep_is_a_step_and_the_next_step_reads_what_its_best_trial_wrote(lab: Lab) -> None:
    up, go = lab.pipe(), lab.pipe()
    tries = component(
        *(lab, "tries", f"echo ${{{{inputs.lr}}}} > ${{{{outputs.model}}}}/lr; echo > {up}; cat {go}"),
        inputs={"lr": {"type": "number"}},
        outputs={"model": FOLDER},
    )
    reads = component(lab, "reads", "cat ${{inputs.model}}/lr", inputs={"model": FOLDER})
    jobs = {
        "tune": {
            "type": "sweep",
            "trial": {"componentId": tries},
            "search_space": {"lr": {"type": "choice", "values": [0.1, 0.2]}},
            "objective": {"goal": "minimize", "primary_metric": "loss"},
            "sampling_algorithm": "grid",
            "limits": {"max_concurrent_trials": 1, "max_total_trials": 2},
        },
        "use": step(reads, inputs={"model": bound("${{parent.jobs.tune.outputs.model}}")}),
    }
    key = pipeline(lab, jobs, settings={"default_compute": CLUSTER})

    async def trial(number: int, loss: float) -> None:
        await asyncio.to_thread(up.read_text)
        lab.store.metrics.log(f"{children(lab, key)['tune'].name}_{number}", "loss", loss)
        await asyncio.to_thread(go.write_text, "go")

    async def all_of_it() -> None:
        driving = asyncio.create_task(lab.drive(lambda: lab.ended(key)))
        await trial(0, 0.4)  # the later trial must not write over it
        await trial(1, 0.5)
        await driving

    asyncio.run(all_of_it())

    assert lab.store.jobs[key].status == "Completed", lab.store.jobs[key].error
    assert child_log(lab, key, "use") == "0.1\n"
    tune = children(lab, key)["tune"]
    assert store.job_path(lab.store, children(lab, tune.id)["1"]) == "pipe/tune/1"


@pytest.mark.parametrize(
    ("of_a_step", "uri"),
    [
        (True, "azureml://datastores/d/paths/azureml/s_1/model/"),
        (False, "azureml://datastores/d/paths/azureml/s/model/"),
    ],
)
def test_trials_of_a_pipelines_step_write_to_folders_of_their_own(of_a_step: bool, uri: str) -> None:
    place = "azureml://datastores/d/paths/azureml/s/model/"
    outputs = {"model": {"jobOutputType": "uri_folder", "uri": place}, "plain": {"jobOutputType": "uri_folder"}}
    given = {"trial": {"command": "true"}, "outputs": outputs, **({"parentJobName": "p"} if of_a_step else {})}
    made = body(given, "s", 1, {})["outputs"]
    assert made == {"model": {**outputs["model"], "uri": uri}, "plain": outputs["plain"]}
