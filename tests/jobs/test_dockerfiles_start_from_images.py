"""The image that a Dockerfile starts from, held against the size of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jobs
from jobs.planning.program_checks import Start, start
from jobs.values import Source
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

OLD = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel"
RTX = "Standard_NC144ds_xl_RTXPRO6000BSE_v6"


@for_each(
    "text, found",
    [
        (f"FROM {OLD}\nRUN apt-get update && apt-get install -y git\n", Start(OLD, installs=False)),
        (f"# syntax\nfrom {OLD}\nRUN pip install wandb\n", Start(OLD, installs=False)),
        (f"FROM {OLD}\nRUN pip install 'torch==2.9.0'\n", Start(OLD, installs=True)),
        (f"FROM {OLD}\nRUN pip install \\\n  -r requirements.txt\n", Start(OLD, installs=True)),
        (f"FROM {OLD}\nRUN conda env update -f env.yml\n", Start(OLD, installs=True)),
        (f"FROM {OLD}\nRUN pip install .\n", Start(OLD, installs=True)),
        (f"ARG BASE={OLD}\nFROM $BASE\n", Start(OLD, installs=False)),
        ('ARG V="12.4.1"\nFROM nvidia/cuda:${V}-base\nARG V=1\n', Start("nvidia/cuda:12.4.1-base", installs=False)),
        ("FROM nvidia/cuda:${V:-12.6.0}-base\n", Start("nvidia/cuda:12.6.0-base", installs=False)),
        ("ARG BASE\nFROM ${BASE}\n", None),
        (f"FROM --platform=linux/amd64 {OLD} AS base\nFROM base\n", Start(OLD, installs=False)),
        (f"FROM {OLD} AS base\nRUN pip install torch\nFROM base AS last\n", Start(OLD, installs=True)),
        (f"FROM python:3.11 AS build\nRUN pip install torch\nFROM {OLD}\n", Start(OLD, installs=False)),
        ("RUN echo\n", None),
        ("", None),
    ],
)
def test_a_dockerfile_starts_from_the_image_of_its_last_stage(text: str, found: Start | None) -> None:
    assert start(text) == found


@for_each(
    "text, size, says",
    [
        (
            f"FROM {OLD}\n",
            RTX,
            f"{OLD} has PyTorch 2.5.1 for CUDA 12.4, which is built without compute capability 12.0",
        ),
        (f"FROM {OLD}\n", "Standard_ND96isr_H100_v5", None),
        (f"FROM {OLD}\nRUN pip install torch==2.9.0\n", RTX, None),
        (f"FROM {OLD}\nRUN pip install torch\n", "Standard_ND96isr_MI300X_v5", "built for CUDA"),
        ("FROM rocm/pytorch:rocm6.2\n", "Standard_ND96isr_H100_v5", "built for ROCm"),
        ("FROM nvcr.io/nvidia/pytorch:25.03-py3\n", "Standard_ND40rs_v2", "supports compute capability 7.5 and later"),
        ("FROM python:3.11\n", RTX, None),
        (f"FROM {OLD}\n", "Standard_NC24r", None),  # retired, which is a finding of its own
        (None, RTX, None),
    ],
)
def test_the_image_of_a_build_context_is_judged_on_the_nodes(
    tmp_path: Path, text: str | None, size: str, says: str | None
) -> None:
    (tmp_path / "docker").mkdir()
    if text is not None:
        (tmp_path / "docker/Dockerfile").write_text(text)
    environment = jobs.Environment(build=jobs.Build(path="docker"))
    job = jobs.Job(command="python t.py", environment=environment, instance_type=size)

    plan = jobs.plan(job, source=Source(base=tmp_path))

    found = [str(finding) for finding in plan.findings if finding.code == "image-cannot-run-here"]
    assert [says] == [says for each in found if says in each] if says else found == []
