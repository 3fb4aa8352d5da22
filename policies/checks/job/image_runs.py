"""An image must be one that the nodes can run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.catalog import gpus, torch_builds
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.catalog.images import Image
    from amlstack.catalog.sizes import Size

RULE = Rule(
    code="image-cannot-run-here",
    title="A job's image runs on the nodes that the job gets.",
    what=(
        "Compares what a job's image contains with its size: the CPU that it is built for, the GPU's vendor, and the "
        "CUDA release that its PyTorch was compiled for with the compute capability of the GPU. Beside that it refuses "
        "settings of the `openib` transport in an image with Open MPI 5, which has no such transport. Curated "
        "environments and Azure ML's base images are known by what they are really built with, not by what their names "
        "say (`amlstack environments list`). Public images are read by their names: CUDA or ROCm, PyTorch's own images "
        "and their tables of compute capabilities, NVIDIA's releases, and the image that a build context's Dockerfile "
        "starts from. PyTorch that is installed on top is not judged, nor what no maker documents."
    ),
    why=(
        "A container for x64 does not start on Grace CPUs, which are Arm. PyTorch that was compiled for an older CUDA "
        "holds no code for a newer GPU: it finds the device and ends with `no kernel image is available`. On AMD GPUs "
        "a CUDA build finds no GPU at all and trains on the CPU, at the price of the GPUs. All of it shows only when "
        "the nodes are there."
    ),
    example=job(
        resources="{instanceType: Standard_ND128isr_NDR_GB200_v6, instanceCount: 2, shmSize: 450g}",
        distribution="{distributionType: PyTorch, processCountPerInstance: 4}",
    ),
    instead=job(),
    not_exported=NO_JOB,
)

_OPENIB = re.compile(r"btl(?:\s+|=)[\"']?[\w,^]*openib|btl_openib_\w+")
_VARIABLE = "OMPI_MCA_btl"


def check(
    image: Image,
    size: Size | None,
    *,
    command: str = "",
    variables: Mapping[str, object] | None = None,
    where: str = "environment",
) -> tuple[Finding, ...]:
    """Judge an image on a size.

    Args:
        image: What is known of it.
        size: The size of the nodes; None where it is not known.
        command: The job's command line.
        variables: Its environment variables.
        where: Path of the environment in the declaration.
    """
    found = []
    if size is not None and (seen := _unfit(image, size)):
        remedy = "Name an environment of your own whose image is built for them, or another size"
        found.append(Finding(RULE.code, where, seen=seen, rule="A job's image must run on its nodes", remedy=remedy))
    set_by = [f"{name}={value}" for name, value in (variables or {}).items() if _old_transport(name, value)]
    words = [found[0] for found in _OPENIB.finditer(command)] + set_by
    if words and (image.open_mpi or "").startswith("5"):
        seen = f"`{words[0]}` with {image.name}, which has Open MPI {image.open_mpi}"
        rule = "Open MPI 5 has no openib transport, and mpirun ends where one is asked for"
        found.append(Finding(RULE.code, where, seen=seen, rule=rule, remedy="Leave it out: UCX carries InfiniBand"))
    return tuple(found)


def _unfit(image: Image, size: Size) -> str:
    """What of the image does not go with the size; empty for nothing."""
    if image.architectures and size.architecture not in image.architectures:
        return f"{image.name} is built for {', '.join(image.architectures)}, and {size.name} is {size.architecture}"
    if size.gpu is None:
        return ""
    chip = f"{size.name} has {size.gpu.model} GPUs"
    if image.vendor not in (None, size.gpu.vendor):
        platform = "CUDA" if image.vendor == "NVIDIA" else "ROCm"
        return f"{image.name} is built for {platform}, and {chip} of {size.gpu.vendor}"
    capability = size.gpu.compute_capability
    if capability is None:
        return ""
    if image.least is not None and gpus.version(capability) < gpus.version(image.least):
        return f"{image.name} supports compute capability {image.least} and later, and {chip} ({capability})"
    if image.cuda is None:
        return ""
    if image.build is not None and torch_builds.runs_on(image.build, image.cuda, capability) is False:
        built = f"PyTorch {image.build} for CUDA {image.cuda}"
        return f"{image.name} has {built}, which is built without compute capability {capability}, and {chip}"
    if image.torch is not None and not size.gpu.builds_for(image.cuda):
        need = f"compute capability {size.gpu.compute_capability}: CUDA {size.gpu.cuda_from}"
        until = f" to {size.gpu.cuda_until}" if size.gpu.cuda_until else " or later"
        return f"{image.name} has PyTorch {image.torch} for CUDA {image.cuda}, and {chip} ({need}{until})"
    return ""


def _old_transport(name: str, value: object) -> bool:
    return name.startswith(f"{_VARIABLE}_openib_") or (name == _VARIABLE and "openib" in str(value))
