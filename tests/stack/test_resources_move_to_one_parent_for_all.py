"""A stack whose state has a component around every cluster, job, schedule and environment: nothing is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.cli.stack import losses
from amlstack.cli.stack.state import State
from tests.support.stack.former_parents import put_back

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

JOB = """\
name: train
command: python train.py
code: src
environment: azureml:mine
compute: azureml:gpu2
"""
PIPELINE = """\
name: pipe
type: pipeline
jobs:
  one:
    type: command
    command: python train.py
    code: src
    environment: azureml:mine
    compute: azureml:gpu1
"""
SCHEDULE = """\
$schema: https://azuremlschemas.azureedge.net/latest/schedule.schema.json
name: nightly
trigger: {type: recurrence, start_time: '2030-01-01T00:00:00', frequency: day, interval: 1}
create_job: ./pipe.yml
"""
WRITTEN_BY_A_FORMER_PROGRAM = {
    "amlstack:infra:RdmaCluster::gpu1",
    "amlstack:infra:RdmaCluster::gpu2",
    "amlstack:infra:Environment::mine-361f7fe439f2f0ac",
    "amlstack:infra:Training::train",
    "amlstack:infra:Training::pipe",
    "amlstack:infra:Timetable::nightly",
    "amlstack:infra:RdmaCluster$azure-native:machinelearningservices:Compute::gpu1",
    "amlstack:infra:RdmaCluster$azure-native:machinelearningservices:Compute::gpu2",
    *(
        f"amlstack:infra:RdmaCluster$azure-native:authorization:RoleAssignment::gpu2-{role}"
        for role in ("acrpull", "storage-blob-data-contributor", "storage-file-data-privileged-contributor")
    ),
    "amlstack:infra:Environment$amlstack:environments:Version::mine-361f7fe439f2f0ac",
    "amlstack:infra:Training$amlstack:components:Version::pipe.one",
    "amlstack:infra:Training$amlstack:jobs:Job::train",
    "amlstack:infra:Training$amlstack:jobs:Job::pipe",
    "amlstack:infra:Timetable$amlstack:components:Version::nightly.one",
    "amlstack:infra:Timetable$amlstack:schedules:Schedule::nightly",
}
"""As the program of commit a9654fb wrote it for this very stack."""
GIVEN_SINCE = {
    "amlstack:infra:RdmaCluster$azure-native:authorization:RoleAssignment::gpu2-monitoring-metrics-publisher",
}
"""What later programs have beside it."""


def declare(own: Own, folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("print('trained')\n")
    (folder / "conda.yml").write_text("dependencies: [python=3.11]\n")
    for name, text in {"train": JOB, "pipe": PIPELINE, "nightly": SCHEDULE}.items():
        (folder / f"{name}.yml").write_text(text)
    sizes = {"size": "Standard_ND96asr_v4", "nodes": {"max": 1}}
    clusters = [{"name": "gpu1", **sizes}, {"name": "gpu2", "identity": "system", **sizes}]
    own.stack.set("amlstack:location", "westeurope").set("amlstack:workspace", "ws-moved")
    own.stack.set("amlstack:clusters", clusters)
    own.stack.set(
        "amlstack:environments", [{"name": "mine", "image": "ubuntu:24.04", "conda": str(folder / "conda.yml")}]
    )
    own.stack.set("amlstack:jobs", [str(folder / f"{name}.yml") for name in ("train", "pipe", "nightly")])


def changed(result: Result) -> set[str]:
    """The types, with what is around them, of whatever does not stay as it is."""
    return {urn.split("::")[2] for urn, ops in result.ops.items() if ops != ("same",)}


def test_only_components_change_when_the_state_has_one_around_each_resource(own: Own, tmp_path: Path) -> None:
    declare(own, tmp_path)
    own.stack.up().ok()
    urns = [urn.split("::", 2)[2] for urn in put_back(own.stack)]
    formerly = ("amlstack:infra:RdmaCluster", "amlstack:infra:Environment", "amlstack:infra:Training")
    assert {urn for urn in urns if urn.startswith((*formerly, "amlstack:infra:Timetable"))} == (
        WRITTEN_BY_A_FORMER_PROGRAM | GIVEN_SINCE
    )
    before = State(tuple(own.stack.state()["resources"]))

    components = {one.split("::")[0] for one in WRITTEN_BY_A_FORMER_PROGRAM if "$" not in one}
    parents = {"amlstack:infra:Clusters", "amlstack:infra:Jobs", "amlstack:infra:Schedules"}
    planned = own.stack.preview().ok()
    assert changed(planned) == components | parents
    # Nobody is asked about losses: `amlstack up` looks at the operations of a preview.
    ops = {urn: steps[-1] for urn, steps in planned.ops.items()}
    assert losses.of(ops, before, own.home) == ()
    assert changed(own.stack.up().ok()) == components | parents
    assert own.stack.up().ok().changes == {}
    assert all(not one["type"].startswith(formerly) for one in own.stack.state()["resources"])
