"""Rules on the environment of a job: where it comes from, and what its image runs on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.catalog.images import runs_on, version
from policies.checks.rule import Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.catalog.images import Image
    from amlstack.catalog.sizes import Size

ENVIRONMENT_SOURCE_RULE = Rule(
    "environment-approved",
    "Environments come from approved registries.",
    settings=(
        Setting("registries", "array", "Approved Azure ML registries, e.g. azureml."),
        Setting("images", "array", "Approved container registries, e.g. mcr.microsoft.com."),
    ),
)


_REGISTRY = re.compile(r"azureml://registries/(?P<name>[^/]+)/", re.IGNORECASE)
_CURATED = re.compile(r"(?:azureml:)?AzureML-", re.IGNORECASE)


def check_environment_source(
    environment: str, *, registries: Sequence[str] | None, where: str = "environment"
) -> Finding | None:
    """Judge where a job's environment comes from.

    Args:
        environment: Its id or reference.
        registries: Approved Azure ML registries; None or none at all for no bound.
        where: Its path in the declaration.
    """
    found = _REGISTRY.match(environment)
    source = found["name"] if found else "azureml" if _CURATED.match(environment) else None
    return _unless_approved("The environment", "an Azure ML registry", source, registries, where)


def check_environment_source_image(image: str, *, images: Sequence[str] | None, where: str = "image") -> Finding | None:
    """Judge where an environment's image comes from.

    Args:
        image: The image's reference.
        images: Approved container registries, e.g. ``mcr.microsoft.com``; None or none at all for no bound.
        where: Its path in the declaration.
    """
    host, slash, _ = image.partition("/")
    # As Docker reads it: the first part is a host only when it looks like one.
    is_host = bool(slash) and ("." in host or ":" in host or host == "localhost")
    return _unless_approved("The image", "a container registry", host if is_host else "docker.io", images, where)


def _unless_approved(
    what: str, kind: str, source: str | None, approved: Sequence[str] | None, where: str
) -> Finding | None:
    if not approved or source is None or source.lower() in {name.lower() for name in approved}:
        return None
    return Finding(
        ENVIRONMENT_SOURCE_RULE.code,
        where,
        seen=f"{what} comes from {source}",
        rule=f"It comes from {kind} that the team approved",
        remedy=f"Approved: {', '.join(approved)}",
    )


ENVIRONMENT_PIN_RULE = Rule("environment-pinned", "Environments and images are pinned.", level="advisory")


_PINNED = re.compile(r"(/versions/[^/]+|:[^:/@]+)$")


def check_environment_pin(environment: str, *, where: str = "environment") -> Finding | None:
    """Judge the reference of an environment.

    Args:
        environment: Its id or reference: ``…/versions/7``, ``azureml:NAME:7``, ``azureml:NAME@latest``.
        where: Its path in the declaration.
    """
    if "@" not in environment and _PINNED.search(environment.removeprefix("azureml:")):
        return None
    return Finding(
        ENVIRONMENT_PIN_RULE.code,
        where,
        seen=f"The environment is {environment}",
        rule="An environment is named by its version: what a label means changes without notice",
        remedy="Look the version up once and write it (…/versions/N, azureml:NAME:N)",
    )


def check_environment_pin_image(image: str, *, where: str = "image") -> Finding | None:
    """Judge the reference of an image.

    Args:
        image: The image's reference.
        where: Its path in the declaration.
    """
    # The text after the colon of a digest is no `latest` either.
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag and tag.lower() != "latest":
        return None
    return Finding(
        ENVIRONMENT_PIN_RULE.code,
        where,
        seen=f"The image is {image}",
        rule="An image is named by a digest, or by a tag other than latest",
        remedy="Write NAME@sha256:… or a tag that is not moved",
    )


IMAGE_RUNS_RULE = Rule("image-cannot-run-here", "A job's image runs on the nodes that the job gets.")

_OPENIB = re.compile(r"btl(?:\s+|=)[\"']?[\w,^]*openib|btl_openib_\w+")
_VARIABLE = "OMPI_MCA_btl"


def check_image_runs(
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
        found.append(
            Finding(IMAGE_RUNS_RULE.code, where, seen=seen, rule="A job's image must run on its nodes", remedy=remedy)
        )
    set_by = [f"{name}={value}" for name, value in (variables or {}).items() if _old_transport(name, value)]
    words = [found[0] for found in _OPENIB.finditer(command)] + set_by
    if words and (image.open_mpi or "").startswith("5"):
        seen = f"`{words[0]}` with {image.name}, which has Open MPI {image.open_mpi}"
        rule = "Open MPI 5 has no openib transport, and mpirun ends where one is asked for"
        found.append(
            Finding(IMAGE_RUNS_RULE.code, where, seen=seen, rule=rule, remedy="Leave it out: UCX carries InfiniBand")
        )
    return tuple(found)


def _unfit(image: Image, size: Size) -> str:
    """The mismatch between the image and the size; empty for none."""
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
    if image.least is not None and version(capability) < version(image.least):
        return f"{image.name} supports compute capability {image.least} and later, and {chip} ({capability})"
    if image.cuda is None:
        return ""
    if image.build is not None and runs_on(image.build, image.cuda, capability) is False:
        built = f"PyTorch {image.build} for CUDA {image.cuda}"
        return f"{image.name} has {built}, which is built without compute capability {capability}, and {chip}"
    if image.torch is not None and not size.gpu.builds_for(image.cuda):
        need = f"compute capability {size.gpu.compute_capability}: CUDA {size.gpu.cuda_from}"
        until = f" to {size.gpu.cuda_until}" if size.gpu.cuda_until else " or later"
        return f"{image.name} has PyTorch {image.torch} for CUDA {image.cuda}, and {chip} ({need}{until})"
    return ""


def _old_transport(name: str, value: object) -> bool:
    return name.startswith(f"{_VARIABLE}_openib_") or (name == _VARIABLE and "openib" in str(value))
