"""`check` tells advice once, errors alone when asked, and writes what answers advice without touching anything else."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from amlstack.catalog import environments
from amlstack.cli.jobfiles import mending
from amlstack.cli.main import main
from amlstack.cli.workspace import workspace_place

if TYPE_CHECKING:
    from pathlib import Path

YAML = """\
# A training.
command: >-
  python train.py
  --lr 1   # no comment
code: src
environment: "azureml:mine@latest"  # ours
compute: azureml:c   # the cluster

# How ranks start.
distribution:
  type: pytorch
  process_count_per_instance: 8
resources: {instance_type: Standard_ND96asr_v4, shm_size: 450g}
"""
PIPELINE = """\
type: pipeline
jobs:
  first:
    type: command
    command: python train.py
    code: src
    environment: azureml:mine@latest
    compute: azureml:c
  second:
    type: command
    command: python train.py
    code: src
    environment: azureml:mine:3
    compute: azureml:c
    limits:
      # soon
      timeout: 60
"""
PYTHON = '''\
"""A training."""
from jobs import Job, TorchRun

job = Job(
    command="train.py",  # the script
    code="src",
    environment="acpt-pytorch-2.8-cuda12.6",
    compute="c",
    launcher=TorchRun(),
)
'''
ONE_LINE = 'import jobs\njob = jobs.Job(command="python train.py", environment="azureml:mine:3", compute="c")\n'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print('a step')\n")


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """Lines that are gone and lines that are new."""
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def test_a_job_of_azure_ai_ml_gets_no_limits_of_ours(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = 'from azure.ai.ml import command\njob = command(command="echo", environment="azureml:e:1", compute="c")\n'
    (tmp_path / "job.py").write_text(text)
    main(["check", "job.py", "--fix"])
    assert (tmp_path / "job.py").read_text() == text
    said = capfd.readouterr().out
    assert "Call its set_limits(timeout=SECONDS)." in said
    assert "Limits(" not in said
    assert "--fix" not in said


@pytest.mark.parametrize(
    ("text", "gone", "new"),
    [
        (YAML, [], ["limits:", "  timeout: 86400"]),
        (YAML.replace("\n", "\r\n"), [], ["limits:", "  timeout: 86400"]),
        (f"{YAML}limits:\n  # none yet\n  timeout: 0\n", [], []),
        (PIPELINE, [], ["    limits:", "      timeout: 86400"]),
        (
            PYTHON.replace("acpt-pytorch-2.8-cuda12.6", "azureml:mine:3"),
            [],
            ['    limits={"timeout": 86400},'],
        ),
        (
            ONE_LINE,
            [ONE_LINE.splitlines()[1]],
            [ONE_LINE.splitlines()[1].replace(")", ', limits={"timeout": 86400})')],
        ),
        (
            PYTHON.replace("launcher=", "limits=None, launcher=").replace("acpt-pytorch-2.8-cuda12.6", "azureml:e:3"),
            [],
            [],
        ),
    ],
)
def test_a_timeout_is_added_and_nothing_else_changes(
    text: str, gone: list[str], new: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = "job.py" if "import" in text else "job.yml"
    (tmp_path / name).write_bytes(text.encode())
    main(["check", name, "--fix"])
    made = (tmp_path / name).read_bytes().decode()
    before, after = changed(text, made)
    if text is PIPELINE:  # whose other step has a timeout: the lines are there already, but for the number
        after = ["    limits:", *after]
    assert (before, after) == (gone, new)
    assert ("\r" in made) == ("\r" in text)
    out = capfd.readouterr().out
    assert all(f"+{line}" in out for line in (changed(text, made)[1]))
    assert ("[job-timeout]" in out) is (not new)


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (YAML, '"azureml:mine@latest"  # ours', '"azureml:mine:7"  # ours'),
        (PYTHON, '"acpt-pytorch-2.8-cuda12.6"', '"azureml:AzureML-acpt-pytorch-2.8-cuda12.6:12"'),
        (YAML.replace("mine@", "other@"), "", ""),
    ],
)
def test_an_environment_gets_the_version_that_a_workspace_has(
    text: str, before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"azureml:mine@latest": "azureml:mine:7"}
    known["acpt-pytorch-2.8-cuda12.6"] = "azureml:AzureML-acpt-pytorch-2.8-cuda12.6:12"
    monkeypatch.setattr(mending, "versions_of", lambda _: known.get)
    file = tmp_path / ("job.py" if "import" in text else "job.yml")
    file.write_text(text)
    main(["check", file.name, "--fix", "--workspace", "w"])
    made = [line for line in file.read_text().splitlines() if "imit" not in line and "timeout" not in line]
    assert made == text.replace(before, after).splitlines()


@pytest.mark.parametrize(
    ("label", "pinned"),
    [
        ("azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest", True),
        ("azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest", True),
        ("azureml://registries/azureml/environments/acpt-pytorch-1.13-cuda11.7/labels/latest", False),
        ("azureml:acpt-pytorch-2.8-cuda12.6@latest", False),  # the workspace's own, whatever its name
    ],
)
def test_without_a_workspace_the_catalogue_pins_what_it_knows_and_the_rest_is_named(
    label: str, pinned: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.yml").write_text(YAML.replace("azureml:mine@latest", label))
    main(["check", "job.yml", "--fix"])
    one = environments.get("acpt-pytorch-2.8-cuda12.6")
    assert one is not None
    written = one.version_id(one.version) if pinned else label
    assert f'environment: "{written}"  # ours' in (tmp_path / "job.yml").read_text()
    assert (f"the catalogue knows no version of {label}" in capfd.readouterr().out) is not pinned


def test_a_workspace_that_is_not_known_is_told_without_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    (tmp_path / "job.yml").write_text(YAML)
    assert main(["check", "job.yml", "--fix", "--workspace", "w"]) == 2
    assert "its subscription is not" in capfd.readouterr().err
    assert (tmp_path / "job.yml").read_text() == YAML


@pytest.fixture
def many(tmp_path: Path) -> list[str]:
    names = [f"job{number}.yml" for number in range(6)]
    for name in names:
        (tmp_path / name).write_text(YAML)
    return names


def test_advice_of_many_files_is_told_once_with_a_count(many: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *many]) == 0
    out = capfd.readouterr().out
    assert out.count("[job-timeout]") == out.count("[environment-pinned]") == 1
    assert (
        "6 jobs have no timeout. Only a timeout ends a job that hangs. `amlstack check --fix FILES` writes them" in out
    )
    assert "6 jobs name an environment without its version." in out
    assert out.count("[cluster-size-unknown]") == len(many)
    assert out.count("What follows from a size") == 1
    assert "6 files: 12 warnings, 6 notes" in out


def test_one_job_keeps_the_words_of_its_advice(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(YAML)
    main(["check", "job.yml"])
    out = capfd.readouterr().out
    assert "job.yml:6:1: warning: environment [environment-pinned]\n    The environment is azureml:mine@latest. " in out


def test_errors_alone_are_shown_and_every_one(
    many: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in many:
        (tmp_path / name).write_text(YAML.replace("train.py", "trian.py"))
    assert main(["check", *many, "--only", "errors"]) == 1
    out = capfd.readouterr().out
    assert out.count("[script-missing]") == len(many)
    assert out.count("Did you mean `train.py`?") == 1
    assert "warning:" not in out
    assert "6 files: 6 errors (12 warnings, 6 notes not shown)" in out
    assert main(["check", *many, "--only", "errors", "--json"]) == 1
    answer = json.loads(capfd.readouterr().out)
    assert {each["level"] for file in answer["files"] for each in file["findings"]} == {"error"}


@pytest.mark.parametrize("words", [["--only", "warnings"], ["--workspace", "w"]])
def test_wrong_use_is_told(words: list[str], capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(YAML)
    assert main(["check", "job.yml", *words]) == 2
    assert "`--only` is `errors`, and `--workspace` goes with --fix." in capfd.readouterr().err.replace("\n", " ")


def test_the_newest_version_is_asked_of_the_workspace_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Arm:
        def get(self, path: str, *, allow: tuple[int, ...]) -> SimpleNamespace:
            asked.append(path)
            known = path.endswith(("/mine", "/AzureML-acpt-pytorch-2.8-cuda12.6"))
            body = {"properties": {"latestVersion": "7"}} if known else {"error": {}}
            return SimpleNamespace(status=200 if known else allow[0], body=body)

    monkeypatch.setattr(workspace_place, "find", lambda *_: SimpleNamespace(arm=Arm(), workspace="/w"))
    pinned = mending.versions_of("w")
    curated = "acpt-pytorch-2.8-cuda12.6"
    registry = f"azureml://registries/azureml/environments/{curated}/labels/latest"
    assert pinned("azureml:mine@latest") == pinned("azureml:mine") == "azureml:mine:7"
    assert pinned(registry) == pinned(curated) == f"azureml:AzureML-{curated}:7"
    assert pinned("azureml:other@latest") is None
    assert pinned("azureml://registries/ours/environments/x/labels/latest") is None
    assert asked[0] == "/w/environments/mine"
