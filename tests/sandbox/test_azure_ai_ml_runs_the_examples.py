"""Examples as files for `az ml job create`: azure-ai-ml submits them, streams them and downloads what they left.

One of them by default, all that train with `EXAMPLES=all` (`make guide-jobs`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from amlstack.base.paths import PROJECT
from amlstack.sandbox.runner import mpirun
from tests.support.running import running_sandbox
from tests.support.sandbox.sandbox_client import Arm, cluster

pytestmark = [pytest.mark.training, pytest.mark.timeout(3600)]

# The check of nodes before a training trains nothing.
ALL = sorted(file.parent.name for file in PROJECT.glob("examples/*/job.*") if file.parent.name != "preflight")
WANTED = ALL if os.environ.get("EXAMPLES") == "all" else os.environ.get("EXAMPLES", "ddp_torchrun").split()
NEEDS_AMLNODE = "needs `amlnode` beside it"


def written(example: str, project: Path) -> str:
    """Writes an example's file for `az ml job create` beside its code; the file's path below `project`."""
    (source,) = (PROJECT / "examples" / example).glob("job.*")
    folder = project / "examples" / example
    shown = subprocess.run(
        [str(Path(sys.executable).with_name("amlstack")), "show", str(source), "--as", "yaml"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    if NEEDS_AMLNODE in shown.stderr + shown.stdout:
        code = folder / yaml.safe_load(shown.stdout)["code"]
        shutil.copytree(PROJECT / "amlnode", code / "amlnode", dirs_exist_ok=True)
    (folder / "az.yml").write_text(shown.stdout)
    return f"examples/{example}/az.yml"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """By example: the run's status, what was streamed, and the downloaded files with their texts."""
    project = tmp_path_factory.mktemp("copy")
    shutil.copytree(PROJECT / "examples", project / "examples")
    files = {
        example: written(example, project)
        for example in WANTED
        if example != "horovod" or shutil.which("mpicxx") is not None
    }
    with running_sandbox(tmp_path_factory.mktemp("home")) as sandbox:
        arm = Arm(sandbox.endpoint)
        space = arm.make_workspace("space1")
        arm.finish(arm.put(f"{space}/computes/a100", cluster("Standard_ND96asr_v4")))
        script = PROJECT / "tests" / "support" / "sandbox" / "azure_ai_ml_submits.py"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(script), "space1", str(project / "kept"), *files.values()],
            cwd=project,
            env={
                **os.environ,
                **sandbox.environ,
                "AZUREML_RUN_POLLING_INTERVAL_MIN": "0",
                "AZUREML_RUN_POLLING_INTERVAL_MAX": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.rsplit("\n", 1)[-1])
    return {example: found[file] for example, file in files.items()}


@pytest.mark.parametrize("example", WANTED)
def test_an_example_is_streamed_and_its_metrics_are_downloaded(seen: dict[str, dict[str, Any]], example: str) -> None:
    if example not in seen:
        pytest.skip(f"Horovod cannot be compiled here: apt-get install {mpirun.PACKAGES}")
    run = seen[example]
    assert (run["status"], run["failure"]) == ("Completed", ""), run
    assert f"RunId: {run['name']}" in run["streamed"]
    files: dict[str, str] = run["files"]
    metrics = json.loads(files["artifacts/outputs/metrics.json"])
    assert metrics["world_size"] >= 1
    assert metrics["losses"][-1] < metrics["losses"][0]
    assert any("loss" in text for name, text in files.items() if name.startswith("artifacts/user_logs/"))
