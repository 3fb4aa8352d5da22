"""Our body of a pipeline file and of the components in it is azure-ai-ml's, and what it refuses has findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jobs
from tests.support.examples import examples
from tests.support.jobs import oracle, other_step_cases
from tests.support.jobs import pipeline_cases as cases
from tests.support.jobs.our_pipelines import ours, planned
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


def whole(text: str) -> str:
    return text if text.startswith("type:") else f"type: pipeline\n{text}"


ACCEPTED = {**cases.ACCEPTED, **other_step_cases.ACCEPTED}
REFUSED = {**cases.REFUSED, **other_step_cases.REFUSED}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    cases.folder(tmp_path)
    other_step_cases.folder(tmp_path)
    return tmp_path / "pipeline.yml"


@for_each("case", ACCEPTED)
def test_an_accepted_pipeline_becomes_the_same_body_and_components(case: str, place: Path) -> None:
    place.write_text(whole(ACCEPTED[case]))
    theirs, registered = oracle.pipeline(place)
    body, components, errors = ours(place)
    assert errors == []
    assert body == theirs
    assert components == registered


@for_each("case", REFUSED)
def test_a_refused_pipeline_has_one_finding(case: str, place: Path) -> None:
    place.write_text(whole(REFUSED[case]))
    with pytest.raises(oracle.RefusedError):
        oracle.pipeline(place)
    _, errors = planned(place)
    assert len(errors) == 1, errors
    assert ".yml:" in errors[0]  # its own file, or a component's


def test_components_have_the_versions_that_azure_ai_ml_gives_them(place: Path) -> None:
    steps = "a: {command: x, environment: 'azureml:e:1', inputs: {i: 1}, distribution: {type: mpi}}"
    place.write_text(f"type: pipeline\njobs: {{{steps}, b: {{component: sub/plain.yml}}}}\n")
    (place.parent / "sub" / "plain.yml").write_text("command: y\nenvironment: azureml:e:1\nname: n\nversion: 3\n")
    plan, _ = planned(place)
    ids = {
        name: jobs.component_id(result, jobs.Refs()) for name, result in jobs.render(plan.enriched).components.items()
    }
    assert ids == {name: f"azureml_anonymous:{result}" for name, result in oracle.component_versions(place).items()}


counts = st.integers(1, 8)
distributions = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(("pytorch", "PyTorch", "mpi", "MPI"))}, optional={"process_count_per_instance": counts}
    ),
    st.fixed_dictionaries(
        {"type": st.just("tensorflow")}, optional={"worker_count": counts, "parameter_server_count": counts}
    ),
    st.fixed_dictionaries({"type": st.just("ray")}, optional={"port": counts, "include_dashboard": st.booleans()}),
)
resources = st.fixed_dictionaries(
    {}, optional={"instance_count": counts, "shm_size": st.just("4g"), "instance_type": st.just("S")}
)
more = {
    "distribution": distributions,
    "resources": resources,
    "compute": st.sampled_from(("azureml:gpu", "gpu", "serverless")),
    "limits": st.fixed_dictionaries({"timeout": st.integers(0, 100_000)}),
    "environment_variables": st.dictionaries(st.sampled_from("ABC"), st.one_of(st.integers(), st.booleans())),
    "display_name": st.just("D"),
}
literals = st.one_of(st.integers(), st.booleans(), st.floats(-1e6, 1e6), st.sampled_from(("x", "", "1", "true")))
inline = st.fixed_dictionaries(
    {
        "command": st.just("echo"),
        "environment": st.just("azureml:e:1"),
        "inputs": st.dictionaries(st.sampled_from("ab"), literals),
    },
    optional=more,
)
of_component = st.fixed_dictionaries(
    {
        "component": st.sampled_from(("./sub/component.yml", "azureml:registered:1")),
        "inputs": st.just({"data": "${{parent.inputs.d}}"}),
    },
    optional=more,
)
pipelines = st.dictionaries(st.sampled_from(("a", "b", "c_1")), st.one_of(inline, of_component), max_size=3)


@settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=pipelines)
def test_a_generated_pipeline_becomes_the_same_body_and_components(steps: Any, place: Path) -> None:
    result = {"type": "pipeline", "inputs": {"d": {"type": "uri_folder", "path": "azureml:x:1"}}, "jobs": steps}
    place.write_text(yaml.safe_dump(result, sort_keys=False))
    body, components, errors = ours(place)
    assert errors == []
    assert (body, components) == oracle.pipeline(place)
