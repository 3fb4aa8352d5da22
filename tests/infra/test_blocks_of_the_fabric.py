"""``fabric`` of a job file in the settings: blocks of variables for all that the file runs."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import jobs
from infra.declaration import declare
from infra.settings import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from infra.declaration import Declaration

COMMAND = "command: python t.py\nenvironment: azureml:e:1\n"
PYTORCH = "distribution: {type: pytorch, process_count_per_instance: 8}\n"
FILES = {
    "job": f"name: job\ncompute: h100\n{COMMAND}{PYTORCH}",
    "sweep": (
        "type: sweep\nname: tune\ncompute: h100\nsampling_algorithm: random\n"
        "objective: {goal: minimize, primary_metric: loss}\nlimits: {max_total_trials: 1}\n"
        f"search_space: {{lr: {{type: uniform, min_value: 0, max_value: 1}}}}\n"
        f"trial:\n  command: python t.py ${{{{search_space.lr}}}}\n  environment: azureml:e:1\n  {PYTORCH}"
    ),
    "steps": (
        "type: pipeline\nname: steps\nsettings: {default_compute: azureml:h100}\njobs:\n  one:\n    type: command\n"
        f"    command: python t.py\n    environment: azureml:e:1\n    {PYTORCH}"
    ),
}


def judged(folder: Path, text: str, asked: Any, size: str = "Standard_ND96isr_H100_v5") -> Declaration:
    (folder / "run.yml").write_text(text)
    config = {
        "location": "westeurope",
        "workspace": "aml-team",
        "clusters": [{"name": "h100", "size": size, "nodes": {"max": 2}}],
        "jobs": [{"file": "run.yml", "fabric": asked}],
    }
    stack = folder / "Pulumi.team.yaml"
    stack.write_text(yaml.safe_dump({"config": {f"amlstack:{key}": value for key, value in config.items()}}))
    return declare(read_file(stack), on=date(2026, 7, 1), root=folder)


@pytest.mark.parametrize("kind", FILES)
def test_a_job_a_trial_and_a_step_get_the_blocks_that_the_stack_asks_for(tmp_path: Path, kind: str) -> None:
    (run,) = judged(tmp_path, FILES[kind], ["azure-tuned", "sharp"]).runs

    rendered = jobs.render(run.plan.enriched)
    wire = str(rendered.body) + str(rendered.components)
    assert "'NCCL_MIN_NCHANNELS': '32'" in wire
    assert "'NCCL_COLLNET_ENABLE': '1'" in wire
    assert "'NCCL_SOCKET_IFNAME': 'eth0'" in wire


def test_a_file_of_azure_ml_is_sent_unchanged_where_nothing_is_asked(tmp_path: Path) -> None:
    (run,) = judged(tmp_path, FILES["job"], []).runs

    assert run.plan.enriched == run.plan.job


def test_a_size_without_the_block_is_a_finding(tmp_path: Path) -> None:
    found = judged(tmp_path, FILES["job"], "sharp", "Standard_ND96asr_v4").findings

    assert [finding.code for finding in found if finding.level == "error"] == ["fabric-block"]


def test_a_block_that_there_is_not_names_those_that_there_are(tmp_path: Path) -> None:
    (finding,) = (one for one in judged(tmp_path, FILES["job"], "sharpp").findings if "fabric" in one.where)

    assert (finding.level, finding.line is not None) == ("error", True)
    assert "sharp" in finding.rule + finding.remedy
