"""Values of a sweep's trials: distributions, sampling algorithms, and refusals on arrival."""

# ruff: noqa: E501 - one line per row of a table reads best

from __future__ import annotations

import copy
import math
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amlstack.sandbox.orchestration.sweep import DIMENSIONS, point, read_policy, read_sampling, read_space
from tests.support.rows import for_each
from tests.support.sandbox.sandbox_client import CURATED, cluster

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

HALF = [
    (["choice", [["a", "b", "c"]]], "b"),
    (["randint", [10]], 5),
    (["uniform", [2, 4]], 3.0),
    (["loguniform", [-2, 0]], math.exp(-1)),
    (["quniform", [0, 9, 2]], 4),
    (["qloguniform", [0, 2, 1]], 3),
    (["normal", [5, 2]], 5.0),
    (["lognormal", [0, 2]], 1.0),
    (["qnormal", [5.2, 2, 2]], 6),
    (["qlognormal", [0, 1, 0.5]], 1.0),
    ({"type": "uniform", "min_value": 2, "max_value": 4}, 3.0),
]  # fmt: skip


@for_each("fields, value", HALF)
def test_the_middle_of_a_distribution(fields: Any, value: Any) -> None:
    assert read_space({"x": fields})["x"].at(0.5) == pytest.approx(value) if isinstance(value, float) else value


def test_the_log_distributions_have_the_base_that_is_asked_for() -> None:
    assert read_space({"x": ["loguniform", [-4, -2]]})["x"].at(0.5, 10.0) == pytest.approx(1e-3)


@given(u=st.floats(0, 1, exclude_min=True, exclude_max=True), low=st.integers(-9, 9), width=st.integers(0, 9))
def test_what_is_drawn_lies_between_the_bounds(u: float, low: int, width: int) -> None:
    found = read_space({"u": ["uniform", [low, low + width]], "i": ["randint", [width + 1]]})
    assert low <= found["u"].at(u) <= low + width
    assert found["i"].at(u) in range(width + 1)


def test_sobols_points_are_the_published_ones() -> None:
    """The first points in three dimensions, as every table has them."""
    points = [[round(value, 6) for value in point(number, (0, 0, 0))] for number in range(6)]
    assert points == [
        [0, 0, 0],
        [0.5, 0.5, 0.5],
        [0.75, 0.25, 0.25],
        [0.25, 0.75, 0.75],
        [0.375, 0.375, 0.625],
        [0.875, 0.875, 0.125],
    ]


@for_each("dimension", range(DIMENSIONS))
def test_sobols_points_fall_once_into_each_share_of_a_dimension(dimension: int) -> None:
    shifts = tuple(977 * each for each in range(DIMENSIONS))
    shares = sorted(int(point(number, shifts)[dimension] * 64) for number in range(64))
    assert shares == list(range(64))


def draws(algorithm: dict[str, Any], fields: dict[str, Any], count: int, name: str = "sweep") -> list[Any]:
    varied = read_space(fields)
    how = read_sampling(algorithm, varied, name)
    return [how.values(varied, number) for number in range(count)]


UNIFORM = {"a": ["uniform", [0, 1]], "b": ["uniform", [0, 1]]}


@pytest.mark.parametrize("rule", ["random", "sobol"])
def test_a_seed_repeats_the_trials_and_another_one_does_not(rule: str) -> None:
    first, again, other = (
        draws({"samplingAlgorithmType": "Random", "rule": rule, "seed": seed}, UNIFORM, 8) for seed in (1, 1, 2)
    )
    assert first == again
    assert all(one != two for one, two in zip(first, other, strict=True))
    assert 0.25 < fmean(each["a"] for each in first) < 0.75


def test_without_a_seed_a_sweep_draws_the_same_after_a_restart() -> None:
    kind = {"samplingAlgorithmType": "Random"}
    assert draws(kind, UNIFORM, 3) == draws(kind, UNIFORM, 3)
    assert draws(kind, UNIFORM, 3) != draws(kind, UNIFORM, 3, "another")


def test_a_grid_ends_after_its_last_combination() -> None:
    fields = {"a": ["choice", [[1, 2]]], "b": ["choice", [["x", "y"]]]}
    assert draws({"samplingAlgorithmType": "Grid"}, fields, 5) == [
        {"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}, None,
    ]  # fmt: skip


# Policy, goal, what the trials a, b, c, d logged, which of them run, which are ended.
LOGGED = {"a": [0.9, 0.5, 0.1], "b": [0.8, 0.45], "c": [1.0, 0.9, 0.8], "d": [0.95]}
DOOMED: list[tuple[dict[str, Any], str, str, str]] = [
    ({"policyType": "Bandit", "evaluationInterval": 1, "slackFactor": 0.1}, "minimize", "abcd", "cd"),
    ({"policyType": "Bandit", "evaluationInterval": 1, "slackAmount": 0.2}, "minimize", "abcd", "c"),
    ({"policyType": "Bandit", "evaluationInterval": 1, "slackFactor": 0.1}, "minimize", "abd", "d"),
    ({"policyType": "Bandit", "evaluationInterval": 0, "slackFactor": 0.05}, "maximize", "abcd", "abd"),
    ({"policyType": "Bandit", "evaluationInterval": 2, "slackFactor": 0.1}, "minimize", "abcd", "c"),
    ({"policyType": "Bandit", "evaluationInterval": 1, "delayEvaluation": 3, "slackFactor": 0.1}, "minimize", "abcd", "c"),
    ({"policyType": "MedianStopping", "evaluationInterval": 1}, "minimize", "abcd", "cd"),
    ({"policyType": "MedianStopping", "evaluationInterval": 1, "delayEvaluation": 2}, "minimize", "abcd", "c"),
    ({"policyType": "TruncationSelection", "evaluationInterval": 1, "truncationPercentage": 50}, "minimize", "abcd", "cd"),
    ({"policyType": "TruncationSelection", "evaluationInterval": 1, "truncationPercentage": 20}, "minimize", "abcd", ""),
    ({"policyType": "TruncationSelection", "evaluationInterval": 2, "truncationPercentage": 34}, "minimize", "abcd", "c"),
    ({"policyType": "truncation_selection", "evaluationInterval": 1, "truncationPercentage": 50, "excludeFinishedJobs": True}, "minimize", "d", ""),
]  # fmt: skip


@for_each("row", DOOMED)
def test_which_trials_a_policy_ends(row: tuple[dict[str, Any], str, str, str]) -> None:
    fields, goal, running, ended = row
    policy = read_policy(fields)
    assert policy is not None
    assert "".join(policy.doomed(goal, LOGGED, set(running))) == ended


def sweep(manager: Manager, **more: Any) -> dict[str, Any]:
    properties = {
        "jobType": "Sweep",
        "trial": {"command": "train ${{search_space.lr}}", "environmentId": CURATED},
        "searchSpace": {"lr": ["uniform", [0, 1]]},
        "samplingAlgorithm": {"samplingAlgorithmType": "Random"},
        "objective": {"goal": "minimize", "primaryMetric": "loss"},
        "limits": {"jobLimitsType": "Sweep", "maxTotalTrials": 4},
        "computeId": f"{manager.workspace}/computes/gpu",
    }
    return copy.deepcopy({"properties": {**properties, **more}})


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"searchSpace": {}}, 400, "a sweep without a search space"),
    ({"searchSpace": {"lr": ["unifrom", [0, 1]]}}, 400, "'unifrom' is no distribution. Did you mean 'uniform'"),
    ({"searchSpace": {"lr": ["uniform", [0]]}}, 400, "uniform takes 2 argument(s) (min_value, max_value), got 1."),
    ({"searchSpace": {"lr": ["uniform", [1, 0]]}}, 400, "the lower bound 1 is above the upper bound 0."),
    ({"searchSpace": {"lr": ["uniform", ["0", 1]]}}, 400, "'0' is no number (min_value of uniform)."),
    ({"searchSpace": {"lr": ["choice", [[]]]}}, 400, "a choice has at least one value."),
    ({"searchSpace": {"lr": ["choice", [[{"a": 1}]]]}}, 501, "choices among objects"),
    ({"searchSpace": {"lr": "uniform"}}, 400, "a distribution is a list of its name and its arguments."),
    ({"samplingAlgorithm": {"samplingAlgorithmType": "Grid"}}, 400, "grid sampling takes choice; 'lr' is uniform."),
    ({"samplingAlgorithm": {"samplingAlgorithmType": "Random", "rule": "sobol"}, "searchSpace": {f"x{n}": ["uniform", [0, 1]] for n in range(11)}, "trial": {"command": "true", "environmentId": CURATED}}, 501, "Sobol sampling of 11 hyperparameters, at most 10"),
    ({"samplingAlgorithm": {"samplingAlgorithmType": "Random", "logbase": "two"}}, 400, "'two' is neither a number above 0 nor 'e'."),
    ({"objective": {"goal": "least", "primaryMetric": "loss"}}, 400, "'least' is not allowed."),
    ({"limits": {"jobLimitsType": "Sweep", "maxConcurrentTrials": -1}}, 400, "both are at least 1."),
    ({"limits": {"jobLimitsType": "Sweep", "timeout": "1h"}}, 400, "is no ISO-8601 duration"),
    ({"trial": {"command": "train ${{search_space.rl}}", "environmentId": CURATED}}, 400, "refers to ${{search_space.rl}}, which the search space does not have. Known: lr."),
    ({"trial": {"command": "train", "environmentId": "azureml://registries/mine/environments/nope/versions/1"}}, 501, "properties.trial: The sandbox does not emulate the registry 'mine'"),
    ({"earlyTermination": {"policyType": "TruncationSelection", "truncationPercentage": 0}}, 400, "a percentage from 1 to 99 is needed."),
    ({"earlyTermination": {"policyType": "Bandit", "slackFactor": -1}}, 400, "a slack is not below 0."),
    ({"resources": {"instanceCount": 3}}, 400, "The job asks for 3 nodes, but the compute 'gpu' has at most 2"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "status", "part"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_sweep_that_the_sandbox_cannot_run_is_refused_by_name(
    manager: Manager, change: dict[str, Any], status: int, part: str
) -> None:
    manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())

    # A preview that knows every key of a sweep; the default does not.
    query = {"api-version": "2024-01-01-preview"}
    seen, error = manager.call("PUT", f"{manager.workspace}/jobs/one", sweep(manager, **change), **query)

    assert seen == status, error
    assert part in error["message"]


def test_a_sweep_is_taken_as_azure_ai_ml_writes_it(manager: Manager) -> None:
    manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())

    status, answer = manager.call("PUT", f"{manager.workspace}/jobs/one", fields := sweep(manager))

    assert status == 201, answer
    assert "resources" not in answer["properties"]
    kept = {**fields["properties"], "objective": {"goal": "Minimize", "primaryMetric": "loss"}}
    assert manager.store.jobs["one"].body["properties"] == kept
    assert manager.call("PUT", f"{manager.workspace}/jobs/one", fields)[0] == 200
