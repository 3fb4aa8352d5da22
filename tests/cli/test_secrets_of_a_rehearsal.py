"""A rehearsal takes the secrets that a job names from this machine's environment, and says which one is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs
from amlstack.cli.main import main
from amlstack.cli.rehearsal import mapping_file
from jobs.wire.command import secrets_in, with_secrets

if TYPE_CHECKING:
    from pathlib import Path

JOB = """\
from jobs import Job

job = Job(
    name="tracked",
    command="true",
    environment="acpt-pytorch-2.8-cuda12.6",
    environment_variables={"WANDB_API_KEY": {"secret": "wandb"}, "HF_TOKEN": {"secret": "hub"}, "PLAIN": "1"},
)
"""
STACK = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: aml-team
  amlstack:environments: [acpt-pytorch-2.8-cuda12.6]
  amlstack:secrets: {wandb: {secure: AAAB}}
  amlstack:jobs:
    - file: train.yml
      environment_variables: {WANDB_API_KEY: {secret: wandb}, HF_TOKEN: {secret: wandbb}}
"""
YAML = "command: echo\nenvironment: azureml:acpt-pytorch-2.8-cuda12.6@latest\n"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("WANDB_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "job.py").write_text(JOB)
    return tmp_path / "job.py"


def values(job: Path, *options: str) -> tuple[dict[str, str], list[str]]:
    loaded = jobs.load(job)
    (declared,) = loaded.jobs
    assert isinstance(declared, jobs.Job)
    plan = jobs.plan(declared, source=loaded.source)
    found, findings = mapping_file.secret_values([plan], loaded.source, options, mapping_file.read_all(job).secrets)
    return found, [str(finding) for finding in findings]


def test_a_secret_comes_from_the_option_the_table_or_the_variable_itself(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HERE", "THERE", "WANDB_API_KEY", "HF_TOKEN"):
        monkeypatch.setenv(name, f"value of {name}")
    assert values(job) == ({"wandb": "value of WANDB_API_KEY", "hub": "value of HF_TOKEN"}, [])
    (job.parent / "rehearsal.toml").write_text('[secrets]\nwandb = "env:HERE"\n')
    assert values(job)[0] == {"wandb": "value of HERE", "hub": "value of HF_TOKEN"}
    assert values(job, "wandb=env:THERE")[0]["wandb"] == "value of THERE"


def test_a_missing_one_is_found_where_the_job_names_it_and_none_is_ever_quoted(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "canary")
    _, (missing,) = values(job)
    assert "job.py:7" in missing
    assert "`WANDB_API_KEY` is not set here" in missing
    _, (wrong, _) = values(job, "wandb=canary")
    assert "names no variable of this machine" in wrong
    (job.parent / "rehearsal.toml").write_text('[secrets]\nwandb = "canary"\n')
    table = mapping_file.read_all(job)
    assert [finding.line for finding in table.findings] == [2]
    assert "canary" not in f"{wrong}{missing}{table.findings}"


def test_a_dry_run_names_what_is_missing(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", "job.py", "--dry-run", "--size", "Standard_ND96asr_v4"]) == 2
    printed = "".join(capsys.readouterr())
    assert printed.count("[rehearsal-secret]") == 2


def test_nothing_that_is_shown_of_a_job_holds_more_than_the_secrets_name(
    job: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "canary")
    for form in ("plan", "arm", "yaml", "command"):
        assert main(["show", "job.py", "--as", form, "--size", "Standard_ND96asr_v4"]) == 0
        assert "canary" not in "".join(capsys.readouterr())


def test_settings_name_secrets_for_a_file_of_azure_ml(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datetime import date

    from infra.declaration import declare
    from infra.settings import read_file

    (job.parent / "train.yml").write_text(YAML)
    (job.parent / "Pulumi.team.yaml").write_text(STACK)
    declaration = declare(read_file(job.parent / "Pulumi.team.yaml"), on=date(2026, 7, 1), root=job.parent)
    (finding,) = [one for one in declaration.findings if one.level == "error"]
    assert (finding.code, finding.file, finding.line) == ("secret-unknown", "Pulumi.team.yaml", 8)
    assert "Did you mean `wandb`" in finding.remedy
    (run,) = declaration.runs
    assert run.plan.declaration["environment_variables"]["WANDB_API_KEY"] == {"secret": "wandb"}


def test_a_secret_in_clear_text_is_refused_without_being_quoted(job: Path) -> None:
    from infra.settings import read_file

    (job.parent / "Pulumi.team.yaml").write_text(STACK.replace("{secure: AAAB}", "canary"))
    found = read_file(job.parent / "Pulumi.team.yaml").findings
    assert [(finding.code, finding.line) for finding in found] == [("secret-in-clear", 5)]
    assert "canary" not in str(found)


def test_a_body_without_secrets_is_left_as_it_is() -> None:
    body = {"properties": {"environmentVariables": {"A": "1", "B": {"secret": "b"}}, "tags": {"secret": "x"}}}
    assert list(secrets_in(body)) == [("B", "b")]
    assert with_secrets(body, {"b": "value"})["properties"]["environmentVariables"] == {"A": "1", "B": "value"}
    without = {"properties": {"environmentVariables": {"A": {"other": "b"}}, "tags": {"secret": "x"}}}
    assert with_secrets(without, {}) is without
