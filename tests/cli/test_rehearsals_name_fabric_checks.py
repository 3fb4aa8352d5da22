"""A rehearsal says which of its jobs a stack holds back for a fabric check, and that it leaves the check out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

JOB = "name: {name}\ncommand: echo\nenvironment: azureml:acpt-pytorch-2.8-cuda12.6@latest\ncompute: {compute}\n"
CHECKED = {"name": "gpus", "size": "Standard_ND96asr_v4", "nodes": {"max": 4}, "fabric_check": True}


def notes(folder: Path, capsys: pytest.CaptureFixture[str], compute: str, **cluster: Any) -> list[str]:
    """The words of a dry run on fabric checks, of a job on a cluster of a stack with these settings."""
    clusters = [{**CHECKED, **cluster}, {"name": "plain", "size": "Standard_ND96asr_v4", "nodes": {"max": 1}}]
    config = {"location": "westeurope", "workspace": "aml-team", "clusters": clusters}
    stack = yaml.safe_dump({"config": {f"amlstack:{key}": value for key, value in config.items()}})
    (folder / "Pulumi.team.yaml").write_text(stack)
    (folder / "train.yml").write_text(JOB.format(name="train", compute=f"azureml:{compute}"))
    main(["rehearse", "train.yml", "--dry-run", "--json", "--yes"])
    answer = json.loads(capsys.readouterr().out)
    return [each["seen"] for each in answer["findings"] if each["code"] == "fabric-check-left-out"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_a_job_that_a_check_holds_back_is_named_with_the_nodes_of_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (seen,) = notes(tmp_path, capsys, "GPUS")
    assert "`train` comes after the fabric check of the cluster `gpus` in the stack `team`" in seen
    assert "4 nodes of Standard_ND96asr_v4" in seen
    (seen,) = notes(tmp_path, capsys, "gpus", fabric_check={"nodes": 1})
    assert "(1 node of" in seen


def test_nothing_is_printed_where_no_check_holds_the_job_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert notes(tmp_path, capsys, "plain") == []
    assert notes(tmp_path, capsys, "gpus", fabric_check=False) == []
