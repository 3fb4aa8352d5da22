"""Files of the CLI's preview: refused as azure-ai-ml refuses them, with how it is written today."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "command: echo\nenvironment: azureml:e:1\n"


@pytest.mark.parametrize(
    ("text", "where", "remedy"),
    [
        (f"{COMMAND}code:\n  local_path: src\n", "code", "`code: src`"),
        (f"{COMMAND}compute:\n  target: azureml:c\n  instance_count: 4\n", "compute", "resources: {instance_count: …}"),
        (f"{COMMAND}inputs:\n  d:\n    dataset: azureml:iris:1\n", "inputs.d.dataset", "`path: azureml:NAME:VERSION`"),
        (f"{COMMAND}inputs:\n  d:\n    file: https://h/iris.csv\n", "inputs.d.file", "`path: …`"),
        ("command: echo\nenvironment:\n  docker:\n    image: i:1\n", "environment.docker", "`image` directly under"),
        ("command: echo\nenvironment:\n  build:\n    local_path: .\n", "environment.build.local_path", "`path` now"),
        (f"{COMMAND}services:\n  s:\n    job_service_type: ssh\n", "services.s.job_service_type", "`type` now"),
        (f"{COMMAND}distribution:\n  type: torch.distributed\n", "distribution.type", "`pytorch`"),
        (f"{COMMAND}instance_count: 2\n", "instance_count", "resources: {instance_count: …}"),
        (f"{COMMAND}process_count_per_instance: 2\n", "process_count_per_instance", "distribution: {type: pytorch,"),
        (
            "type: pipeline\nschedule: {type: cron}\njobs:\n  a:\n    command: echo\n    environment: azureml:e:1\n",
            "schedule",
            "`create_job`",
        ),
        (
            "type: pipeline\njobs:\n  a:\n    type: component\n    component: azureml:train:1\n",
            "jobs.a.type",
            "type `command`",
        ),
    ],
)
def test_a_former_spelling_gives_a_finding_with_the_new_one(tmp_path: Path, text: str, where: str, remedy: str) -> None:
    file = tmp_path / "job.yml"
    file.write_text(text)
    errors = [finding for finding in jobs.load(file).findings if finding.level.name == "ERROR"]
    (finding,) = [each for each in errors if each.where == where]
    assert remedy in finding.remedy
    assert len(errors) == 1


def test_a_key_that_was_never_spelt_so_keeps_its_own_remedy(tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text(f"{COMMAND}inputs:\n  d:\n    pth: x\n")
    (finding,) = [each for each in jobs.load(file).findings if each.level.name == "ERROR"]
    assert finding.remedy == "Did you mean `path`?"
