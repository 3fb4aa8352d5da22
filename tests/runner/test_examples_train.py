from __future__ import annotations

import json
import shutil
from datetime import date
from typing import TYPE_CHECKING

import pytest
from runner_lab import CLUSTER, ML, WORKSPACE, Lab

import jobs
from amlstack.paths import PROJECT
from amlstack.sandbox.runner import mpi

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.training

EXAMPLES = PROJECT / "examples"
FILES = sorted(str(file.relative_to(EXAMPLES)) for file in EXAMPLES.glob("*/job.*") if file.parent.name != "preflight")


@pytest.mark.parametrize("file", FILES)
def test_the_example_trains_on_all_its_ranks(lab: Lab, file: str) -> None:
    plan = planned(EXAMPLES / file)
    body = jobs.body(plan.enriched, jobs.Refs(WORKSPACE, code_of(lab, plan), environment_of(lab, plan)))["properties"]
    if (body.get("distribution") or {}).get("distributionType") == "Mpi" and shutil.which("mpirun") is None:
        pytest.skip(f"Open MPI is missing: apt-get install {mpi.PACKAGES}")
    job = lab.run(lab.job(**{"distribution": None, **body, "computeId": CLUSTER}))
    logs = lab.folder("job") / "user_logs"
    assert job.status == "Completed", (job.error, *(path.read_text()[-2000:] for path in sorted(logs.glob("*.txt"))))
    metrics = json.loads((lab.folder("job") / "outputs/metrics.json").read_text())
    assert str(metrics["world_size"]) == body["inputs"]["world_size"]["value"]
    assert metrics["losses"][-1] < metrics["losses"][0]
    report = json.loads((lab.folder("job") / "report.json").read_text())
    assert report["metrics"] == metrics
    assert all((lab.folder("job") / log).is_file() for entry in report["ranks"] for log in entry["logs"])
    assert any("loss" in path.read_text() for path in logs.glob("std_log_process_*.txt"))
    assert lab.survivors() == ()


@pytest.mark.parametrize(("file", "name"), [("mpi_per_process", "aml_mpienv.py"), ("mpi_per_node", "launch.py")])
def test_the_guides_files_in_the_examples_are_todays(tmp_path: Path, file: str, name: str) -> None:
    from amlnode import bundle

    assert (EXAMPLES / file / name).read_text() == bundle.text(name), f"python -m amlnode write examples/{file} {name}"


def planned(file: Path) -> jobs.Plan:
    loaded = jobs.load(file)
    assert loaded.findings == ()
    target = jobs.Target("Standard_ND96asr_v4", "a100", max_nodes=2)
    plan = jobs.plan(loaded.jobs[0], target, on=date(2026, 1, 1), source=loaded.source)
    assert plan.findings == ()
    return plan


def environment_of(lab: Lab, plan: jobs.Plan) -> str | None:
    """Registers an inline environment, as deploying does; curated ones are known by their names."""
    if isinstance(plan.job.environment, str):
        return None
    inline = f"{WORKSPACE}/environments/inline/versions/1"
    properties = {"properties": {"image": plan.job.environment.image}}
    lab.store.resources.put(inline, f"{ML}/workspaces/environments/versions", inline.rsplit("/", 2)[0], properties)
    return inline


def code_of(lab: Lab, plan: jobs.Plan) -> str:
    assert plan.code is not None
    return lab.code({path.name: path.read_text() for path in plan.code.iterdir() if path.is_file()})
