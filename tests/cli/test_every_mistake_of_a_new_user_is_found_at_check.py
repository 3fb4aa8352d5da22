"""Mistakes of a new user's first hour, one tiny case each: `check` finds them at their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.catalog import clock
from amlstack.cli.main import main
from infra.declaration import declare
from infra.settings import read_file

if TYPE_CHECKING:
    from pathlib import Path

STACK = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: mine
  amlstack:clusters:
    - {name: a100, size: Standard_ND96asr_v4, nodes: {max: 2}}
"""
YAML = """\
command: python train.py --lr ${{inputs.lr}}
code: src
environment: azureml:acpt-pytorch-2.8-cuda12.6@latest
compute: azureml:a100
limits: {timeout: 3600}
inputs: {lr: 0.1}
distribution: {type: pytorch, process_count_per_instance: 8}
resources: {instance_count: 2, shm_size: 450g}
"""
PYTHON = """\
import os
from jobs import Job, Limits, TorchRun
job = Job(
    code="src",
    command="train.py",
    environment="acpt-pytorch-2.8-cuda12.6",
    compute="a100",
    nodes=2,
    launcher=TorchRun(),
    limits=Limits(timeout="2h"),
)
"""
OF_YAML = {
    "curated name in a registry's address": (
        ("azureml:acpt-pytorch-2.8-cuda12.6@", "azureml://registries/azureml/environments/acpt-pytorch-2.9-cuda12.6@"),
        "job.yml:3:1: warning: environment [environment-unknown]",
        "Did you mean `acpt-pytorch-2.8-cuda12.6`?",
    ),
    "input that is none": (
        ("inputs.lr}", "inputs.lrr}"),
        "job.yml:1:1: error: command [input-undefined]",
        "Did you mean `lr`?",
    ),
    "output that is none": (
        ("inputs.lr}", "outputs.chkpt}"),
        "job.yml:1:1: error: command [output-undefined]",
        "Add `chkpt` under `outputs`.",
    ),
    "binding of nothing": (
        ("inputs.lr}", "input.lr}"),
        "job.yml:1:1: error: command [binding-unknown]",
        "Did you mean `${{inputs.lr}}`?",
    ),
    "one brace": (
        ("${{inputs.lr}}", "${inputs.lr}"),
        "job.yml:1:1: error: command [binding-of-the-shell]",
        "Write `${{inputs.lr}}`.",
    ),
    "processes in total": (
        ("instance: 8", "instance: 16"),
        "job.yml:7:1: error: distribution [processes-beyond-gpus]",
        "16 is 2 nodes of 8: a total.",
    ),
    "missing script": (
        ("train.py", "trian.py"),
        "job.yml:1:1: error: command [script-missing]",
        "Did you mean `train.py`?",
    ),
    "wrong cluster": (
        ("azureml:a100", "azureml:a10"),
        "job.yml:4:1: warning: compute [cluster-unknown]",
        "Did you mean `a100`? Give --stack for another stack, or --size.",
    ),
    "placeholder of a cluster": (
        ("azureml:a100", "<Enter the name of your compute here>"),
        "job.yml:4:1: warning: compute [placeholder]",
        "Write the name of a cluster, or `serverless`.",
    ),
    "nodes beyond the cluster": (
        ("instance_count: 2", "instance_count: 8"),
        "job.yml:8:13: error: resources.instance_count [nodes-beyond-cluster]",
        "Raise the cluster's nodes.max to 8, or lower the job's nodes.",
    ),
    "missing code folder": (
        ("code: src", "code: scr"),
        "job.yml:2:1: error: code [code-missing]",
        "Did you mean `src`?",
    ),
    "unknown key": (
        ("compute:", "computee:"),
        "job.yml:4:1: error: computee [key-unknown]",
        "Did you mean `compute`?",
    ),
    "count in words": (
        ("instance_count: 2", "instance_count: two"),
        "job.yml:8:13: error: resources.instance_count [value-kind]",
        "`instance_count` must be an integer, got `two`.",
    ),
    "memory without a unit": (
        ("450g", "64"),
        "job.yml:8:32: error: resources.shm_size [value-kind]",
        '`shm_size` must be text with a unit, got `64`. Write "64g" for 64 GiB; a bare "64" is bytes.',
    ),
    "timeout with a unit": (
        ("timeout: 3600", "timeout: 2h"),
        "job.yml:5:10: error: limits.timeout [value-kind]",
        "`timeout` must be a whole number of seconds, got `2h`. Write 7200.",
    ),
    "indentation": (
        ("environment:", "  environment:"),
        "job.yml:3:14: error [yaml-syntax]",
        "Mind indentation, quotes and colons around this place.",
    ),
    "tab": (
        ("code: src", "\tcode: src"),
        "job.yml:2:1: error [yaml-tab]",
        "Replace the tab by spaces.",
    ),
    "retired size, serverless": (
        ("azureml:a100", "serverless\nresources: {instance_type: Standard_NC24s_v3}"),
        "job.yml:5:13: error: resources.instance_type [size-retired]",
        "Standard_NC24s_v3 was retired on 2025-09-30.",
    ),
    "one process on eight GPUs": (
        ("instance: 8", "instance: 1"),
        "job.yml:1:1: warning: command [gpus-idle]",
        "`python train.py` is one process on each node, and Standard_ND96asr_v4 has 8 GPUs.",
    ),
}
OF_PYTHON = {
    "curated name": (
        ("2.8-cuda", "2.9-cuda"),
        "job.py:6:5: error: environment [environment-unknown]",
        "Did you mean `acpt-pytorch-2.8-cuda12.6`",
    ),
    "unknown field": (
        ("    nodes=", "    node_count="),
        "job.py:8:5: error: node_count [key-unknown]",
        "Did you mean `nodes`?",
    ),
    "syntax": (("job = Job(", "job = Job(("), "job.py:3:10: error [python-syntax]", "'(' was never closed."),
    "import": (
        ("import os", "import torchh"),
        "job.py:1: error [python-raised]",
        "No module named 'torchh'.",
    ),
    "no job": (("job = ", "jobb = "), "job.py: error [job-missing]", "Write `job = Job(…)`."),
    "end of the process": (
        ("job = Job", "os._exit(0)\njob = Job"),
        "job.py:3: error [python-ends-process]",
        "Keep what runs on the nodes in a file of its own",
    ),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print('a step')\n")
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)


def _checked(capfd: pytest.CaptureFixture[str], file: str) -> list[str]:
    main(["check", file])
    return capfd.readouterr().out.splitlines()


@pytest.mark.parametrize("name", OF_YAML)
def test_a_mistake_in_a_yaml_file_is_found_at_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (before, after), head, words = OF_YAML[name]
    text = YAML.replace(before, after, 1)
    assert text != YAML
    if "instance_type" in after:
        text = text.replace("resources: {instance_count: 2, shm_size: 450g}\n", "")
    (tmp_path / "job.yml").write_text(text)
    lines = _checked(capfd, "job.yml")
    assert head in lines
    assert words in lines[lines.index(head) + 1]


@pytest.mark.parametrize("name", OF_PYTHON)
def test_a_mistake_in_a_python_file_is_found_at_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (before, after), head, words = OF_PYTHON[name]
    text = PYTHON.replace(before, after, 1)
    assert text != PYTHON
    (tmp_path / "job.py").write_text(text)
    lines = _checked(capfd, "job.py")
    assert head in lines
    assert words in lines[lines.index(head) + 1]


def test_several_mistakes_in_a_python_file_are_found_together(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = PYTHON.replace("nodes=2", 'nodes="two"').replace("TorchRun()", 'TorchRun(nproc=2), on_edit="cancle"')
    (tmp_path / "job.py").write_text(text)
    heads = [line for line in _checked(capfd, "job.py") if line.startswith("job.py:")]
    assert heads == [
        "job.py:8:5: error: nodes [value-kind]",
        "job.py:9:23: error: launcher.nproc [key-unknown]",
        "job.py:9:33: error: on_edit [value-kind]",
    ]


@pytest.mark.parametrize("file", ["job.yml", "job.py"])
def test_a_file_without_mistakes_has_advice_only(tmp_path: Path, capfd: pytest.CaptureFixture[str], file: str) -> None:
    (tmp_path / file).write_text(YAML if file == "job.yml" else PYTHON)
    heads = [line for line in _checked(capfd, file) if line.startswith(file)]
    advice, cost = heads
    assert advice == f"{file}:{'3:1' if file == 'job.yml' else '6:5'}: warning: environment [environment-pinned]"
    assert cost.startswith(f"{file}: job costs 70.71 USD per hour, at most ")


def test_what_does_not_belong_into_a_code_folder_is_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    src = tmp_path / "src"
    (src / ".git").mkdir()
    (src / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (src / ".env").write_text("USER=me\n")
    (src / "id_rsa").write_text("a key\n")
    (src / "aws.py").write_text('import os\nKEY = "AKIA' + 'IOSFODNN7EXAMPLE"\n')
    (src / "passwd").symlink_to("/etc/passwd")
    with (src / "data.bin").open("wb") as file:
        file.truncate(400_000_000)
    (tmp_path / "job.yml").write_text(YAML)
    lines = _checked(capfd, "job.yml")
    assert {line for line in lines if line.startswith("src/")} == {
        "src/.env: warning [secret-in-code]",
        "src/.git: warning [git-folder-in-code]",
        "src/aws.py:2: warning [secret-in-code]",
        "src/data.bin: warning [large-file-in-code]",
        "src/id_rsa: warning [secret-in-code]",
        "src/passwd: error [link-leaves-folder]",
    }
    assert any("data.bin is a file of 400 MB." in line for line in lines)


def test_two_files_that_name_their_jobs_alike_are_both_named(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder / "src").mkdir(parents=True)
        (tmp_path / folder / "src" / "train.py").touch()
        (tmp_path / folder / "job.yml").write_text(YAML)
    stack = tmp_path / "Pulumi.prod.yaml"
    stack.write_text(f"{STACK}  amlstack:jobs: [first/job.yml, second/job.yml]\n")
    found = declare(read_file(stack), on=clock.today(), root=tmp_path).findings
    (twice,) = (finding for finding in found if finding.code == "job-twice")
    assert (twice.file, twice.line, twice.where) == (stack.name, 6, "amlstack:jobs[1]")
    assert twice.seen == "Two jobs are named `job`, in `first/job.yml` and `second/job.yml`"


@pytest.mark.parametrize("chosen", [["--stack", "prod"], []])
def test_a_wrong_cluster_is_an_error_where_the_stack_is_certain(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], chosen: list[str]
) -> None:
    (tmp_path / "job.yml").write_text(YAML.replace("azureml:a100", "azureml:a10"))
    if not chosen:  # the stack lists the file
        (tmp_path / "Pulumi.prod.yaml").write_text(f"{STACK}  amlstack:jobs: [job.yml]\n")
    assert main(["check", "job.yml", *chosen]) == 1
    assert "job.yml:4:1: error: compute [cluster-unknown]" in capfd.readouterr().out


def test_a_region_that_does_not_exist_is_found_in_the_settings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK.replace("westeurope", "westeuropa"))
    (tmp_path / "job.yml").write_text(YAML)
    assert main(["check", "job.yml", "--stack", "prod"]) == 1
    lines = capfd.readouterr().out.splitlines()
    head = "Pulumi.prod.yaml:2:3: error: amlstack:location [region-unknown]"
    assert "Did you mean `westeurope`?" in lines[lines.index(head) + 1]


def test_a_pipeline_component_that_names_itself_is_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "type: pipeline\nname: c\njobs:\n  again:\n    type: pipeline\n    component: ./own.yml\n"
    (tmp_path / "own.yml").write_text(f"$schema: https://x/pipelineComponent.schema.json\n{text}")
    (tmp_path / "job.yml").write_text(
        "type: pipeline\nsettings: {default_compute: azureml:a100}\njobs: {a: {type: pipeline, component: ./own.yml}}\n"
    )
    lines = _checked(capfd, "job.yml")
    assert any(line.startswith("own.yml:7:") and "error: " in line and "[component-circle]" in line for line in lines)


def test_a_cluster_of_a_file_outside_of_the_stacks_folder_is_not_looked_for_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stack = tmp_path / "stack"
    stack.mkdir()
    (stack / "Pulumi.prod.yaml").write_text(STACK)
    (tmp_path / "job.yml").write_text(YAML.replace("azureml:a100", "azureml:gpu-cluster"))
    monkeypatch.chdir(stack)
    main(["check", "../job.yml"])
    shown = capfd.readouterr().out
    assert "cluster-unknown" not in shown
    assert "../job.yml:4:1: info: compute [cluster-size-unknown]" in shown
