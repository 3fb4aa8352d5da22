"""Sources of a rehearsal's inputs, and the message about one that this machine cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from amlstack.catalog import clock
from amlstack.cli import targets
from amlstack.cli.jobfiles.judgement import check_file, plan_gate
from amlstack.cli.main import VERBS, app_of
from amlstack.cli.rehearsal import inputs, mapping_file
from tests.support.rehearsal_inputs import data, empty_folder, made, plan
from tests.support.rows import for_each

IRIS = "https://azuremlexamples.blob.core.windows.net/datasets/iris.csv"
JOB = f"""\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
command: cat ${{{{inputs.iris}}}} ${{{{inputs.cifar}}}} ${{{{inputs.own}}}} ${{{{inputs.lr}}}}
environment: {{image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}}
compute: azureml:a100
inputs:
  iris: {{type: uri_file, path: "{IRIS}"}}
  cifar: {{type: uri_folder, path: "azureml:cifar-10-example@latest"}}
  own: {{type: uri_folder, path: ./data}}
  lr: 0.1
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job with inputs of each kind, and neither data nor mapping files."""
    folder = empty_folder(tmp_path, monkeypatch)
    (folder / "job.yml").write_text(JOB)
    return folder / "job.yml"


def test_all_inputs_that_cannot_be_read_are_named_before_the_start_with_what_to_write(job: Path) -> None:
    ended = CliRunner().invoke(app_of(VERBS["rehearse"]), [str(job)], env={"COLUMNS": "400"})

    assert ended.exit_code == 2, ended.output
    assert f'`"{IRIS}" = "PATH"`' in ended.output
    assert '`"azureml:cifar-10-example@latest" = "PATH"`' in ended.output
    assert f"under `[inputs]` in {job.parent / 'rehearsal.toml'}" in ended.output
    for name in ("iris", "cifar", "own"):
        assert f"`--input {name}=PATH`" in ended.output
    assert f"{job}:6:" in ended.output
    assert "nothing was submitted" in ended.output
    assert not (job.parents[1] / "home").exists()


def test_options_come_before_the_file_beside_the_job_and_that_before_the_users(job: Path, tmp_path: Path) -> None:
    made(job.parent, "data", "beside.csv", "beside")
    made(tmp_path, "given", "config/amlstack/user.csv", "config/amlstack/user")
    (job.parent / "rehearsal.toml").write_text(
        f'[inputs]\n"{IRIS}" = "beside.csv"\n"azureml:cifar-10-example@latest" = "beside"\n'
    )
    (tmp_path / "config/amlstack/rehearsal.toml").write_text(f'[inputs]\n"{IRIS}" = "user.csv"\n"./data" = "user"\n')

    found = data(job, "cifar=given")

    assert found.findings == ()
    assert found.by_step == {
        "": {"iris": job.parent / "beside.csv", "cifar": tmp_path / "given", "own": tmp_path / "config/amlstack/user"}
    }
    beside = job.parent / "rehearsal.toml"
    assert f"input iris: {job.parent / 'beside.csv'}, instead of {IRIS} ({beside}:2)" in found.lines


def test_a_local_path_is_seen_from_the_job_file(job: Path) -> None:
    made(job.parent, "data", "a.csv", "b")
    assert data(job, f"iris={job.parent}/a.csv", f"cifar={job.parent}/b").by_step[""]["own"] == job.parent / "data"


@pytest.mark.parametrize(
    ("option", "code", "words"),
    [
        ("cifr=x", "input-unknown", "Did you mean `cifar`?"),
        ("cifar", "input-option", "Write `--input NAME=PATH`."),
    ],
)
def test_an_option_that_names_no_data_is_explained(job: Path, option: str, code: str, words: str) -> None:
    _, (finding,) = inputs.options([option], (plan(job),))
    assert finding.code == code
    assert words in finding.message


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("iris=nowhere.csv", "nowhere.csv` does not exist"),
        ("iris=work", "is a folder. The input `iris` is of the type uri_file. Name a file."),
        ("cifar=work/job.yml", "is a file. The input `cifar` is of the type uri_folder. Name a folder."),
    ],
)
def test_a_substitute_that_cannot_be_used_is_explained(job: Path, option: str, words: str) -> None:
    found = [each.message for each in data(job, option).findings if each.code == "input-substitute"]
    assert len(found) == 1
    assert words in found[0]


def test_a_mapped_path_that_does_not_exist_is_named_with_its_line(job: Path) -> None:
    (job.parent / "rehearsal.toml").write_text(f'[inputs]\n\n"{IRIS}" = "gone.csv"\n')
    (finding,) = [each for each in data(job).findings if each.code == "input-substitute"]
    assert finding.file == f"{job.parent / 'rehearsal.toml'}:3"
    assert f"`{job.parent / 'gone.csv'}` does not exist" in finding.message


def test_a_key_that_is_nearly_the_path_is_named(job: Path) -> None:
    (job.parent / "rehearsal.toml").write_text('[inputs]\n"azureml:cifar-10-exmple@latest" = "data"\n')
    (finding,) = [each for each in data(job).findings if each.where == "inputs.cifar.path"]
    assert "has `azureml:cifar-10-exmple@latest`" in finding.message


def test_missing_local_data_that_an_option_gives_is_no_finding(job: Path) -> None:
    where = targets.find(None, None)
    checked = check_file(job, where, gate=plan_gate(where, clock.today()))
    assert "input-path-missing" in {each.code for each in checked.findings}
    left = inputs.without_substituted(checked.findings, checked.plans, {"own"})
    assert "input-path-missing" not in {each.code for each in left}


PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:a100}
inputs:
  raw: {type: uri_folder, path: "azureml:raw:1"}
jobs:
  first:
    type: command
    command: cat ${{inputs.raw}}/a.txt ${{inputs.more}}/b.txt
    environment: {image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}
    inputs:
      raw: ${{parent.inputs.raw}}
      more: {type: uri_folder, path: "azureml:more:1"}
"""


def test_the_inputs_of_pipelines_reach_the_steps_that_bind_them(job: Path, tmp_path: Path) -> None:
    made(tmp_path, "raw", "more", "other")
    job.write_text(PIPELINE)
    found = data(job, "raw=raw", "first.more=more")
    assert found.findings == ()
    assert found.by_step["first"] == {"raw": tmp_path / "raw", "more": tmp_path / "more"}
    assert data(job, "raw=raw", "first.more=more", "first.raw=other").by_step["first"]["raw"] == tmp_path / "other"
    assert {each.where for each in data(job).findings} == {"inputs.raw.path", "jobs.first.inputs.more.path"}


FAR = "azureml://datastores/far/paths/model"
WRITES = f"""\
type: pipeline
settings: {{default_compute: azureml:a100}}
outputs:
  report: {{type: uri_file, path: "azureml://datastores/far/paths/report.txt"}}
jobs:
  first:
    type: command
    command: echo > ${{{{outputs.model}}}}/a
    environment: {{image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}}
    outputs:
      model: {{type: uri_folder, path: "{FAR}"}}
      near: {{type: uri_folder, path: "azureml://datastores/workspaceblobstore/paths/near"}}
  then:
    type: command
    command: cat ${{{{inputs.model}}}}/a > ${{{{outputs.report}}}}
    environment: {{image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}}
    inputs: {{model: "${{{{parent.jobs.first.outputs.model}}}}"}}
    outputs: {{report: "${{{{parent.outputs.report}}}}"}}
"""


def test_outputs_of_datastores_that_are_not_here_are_named_before_the_start(job: Path) -> None:
    job.write_text(WRITES)
    ended = CliRunner().invoke(app_of(VERBS["rehearse"]), [str(job), "--dry-run"], env={"COLUMNS": "400"})
    assert ended.exit_code == 2, ended.output
    words = " ".join(ended.output.split())
    assert f"`{FAR}`, which this machine cannot write to" in words
    assert "Give `--output first.model=PATH`, or write under `[outputs]`" in words
    assert "Give `--output report=PATH`" in words
    assert "2 things are in the way" in words


def test_outputs_that_are_put_here_reach_the_steps_that_write_and_read_them(job: Path, tmp_path: Path) -> None:
    job.write_text(WRITES)
    (job.parent / "rehearsal.toml").write_text(f'[outputs]\n"{FAR}" = "own"\n')
    found = data(job, put=("report=text/report.txt",))
    assert found.findings == ()
    report = tmp_path / "text/report.txt"
    assert found.outputs == {"": {"report": report}, "first": {"model": job.parent / "own"}, "then": {"report": report}}
    assert found.by_step == {"then": {"model": job.parent / "own"}}
    assert f"output report: {report}, instead of azureml://datastores/far/paths/report.txt (--output)" in found.lines


@pytest.mark.parametrize("option", ["first.model=work/job.yml", "report=work", "first.model=work/job.yml/below"])
def test_a_place_for_an_output_that_does_not_fit_is_refused(job: Path, option: str) -> None:
    job.write_text(WRITES)
    found = [each for each in data(job, put=(option,)).findings if each.code == "output-substitute"]
    assert len(found) == 1
    assert "cannot be written as a" in found[0].message


def test_an_unknown_output_is_told_the_near_one(job: Path) -> None:
    job.write_text(WRITES)
    _, (finding,) = inputs.options(["first.modle=x"], (plan(job),), "outputs")
    assert (finding.code, finding.remedy) == ("output-unknown", "Did you mean `first.model`?")


@for_each(
    "text, line, words",
    [
        ('[inputs]\n"a" = data\n', 2, "This is not TOML"),
        ('[inputs]\n"a" = 3\n', 2, "`a` must be a string, got `3`. Quote it."),
        ('[inputs]\n"a" = ""\n', 2, "must have at least 1 characters"),
        ('[stand_in."azureml:e"]\nrequirements = ["a"]\n\n[input]\n"a" = "b"\n', 4, "Did you mean `inputs`?"),
        ('inputs = "data"\n', 1, "`inputs` must be a mapping of names to values"),
        ("[inputs\n", 1, "This is not TOML"),
    ],
)
def test_a_mapping_file_that_is_wrong_is_named_with_line_and_remedy(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    file = tmp_path / "rehearsal.toml"
    file.write_text(text)
    (finding,) = mapping_file.read(file).findings
    assert (finding.file, finding.line) == (str(file), line)
    assert words in finding.message


def test_a_mapping_file_may_hold_absolute_paths_and_those_of_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    file = tmp_path / "rehearsal.toml"
    file.write_text('[inputs]\na = "/data/a"\n"b" = "~/b"\n\'c\' = "d/e"\n')
    read = mapping_file.read(file)
    assert read.findings == ()
    assert read.inputs == {
        "a": (Path("/data/a"), f"{file}:2"), "b": (tmp_path / "me/b", f"{file}:3"), "c": (tmp_path / "d/e", f"{file}:4")
    }  # fmt: skip


def test_bytes_that_are_no_text_are_explained(tmp_path: Path) -> None:
    (tmp_path / "rehearsal.toml").write_bytes(b"\xff\xfe")
    (finding,) = mapping_file.read(tmp_path / "rehearsal.toml").findings
    assert "cannot be read" in finding.message


def test_a_value_is_given_like_data_and_the_body_keeps_its_own(job: Path) -> None:
    made(job.parent, "data", "a.csv", "b")
    found = data(job, f"iris={job.parent}/a.csv", f"cifar={job.parent}/b", "lr=0.2")
    assert found.findings == ()
    assert str(found.by_step[""]["lr"]) == "0.2"
    assert "input lr: 0.2, instead of 0.1 (--input)" in found.lines


COMPONENT = """\
type: command
name: train
version: 1
command: python train.py ${{inputs.data}} ${{inputs.epochs}} ${{inputs.lr}} $[[--warm ${{inputs.warm}}]]
environment: azureml:e:1
inputs:
  data: {type: uri_folder}
  epochs: {type: integer}
  lr: {type: number, default: 0.1}
  warm: {type: uri_folder, optional: true}
  resume: {type: string, default: ""}
"""


def test_what_a_component_alone_needs_is_asked_for_and_what_is_optional_is_not(job: Path) -> None:
    file = job.parent / "component.yml"
    file.write_text(COMPONENT)
    planned = plan(file)
    none = inputs.resolve(planned, {}, {}, file, lambda _: False, alone=True)
    assert [each.remedy for each in none.findings] == ["Give `--input data=PATH`.", "Give `--input epochs=VALUE`."]
    chosen, wrong = inputs.options((f"data={job.parent}", "epochs=2"), (planned,))
    both = inputs.resolve(planned, chosen, {}, file, lambda _: False, alone=True)
    assert (wrong, both.findings) == ((), ())


def test_data_that_a_stack_declares_are_read_in_place_by_name(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_text(
        "command: cat ${{inputs.words}} ${{inputs.there}}\n"
        "environment: {image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}\n"
        "compute: azureml:a100\n"
        "inputs:\n"
        "  words: {type: uri_folder, path: 'azureml:words@latest'}\n"
        "  there: {type: uri_folder, path: 'azureml:there:1'}\n"
    )
    stack = (
        "config:\n  amlstack:location: westeurope\n  amlstack:workspace: team\n  amlstack:data:\n"
        "    - {name: words, path: sets/words}\n"
        "    - {name: there, path: 'https://example.org/x', version: '1'}\n"
    )
    (job.parent / "Pulumi.team.yaml").write_text(stack)
    (job.parent / "sets" / "words").mkdir(parents=True)
    monkeypatch.chdir(job.parent)
    where = targets.find(None, None)
    planned = plan(job)
    on = where.of_file(job)
    found = inputs.resolve(planned, {}, {}, job, lambda _: False, where=on)

    assert found.by_step == {"": {"words": job.parent / "sets" / "words"}}
    assert found.lines == (
        f"input words: {job.parent / 'sets' / 'words'}, instead of azureml:words@latest (Pulumi.team.yaml)",
    )
    (missing,) = found.findings
    assert (missing.code, missing.where) == ("input-elsewhere", "inputs.there.path")
    (job.parent / "sets" / "words").rmdir()
    (first, _) = inputs.resolve(planned, {}, {}, job, lambda _: False, where=on).findings
    assert (first.code, first.file) == ("input-substitute", "Pulumi.team.yaml")


def test_a_name_that_is_nearly_a_stacks_is_found_at_check(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = "config:\n  amlstack:location: westeurope\n  amlstack:workspace: team\n  amlstack:data:\n"
    (job.parent / "Pulumi.team.yaml").write_text(f"{stack}    - {{name: cifar-10-examples, path: data}}\n")
    monkeypatch.chdir(job.parent)
    where = targets.find(None, None)
    checked = check_file(job, where, gate=plan_gate(where, clock.today()))
    (finding,) = (one for one in checked.findings if one.code.startswith("data-"))
    assert (finding.code, finding.where, finding.line) == ("data-unknown", "inputs.cifar.path", 7)
    assert "cifar-10-examples" in finding.remedy
