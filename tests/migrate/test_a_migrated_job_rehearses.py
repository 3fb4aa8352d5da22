"""A job of the guides in SDK v1, its training code logging to a run: migrated, patched and rehearsed on the sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from amlstack.cli.main import main
from amlstack.sandbox.store.store import Store
from tests.support.migrate.programs import HEAD
from tests.support.running import running_sandbox

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.ranks, pytest.mark.training, pytest.mark.timeout(3600)]

SUBMIT = HEAD + (
    "pytorch = Environment.get(ws, 'AzureML-acpt-pytorch-2.8-cuda12.6', version='13')\n"
    "pytorch.environment_variables = {'CUDA_VISIBLE_DEVICES': '0,1'}\n"
    "run = ScriptRunConfig('src', 'train.py', ['--epochs', 2, '--world-size', 4], compute_target='a100',\n"
    "    environment=pytorch, distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2),\n"
    "    max_run_duration_seconds=3600)\n"
    "Experiment(ws, 'migrated').submit(run)\n"
)
LINE = "        losses.append(mean(total / len(batches)))\n"


def test_the_ranks_of_v1_train_and_the_patched_code_logs_its_loss(tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(
        PROJECT / "examples" / "ddp_torchrun", old / "src", ignore=shutil.ignore_patterns("job.py", "__pycache__")
    )
    code = (old / "src" / "train.py").read_text("utf-8")
    logged = code.replace(LINE, f"{LINE}        if dist.get_rank() == 0:\n            run.log('loss', losses[-1])\n")
    logged = logged.replace(
        "FEATURES, CLASSES", "from azureml.core import Run\nrun = Run.get_context()\nFEATURES, CLASSES", 1
    )
    (old / "src" / "train.py").write_text(logged, "utf-8")
    (old / "submit.py").write_text(SUBMIT, "utf-8")
    assert main(["migrate", str(old), "--write"]) == 0

    with running_sandbox(tmp_path / "home") as sandbox:
        ended = subprocess.run(
            [sys.executable, "-m", "amlstack.cli.main", "rehearse", str(tmp_path / "old-v2" / "submit.yml")],
            cwd=PROJECT,
            env={**os.environ, "AMLSTACK_HOME": str(sandbox.home)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        with closing(Store(sandbox.home)) as store:
            [job] = store.jobs.list()
            assert len(store.metrics.values(job.id, "loss")) == 2
