"""`amlstack rehearse --dry-run`: whether a job can be rehearsed here, with the true reason, and nothing is started."""

from __future__ import annotations

import json
import os
import shutil
import socket
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main
from amlstack.cli.rehearsal import environments
from amlstack.sandbox.runner import prepare
from amlstack.sandbox.server import daemon

if TYPE_CHECKING:
    from pathlib import Path

OWN = "{image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}"
JOB = """\
command: python train.py ${{inputs.corpus}}
code: src
environment: {image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}
compute: azureml:big
inputs:
  corpus: {type: uri_folder, path: "azureml:corpus@latest"}
distribution: {type: pytorch, process_count_per_instance: 8}
resources: {instance_count: 16}
limits: {timeout: 60}
"""
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:big}
jobs:
  train:
    type: command
    command: python train.py
    code: src
    environment: azureml:mine@latest
  clean:
    type: spark
    component: azureml:clean:1
  score:
    component: azureml:score:3
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job on a machine with two cores, much memory, no GPU, and a home in which no sandbox ever ran."""
    for name in ("HOME", "CACHE"):
        monkeypatch.setenv(f"AMLSTACK_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(environments, "_DEVICES", tmp_path / "dev")
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "data").mkdir()
    (work / "src" / "train.py").write_text("from torch import nn, multiprocessing\n")
    (work / "job.yml").write_text(JOB)
    monkeypatch.chdir(work)
    return work


def answered(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["rehearse", *words, "--dry-run", "--json"])
    return code, json.loads(capfd.readouterr().out)


def in_the_way(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for job in answer["jobs"] for each in job["aspects"] if each["state"] == "blocks"]


def test_a_job_that_can_be_rehearsed_is_answered_with_all_it_needs(capfd: pytest.CaptureFixture[str]) -> None:
    code, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert code == 0
    (job,) = answer["jobs"]
    assert (answer["possible"], job["possible"]) == (True, True)
    states = {each["about"]: each["state"] for each in job["aspects"]}
    assert states == {
        "environment": "later",
        "data": "ready",
        "size": "ready",
        "disk": "ready",
        "sandbox": "later",
    }
    assert any("16 × 8 → 2 × 2" in each["text"] for each in job["aspects"])
    assert any("the fabric" in text for text in job["unproven"])


def test_nothing_is_started_or_written(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(daemon, "up", lambda *_, **__: pytest.fail("the sandbox was started"))
    before = {path for path in here.parent.rglob("*") if "__pycache__" not in path.parts}
    answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert {path for path in here.parent.rglob("*") if "__pycache__" not in path.parts} == before


def test_what_is_in_the_way_is_named_all_at_once(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "src" / "train.py").write_text("import os\nimport apex\n")
    (here / "job.yml").write_text(JOB.replace(OWN, "azureml:mine:3"))
    code, answer = answered(capfd, "job.yml")
    assert code == 2
    found = {each["about"]: each for each in in_the_way(answer)}
    assert found.keys() == {"data", "environment", "GPU", "size"}
    assert "`azureml:mine:3` was looked for in the sandbox's workspace" in found["environment"]["text"]
    assert (found["data"]["file"], found["data"]["line"]) == ("job.yml", 6)
    assert found["data"]["remedy"].startswith("Fetch it with `--fetch`, or give `--input corpus=PATH`")
    assert (found["GPU"]["file"], found["GPU"]["line"]) == ("src/train.py", 2)
    assert "128 ranks at once on 2 cores" in found["size"]["text"]
    assert found["size"]["remedy"] == "Give -j 2x2 for fewer, or --yes for all of them."


def test_errors_of_the_file_are_counted_beside_what_is_in_the_way(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "job.yml").write_text(JOB.replace(OWN, "mine").replace("compute: azureml:big", "compute: azureml:<yours>"))
    assert main(["rehearse", "job.yml", "-j", "2x2", "--dry-run"]) == 2
    printed = capfd.readouterr().out
    assert "azureml:missing" not in printed
    assert "  compute      NO: `<yours>` is a placeholder" in printed
    end = "cannot be rehearsed here: as the findings above say, and 2 things are in the way; nothing was started"
    assert printed.splitlines()[-1] == f"job.yml: {end}"


def test_an_environment_that_cannot_be_read_is_not_answered_for(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text(JOB.replace(OWN, "{image: a.b/c, conda_file: gone.yml}"))
    code, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert code == 2
    assert [each["code"] for each in answer["findings"] if each["level"] == "error"] == ["conda-missing"]
    assert "environment" not in {each["about"] for job in answer["jobs"] for each in job["aspects"]}


def test_pins_that_exclude_each_other_are_refused_as_check_refuses_them(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "conda.yml").write_text("dependencies: [python=3.10, {pip: [torch==1.12.1, torchvision==0.15.2]}]\n")
    (here / "job.yml").write_text(JOB.replace(OWN, "{image: a.b/c, conda_file: conda.yml}"))
    code, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert (code, [each["code"] for each in answer["findings"]][-1]) == (2, "pins-conflict")


def test_ranks_of_a_launcher_are_counted_through_an_input(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = "accelerate launch --multi_gpu --num_machines 1 --num_processes ${{inputs.ranks}} train.py"
    text = JOB.replace("python train.py ${{inputs.corpus}}", command).replace("inputs:", "inputs:\n  ranks: 4")
    (here / "job.yml").write_text(text.partition("distribution:")[0])
    _, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert any("1 × 4 → 1 × 2" in each["text"] for each in answer["jobs"][0]["aspects"])


def test_what_stands_in_for_an_environment_is_unproven(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text(JOB.replace(OWN, "azureml:mine:3"))
    (here / "rehearsal.toml").write_text('[stand_in."azureml:mine"]\nrequirements = ["tabulate"]\n')
    _, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    said = "the environment `azureml:mine:3`: rehearsal.toml says what stands in for it"
    assert said in answer["jobs"][0]["unproven"]


def test_a_component_near_the_job_is_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    schema = "$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json"
    (here / "parts").mkdir()
    (here / "parts" / "score.yml").write_text(f"{schema}\nname: score\n")
    (here / "job.yml").write_text(PIPELINE)
    _, answer = answered(capfd, "job.yml")
    (found,) = [each for each in in_the_way(answer) if "score" in each["text"]]
    assert found["remedy"] == "Write `component: file:parts/score.yml`, which declares it."


def test_the_same_reasons_are_printed_as_lines(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "src" / "train.py").write_text("import apex\n")
    assert main(["rehearse", "job.yml", "-j", "2x2", "--dry-run", "--input", "corpus=data"]) == 2
    printed = capfd.readouterr().out
    assert "  GPU          NO: src/train.py:1: " in printed
    assert printed.splitlines()[-1] == "job.yml: cannot be rehearsed here: 1 thing is in the way; nothing was started"


def test_a_rehearsal_itself_is_refused_by_the_same_reasons_before_anything_starts(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(daemon, "up", lambda *_, **__: pytest.fail("the sandbox was started"))
    (here / "src" / "train.py").write_text("import apex\n")
    assert main(["rehearse", "job.yml", "-j", "2x2", "--input", "corpus=data"]) == 2
    printed = "".join(capfd.readouterr())
    assert "it cannot be rehearsed here; nothing was started" in printed
    assert "GPU: src/train.py:1: " in printed


def test_code_for_gpus_can_be_started_all_the_same(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "src" / "train.py").write_text("import apex\n")
    words = ("job.yml", "-j", "2x2", "--input", "corpus=data")
    assert answered(capfd, *words, "--force")[0] == 0
    started = daemon.SandboxError("would have started")

    def up(*_: object, **__: object) -> None:
        raise started

    monkeypatch.setattr(daemon, "up", up)
    assert main(["rehearse", *words, "--force"]) == 1
    assert "would have started" in "".join(capfd.readouterr())


def test_code_for_gpus_is_not_in_the_way_where_a_gpu_is(
    here: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "src" / "train.py").write_text("import apex\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()
    assert answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")[0] == 0


def test_steps_and_components_that_no_rehearsal_has_are_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text(PIPELINE)
    code, answer = answered(capfd, "job.yml")
    assert code == 2
    places = {(each["about"], *each["places"]) for each in in_the_way(answer)}
    assert places == {("environment", "jobs.train"), ("steps", "jobs.clean"), ("steps", "jobs.score")}


def test_a_file_with_errors_cannot_be_rehearsed(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text(JOB.replace("train.py", "trian.py"))
    code, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert (code, answer["possible"]) == (2, False)
    assert [each["code"] for each in answer["findings"] if each["level"] == "error"] == ["script-missing"]


def test_a_script_that_nothing_makes_is_in_the_way(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "src" / "train.py").rename(here / "src" / "train.txt")
    code, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert (code, [each["about"] for each in in_the_way(answer)]) == (2, ["programs"])
    assert answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data", "--force")[0] == 0


def test_a_schedule_is_not_rehearsed(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "nightly.yml").write_text(
        "name: nightly\ntrigger: {type: cron, expression: '0 2 * * *'}\ncreate_job: ./job.yml\n"
    )
    code, answer = answered(capfd, "nightly.yml")
    assert code == 2
    assert "rehearsal-kind" in [each["code"] for each in answer["findings"]]


def test_a_home_of_somebody_else_is_in_the_way(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    code, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert code == 2
    (found,) = in_the_way(answer)
    assert (found["about"], "thesis.tex" in found["text"]) == ("sandbox", True)


def test_a_full_disk_is_in_the_way(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    class Usage:
        free = 10

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage())
    code, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    assert code == 2
    (found,) = in_the_way(answer)
    assert found["about"] == "disk"
    assert "10 bytes are free" in found["text"]


def test_gpu_calls_that_are_carried_to_the_cpu_are_announced(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "src" / "train.py").write_text("import torch\nmodel = torch.nn.Linear(1, 1).cuda()\n")
    words = ("job.yml", "-j", "2x2", "--input", "corpus=data")
    for option, state, text in (((), "ready", "GPU calls run on the CPU"), (("--no-shim",), "note", "--no-shim")):
        code, answer = answered(capfd, *words, *option)
        (gpu,) = (each for each in answer["jobs"][0]["aspects"] if each["about"] == "GPU")
        assert (code, gpu["state"]) == (0, state)
        assert text in gpu["text"]


def test_reduced_precision_is_what_the_run_computes_in(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text(JOB.replace("train.py", "train.py --fp16"))
    words = ("job.yml", "-j", "2x2", "--input", "corpus=data")
    carried, left = (
        next(text for text in answered(capfd, *words, *more)[1]["jobs"][0]["unproven"] if "(fp16)" in text)
        for more in ((), ("--no-shim",))
    )
    assert "single precision" in carried
    assert "single precision" not in left


@pytest.mark.parametrize(
    ("image", "machine", "says"),
    [
        ("openmpi5.0-ubuntu24.04", True, "Open MPI 5.0.11 of PyPI comes with the environment"),
        ("openmpi4.1.0-ubuntu22.04", True, "this machine's Open MPI 4"),
        ("openmpi4.1.0-ubuntu22.04", False, "Open MPI 4.1.8 of PyPI comes with the environment"),
    ],
)
def test_the_mpirun_that_the_run_takes_is_named(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *,
    image: str,
    machine: bool,
    says: str,
) -> None:
    monkeypatch.setattr(prepare, "on_machine", lambda: "/usr/bin/mpirun" if machine else "")
    text = JOB.replace("openmpi5.0-ubuntu24.04", image).replace("type: pytorch", "type: mpi")
    (here / "job.yml").write_text(text)
    _, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
    (found,) = (each for each in answer["jobs"][0]["aspects"] if each["about"] == "MPI")
    assert says in found["text"]


def test_ports_that_the_job_fixes_are_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as unused:
        unused.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        unused.bind(("127.0.0.1", 0))  # nobody else gets it, and it listens for nothing
        taken, free = (each.getsockname()[1] for each in (server, unused))
        for port, words in ((taken, "listens on it"), (free, "one after the other")):
            text = f"import os\nfrom torch import multiprocessing\nos.environ['MASTER_PORT'] = '{port}'\n"
            (here / "src" / "train.py").write_text(text)
            code, answer = answered(capfd, "job.yml", "-j", "2x2", "--input", "corpus=data")
            (found,) = (each["text"] for each in answer["jobs"][0]["aspects"] if each["about"] == "ports")
            assert code == 0
            assert found.startswith(f"{port} is fixed by the job")
            assert words in found
