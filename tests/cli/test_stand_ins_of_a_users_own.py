"""Tables `[stand_in."…"]` of rehearsal.toml, and what a plan's environments come to before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from amlstack.catalog import clock
from amlstack.cli import targets
from amlstack.cli.jobfiles.judgement import check_file, plan_gate
from amlstack.cli.main import VERBS, app_of
from amlstack.cli.rehearsal import environments, mapping_file
from amlstack.images.environments import Chosen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

JOB = """\
command: echo
environment: {environment}
compute: azureml:a100
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resolved(folder: Path, environment: str) -> tuple[Mapping[str, Chosen], tuple[str, ...]]:
    file = folder / "job.yml"
    file.write_text(JOB.format(environment=environment))
    where = targets.find(None, None)
    (plan,) = check_file(file, where, gate=plan_gate(where, clock.today())).plans
    return environments.resolve(plan, mapping_file.read_all(file).stand_ins)


def test_a_registered_environment_has_what_its_user_says_it_holds(folder: Path) -> None:
    (folder / "pins.txt").write_text("hjson\n")
    (folder / "rehearsal.toml").write_text(
        '[stand_in."azureml:my-env"]\nrequirements = ["tabulate==0.10.0"]\n'
        'requirements_file = "pins.txt"\npython = "3.10"\n'
    )
    by_step, lines = resolved(folder, "azureml:my-env@latest")
    chosen = by_step[""]
    assert (chosen.standin.requirements, chosen.standin.python) == (("hjson", "tabulate==0.10.0"), "3.10")
    assert Chosen.from_dict(chosen.as_dict()) == chosen
    assert f"2 packages by {folder}/rehearsal.toml:1 is built first, once" in lines[0]


def test_the_file_beside_the_job_counts_before_the_users(folder: Path) -> None:
    (folder / "config/amlstack").mkdir(parents=True)
    (folder / "config/amlstack/rehearsal.toml").write_text(
        '[stand_in."azureml:my-env"]\nrequirements = ["a"]\n[stand_in."acr.io/x:1"]\nrequirements = ["b"]\n'
    )
    (folder / "rehearsal.toml").write_text('[stand_in."azureml:my-env"]\nrequirements = ["c"]\n')
    assert resolved(folder, "azureml:my-env@latest")[0][""].standin.requirements == ("c",)
    assert resolved(folder, "{image: 'acr.io/x:1'}")[0][""].standin.requirements == ("b",)


def test_a_stand_in_may_start_from_another_one(folder: Path) -> None:
    (folder / "rehearsal.toml").write_text('[stand_in."azureml:team"]\nlike = "acpt-pytorch-2.8-cuda12.6"\n')
    standin = resolved(folder, "azureml:team:4")[0][""].standin
    assert standin.base is not None
    assert standin.base.name == "pytorch"


@pytest.mark.parametrize(
    ("table", "line", "seen", "remedy"),
    [
        ('requirments = ["a"]', 2, "Unknown key `requirments`", "Did you mean `requirements`?"),
        ('requirements = "torch"', 2, "`requirements` must be a list, got `torch`", ""),
        ("requirements = []\npython = 3.10", 3, "`python` must be a string, got `3.1`", ""),
        ('requirements_file = "gone.txt"', 2, "`gone.txt` does not exist", ""),
        ('like = "nothing-known"', 2, "`nothing-known` has no stand-in", ""),
        ('python = "3.10"', 1, "The stand-in does not say what the environment holds", "requirements = "),
    ],
)
def test_what_is_wrong_with_a_stand_in_is_found_at_its_line(
    folder: Path, table: str, line: int, seen: str, remedy: str
) -> None:
    (folder / "rehearsal.toml").write_text(f'[stand_in."azureml:x"]\n{table}\n')
    found = mapping_file.read(folder / "rehearsal.toml")
    assert found.stand_ins == {}
    finding = next(each for each in found.findings if seen in each.seen)
    assert finding.line == line
    assert remedy in finding.remedy


def test_a_build_context_is_read_and_what_is_not_built_is_named(folder: Path) -> None:
    (folder / "docker").mkdir()
    (folder / "docker/Dockerfile").write_text(
        "FROM python:3.11\nRUN apt-get install -y libgl1\nRUN pip install tabulate\n"
    )
    by_step, lines = resolved(folder, "{build: {path: ./docker}}")
    assert by_step[""].standin.requirements == ("tabulate",)
    assert lines[-1] == (
        "environment: without `RUN apt-get install libgl1`: only pip and conda installs of a Dockerfile are carried "
        "out; what needs it fails"
    )


def test_an_environment_that_cannot_be_had_ends_the_rehearsal_before_its_start(folder: Path) -> None:
    (folder / "job.yml").write_text(JOB.format(environment="{image: 'rocker/tidyverse:4.0.0'}"))
    ended = CliRunner().invoke(app_of(VERBS["rehearse"]), [str(folder / "job.yml")])
    assert ended.exit_code == 2
    assert "environment: The sandbox has no stand-in for the environment 'tidyverse'" in ended.output
    assert '[stand_in."rocker/tidyverse:4.0.0"]' in ended.output
    assert "nothing was started" in ended.output
