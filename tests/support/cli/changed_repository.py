"""A repository with two stacks and jobs of every kind, for the tests of what changes touch."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: aml
  amlstack:policies: policies.json
  amlstack:clusters:
    - {name: big, size: Standard_ND96asr_v4, nodes: {max: 2}}
    - {name: small, size: Standard_ND96asr_v4, nodes: {max: 5}}
    - include: clusters/*.yml
  amlstack:environments:
    - {name: own, image: "img:1", conda: envs/own.yml}
    - {name: other, image: "img:1"}
  amlstack:data:
    - {name: tokens, path: data/tokens}
  amlstack:jobs:
    - train/job.yml
    - file: pipe/pipeline.yml
    - python/job.py
"""
JOB = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
command: python train.py --data ${{inputs.data}} --raw ${{inputs.raw}}
code: code
environment: azureml:own
compute: azureml:big
inputs:
  data: {type: uri_folder, path: "azureml:tokens@latest"}
  raw: {type: uri_folder, path: raw}
"""
PIPELINE = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
settings: {default_compute: azureml:included}
jobs:
  one: {type: command, component: parts/one.yml}
"""
COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: one
version: "1"
command: python one.py
code: ../steps
environment:
  image: img:1
  conda_file: ../conda.yml
"""
PYTHON = """\
import json
from pathlib import Path
from jobs import Code, Job
from shared.common import COMMAND
job = Job(
    name="py",
    command=COMMAND,
    code=Code(path="src", includes=("../along",)),
    environment="azureml:other",
    compute="small",
    nodes=json.loads((Path(__file__).parent / "shape.json").read_text())["nodes"],
)
"""
FILES = {
    ".gitignore": "*.ignored\n",
    "Pulumi.yaml": "name: p\nruntime: python\n",
    "Pulumi.prod.yaml": SETTINGS,
    "Pulumi.dev.yaml": "config:\n  amlstack:location: westeurope\n  amlstack:workspace: dev\n",
    "policies.json": "{}",
    "clusters/more.yml": "- {name: included, size: Standard_ND96asr_v4, nodes: {max: 2}}\n",
    "envs/own.yml": "dependencies: [python=3.10]\n",
    "data/tokens/a.txt": "1",
    "train/job.yml": JOB,
    "train/code/train.py": "print(1)\n",
    "train/code/.amlignore": "notes\n",
    "train/code/notes/n.txt": "1",
    "train/raw/a.txt": "1",
    "pipe/pipeline.yml": PIPELINE,
    "pipe/parts/one.yml": COMPONENT,
    "pipe/steps/one.py": "print(1)\n",
    "pipe/conda.yml": "dependencies: [python=3.10]\n",
    "python/job.py": PYTHON,
    "python/src/train.py": "print(1)\n",
    "python/src/second_job.yml": JOB,
    "python/shape.json": '{"nodes": 1}',
    "python/shared/__init__.py": "",
    "python/shared/common.py": "from shared.deeper import COMMAND\n",
    "python/shared/deeper.py": 'COMMAND = "python train.py"\n',
    "along/lib.py": "x = 1\n",
    "unlisted/job.yml": JOB,
    "infra/__main__.py": "",
    "README.md": "hello\n",
}
TRAIN, PIPE, PY = "train/job.yml", "pipe/pipeline.yml", "python/job.py"


def git(folder: Path, *words: str) -> str:
    identity = (
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "init.defaultBranch=main",
    )
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "one", "--allow-empty")
    return git(folder, "rev-parse", "HEAD")


def touched(survey: Any) -> dict[str, str]:
    """Job file → its first reason."""
    return {job["file"]: job["reasons"][0] for job in survey["jobs"]}


def edited(text: str) -> Callable[[Path], None]:
    """A change of one file: ``NAME``, ``NAME: OLD -> NEW``, or ``-NAME`` for its deletion."""

    def change(folder: Path) -> None:
        name, _, how = text.partition(": ")
        if name.startswith("-"):
            (folder / name[1:]).unlink()
        elif how:
            old, _, new = how.partition(" -> ")
            content = (folder / name).read_text()
            assert old in content
            write(folder, name, content.replace(old, new.replace("\\n", "\n")))
        else:
            before = (folder / name).read_text() if (folder / name).exists() else ""
            write(folder, name, f"{before}\n")

    return change
