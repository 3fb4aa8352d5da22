"""Five teams with three stacks each, in one repository."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from tests.support import yaml_files

if TYPE_CHECKING:
    from pathlib import Path

TEAMS = ("alfa", "bravo", "charlie", "delta", "echo")
STACKS = tuple(sorted(f"{team}-{stage}" for team in TEAMS for stage in ("dev", "test", "prod")))
JOB = {
    "name": "hello",
    "command": "true",
    "environment": "azureml:plain",
    "compute": "azureml:gpu",
    "resources": {"instance_count": 1},
}
IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"


def declare(root: Path, stack: str, nodes: int) -> None:
    """The settings of a stack, made from those that `init` wrote."""
    content: dict[str, Any] = yaml_files.load((root / "Pulumi.dev.yaml").read_text("utf-8"))["config"]
    content["amlstack:workspace"] = {"name": f"aml-{stack}", "public_network": True}
    content["amlstack:clusters"][0]["nodes"] = {"min": 0, "max": nodes}
    content["amlstack:environments"] = [{"name": "plain", "image": IMAGE}]
    content["amlstack:jobs"] = [f"teams/{stack.partition('-')[0]}/hello.yml"]
    (root / f"Pulumi.{stack}.yaml").write_text(yaml_files.dump({"config": content}), "utf-8")


def filled(root: Path) -> None:
    """The files that five teams put into the repository that `init` made."""
    for stack in STACKS:
        declare(root, stack, 2)
    for team in TEAMS:
        (root / "teams" / team / "code").mkdir(parents=True)
        (root / "teams" / team / "code" / "train.py").write_text("print(1)\n")
        (root / "teams" / team / "hello.yml").write_text(yaml_files.dump({**JOB, "code": "code"}))
    (root / "Pulumi.dev.yaml").unlink()
    shutil.rmtree(root / "workloads")
