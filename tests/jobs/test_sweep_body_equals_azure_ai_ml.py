"""Our body of a sweep job file is the one that azure-ai-ml would send, and what it refuses has findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import yaml_files
from tests.support.examples import examples
from tests.support.jobs import oracle
from tests.support.jobs import sweep_cases as cases
from tests.support.jobs.our_sweeps import ours
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


def written(changes: str, place: Path) -> Path:
    result = {**cases.BASE, **(yaml_files.load(changes) or {})}
    place.write_text(yaml.safe_dump({key: value for key, value in result.items() if value is not None}))
    return place


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "component.yml").write_text("command: c\n")
    return tmp_path / "sweep.yml"


@for_each("case", cases.ACCEPTED)
def test_an_accepted_sweep_becomes_the_same_body(case: str, place: Path) -> None:
    path = written(cases.ACCEPTED[case], place)
    theirs = oracle.sweep(path)
    body, errors = ours(path)
    assert errors == []
    assert body == theirs


@pytest.mark.parametrize("case", cases.REFUSED)
def test_a_refused_sweep_has_one_finding(case: str, place: Path) -> None:
    path = written(cases.REFUSED[case], place)
    with pytest.raises(oracle.RefusedError):
        oracle.sweep(path)
    _, errors = ours(path)
    assert len(errors) == 1, errors
    assert "sweep.yml:" in errors[0]


number = st.one_of(st.integers(-100, 100), st.floats(-100, 100, allow_nan=False))
bounds = st.fixed_dictionaries({"min_value": number, "max_value": number})
bell = st.fixed_dictionaries({"mu": number, "sigma": number})
step = st.fixed_dictionaries({"q": number})


def typed(kinds: tuple[str, ...], *parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    spelt = st.sampled_from(kinds).flatmap(lambda kind: st.sampled_from((kind, kind.upper(), kind.capitalize())))
    return st.tuples(spelt, *parts).map(
        lambda drawn: {"type": drawn[0], **{key: value for part in drawn[1:] for key, value in part.items()}}
    )


spaces = st.one_of(
    typed(("uniform", "loguniform"), bounds),
    typed(("quniform", "qloguniform"), bounds, step),
    typed(("normal", "lognormal"), bell),
    typed(("qnormal", "qlognormal"), bell, step),
    typed(("randint",), st.fixed_dictionaries({"upper": st.integers(1, 100)})),
    typed(
        ("choice",),
        st.fixed_dictionaries(
            {"values": st.lists(st.one_of(number, st.text("abc1.", max_size=5)), min_size=1, max_size=4)}
        ),
    ),
)
distributions = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"type": st.sampled_from(("pytorch", "Mpi"))}, optional={"process_count_per_instance": st.integers(1, 8)}
    ),
    st.fixed_dictionaries({"type": st.just("tensorflow")}, optional={"worker_count": st.integers(1, 8)}),
)


@settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(space=st.dictionaries(st.sampled_from("abcd"), spaces, max_size=3), distribution=distributions)
def test_a_generated_sweep_becomes_the_same_body(space: Any, distribution: Any, place: Path) -> None:
    trial: dict[str, Any] = {"command": "c", "environment": "azureml:e:1"}
    if distribution is not None:
        trial["distribution"] = distribution
    place.write_text(yaml.safe_dump({**cases.BASE, "trial": trial, "search_space": space}))
    body, errors = ours(place)
    assert errors == []
    assert body == oracle.sweep(place)
