"""Sweeps, pipelines and schedules are there under their names, and are loaded by nobody who has a single job."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import jobs
from amlstack.paths import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

YAML = "command: python train.py\nenvironment: azureml:e:1\ncompute: azureml:gpu\n"
PYTHON = "from jobs import Job\njob = Job(command='python train.py', environment='azureml:e:1', compute='gpu')\n"
CHECK = """
import sys
from datetime import date
from pathlib import Path
import jobs
from amlstack.cli.check import check_file
from amlstack.cli.targets import Targets
from jobs.costs import costs
from policies import config
from policies.gate import Gate

day = date(2026, 1, 1)
where = Targets(size="Standard_ND96isr_H100_v5")
checked = check_file(Path(sys.argv[1]), where, day, gate=Gate(config.read({}), day))
assert checked.plans, checked.findings
for plan in checked.plans:
    costs(plan), jobs.render(plan.enriched)
print(*sys.modules)
"""
OF_OTHERS = ("composites", "component", "faults", "other", "pipeline", "rest", "schedule", "search_space", "sweep")


@pytest.mark.parametrize("name", jobs.__all__)
def test_every_name_is_there_and_listed(name: str) -> None:
    assert getattr(jobs, name).__name__ if name not in {"API_VERSION", "Declared", "Planned"} else getattr(jobs, name)
    assert name in dir(jobs)


def test_a_name_that_is_none_is_refused_as_by_any_module() -> None:
    with pytest.raises(AttributeError, match="module `jobs` has no attribute `Pipelin`"):
        jobs.Pipelin  # noqa: B018 - the access is what is tested
    with pytest.raises(ImportError, match="cannot import name 'Pipelin'"):
        exec("from jobs import Pipelin")


@pytest.mark.parametrize(("suffix", "text"), [(".yml", YAML), (".py", PYTHON)])
def test_a_single_job_is_checked_without_loading_what_others_need(suffix: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / f"job{suffix}"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(file)], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "jobs.spec" in loaded
    assert [
        name for name in loaded if name.removeprefix("jobs.").split("_")[0] in OF_OTHERS and name[:5] == "jobs."
    ] == []
    assert [
        name for name in loaded if name.split(".")[0] in {"pulumi", "azure", "grpc"} or name == "infra.settings"
    ] == []
