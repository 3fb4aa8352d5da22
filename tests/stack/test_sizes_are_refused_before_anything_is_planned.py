"""The program refuses what the policy pack would refuse, in the same words, with the place in the person's files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from tests.support.harness import ANALYZER
from tests.support.stack.small_jobs import settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import MakeStack, Sandbox

pytestmark = pytest.mark.engine

ASKED = {
    # size, nodes: codes that refuse it, of a cluster and of a serverless job alike
    ("Standard_NC24r", 1): {"sriov-fabric", "size-retired"},
    ("Standard_NC24s_v3", 2): {"sriov-fabric", "size-retired"},
    ("Standard_NC24s_v3", 1): {"size-retired"},
    ("Standard_NC24rs_v3", 2): {"size-retired"},
    ("Standard_ND96asr_v5", 2): {"size-unknown"},
    ("Standard_ND96asr_v4", 2): set(),
}
JOB = """\
from jobs import Job, PerProcess

job = Job(
    name="{name}",
    command="python train.py",
    environment="small",
    instance_type="{size}",
    nodes={nodes},
    launcher=PerProcess(processes_per_node=1),
)
"""
FINDING = re.compile(r"^(\S+?)(?::\d+:\d+)?: (\S+): .*\[([a-z-]+)\]$", re.MULTILINE)


def test_clusters_and_serverless_jobs_are_judged_alike(stack: MakeStack, sandbox: Sandbox, tmp_path: Path) -> None:
    wanted, files, clusters = {}, [], []
    for number, ((size, nodes), codes) in enumerate(ASKED.items()):
        clusters.append({"name": f"cluster-{number}", "size": size, "nodes": {"max": nodes}})
        wanted["Pulumi.test.yaml", f"amlstack:clusters[{number}].size"] = codes
        files.append(tmp_path / f"job_{number}.py")
        files[-1].write_text(JOB.format(name=f"job-{number}", size=size, nodes=nodes))
        wanted[str(files[-1]), "instance_type"] = codes
    one = stack(PROJECT, sandbox=sandbox, env={"AMLSTACK_TODAY": "2026-08-01"})
    for key, value in settings("ws-sizes").items():
        one.set(key, value, path=False)
    one.env["PWD"] = str(one.folder)  # as a shell has it
    one.set("amlstack:clusters", clusters).set("amlstack:jobs", list(map(str, files)))

    refused = one.preview(policy_packs=[ANALYZER]).failed()

    result: dict[tuple[str, str], set[str]] = {}
    for file, where, code in FINDING.findall("\n".join(refused.errors)):
        result.setdefault((file.rsplit("/", 1)[-1] if file.endswith(".yaml") else file, where), set()).add(code)
    assert result == {place: codes for place, codes in wanted.items() if codes}
    # The nearest size that complies is named, of clusters and of jobs.
    for place in ("amlstack:clusters[0].size", "instance_type"):
        assert any(
            place in error and "Standard_NC24r has RDMA without SR-IOV" in error and "Use Standard_ND40rs_v2" in error
            for error in refused.errors
        ), refused.output
    assert {step.type for step in refused.planned} <= {"pulumi:pulumi:Stack"}
