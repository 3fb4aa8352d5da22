"""`amlstack graph`: a stack as a Mermaid flowchart, always the same one."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from amlstack.cli.main import main
from amlstack.cli.stack.run_orders import mermaid
from infra.declaration import declare
from infra.settings import read_file

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SETTINGS = """
config:
  amlstack:location: westeurope
  amlstack:workspace: aml-team
  amlstack:clusters:
    - {name: gpu, size: Standard_ND96asr_v4, nodes: {min: 0, max: 4}}
    - {name: spare, size: Standard_D4s_v5, nodes: {min: 0, max: 2}, priority: low_priority}
  amlstack:environments:
    - {name: plain, image: "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04:20240101.v1"}
  amlstack:jobs:
    - prepare.yml
    - {file: train.yml, after: prepare}
"""
JOB = """
name: {name}
command: ls ${{{{inputs.texts}}}}
inputs:
  texts: {{type: uri_folder, path: "{path}"}}
environment: azureml:plain
compute: {compute}
resources: {{instance_count: {nodes}}}
limits: {{timeout: 60}}
"""
DRAWN = """\
flowchart LR
  cluster0[/"gpu<br>0 to 4 × Standard_ND96asr_v4<br>8 x A100 40 GiB, HDR InfiniBand 1600 Gb/s"/]
  cluster1[/"spare<br>0 to 2 × Standard_D4s_v5, low priority<br>4 vCPUs, no InfiniBand"/]
  run0("prepare<br>1 node")
  data0[("https://example.org/a#quot;b")]
  run1("train<br>2 nodes")
  data1[("azureml://datastores/workspaceblobstore/paths/texts/")]
  data0 --> run0
  run0 -.-> cluster1
  data1 --> run1
  run0 -- then --> run1
  run1 -.-> cluster0
"""


def drawn(folder: Path) -> str:
    (folder / "Pulumi.dev.yaml").write_text(SETTINGS)
    path = "azureml://datastores/workspaceblobstore/paths/texts/"
    jobs = (("prepare", 'https://example.org/a\\"b', "spare", 1), ("train", path, "azureml:gpu", 2))
    for name, path, compute, nodes in jobs:
        (folder / f"{name}.yml").write_text(JOB.format(name=name, path=path, compute=compute, nodes=nodes))
    reading = read_file(folder / "Pulumi.dev.yaml")
    assert reading.partial
    return "\n".join([*mermaid(reading.partial, declare(reading, on=date(2026, 8, 1), root=folder).runs), ""])


def test_data_jobs_clusters_and_waits_are_drawn(tmp_path: Path) -> None:
    assert drawn(tmp_path) == DRAWN
    assert drawn(tmp_path) == DRAWN


def test_the_projects_own_stack_is_drawn_and_another_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR\n  cluster0")
    assert main(["graph", "--stack", "none"]) == 2
    assert "There is no Pulumi.none.yaml" in capsys.readouterr().err
