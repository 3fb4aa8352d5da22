"""What runs today runs tomorrow."""

from __future__ import annotations

import re

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule

RULE = Rule(
    code="environment-pinned",
    title="Environments and images are pinned.",
    what=(
        "Flags an environment named by a label (`@latest`, `labels/latest`) or without a version, and an image "
        "without a tag, with the tag `latest`, and without a digest."
    ),
    why=(
        "What `latest` means changes without notice: the same job trains with another PyTorch and another NCCL "
        "next week, although no file has changed."
    ),
    example=job(environmentId="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest"),
    instead=job(),
    level="advisory",
    not_exported=NO_JOB,
)


_PINNED = re.compile(r"(/versions/[^/]+|:[^:/@]+)$")


def check(environment: str, *, where: str = "environment") -> Finding | None:
    """Judge the reference of an environment.

    Args:
        environment: Its id or reference: ``…/versions/7``, ``azureml:NAME:7``, ``azureml:NAME@latest``.
        where: Its path in the declaration.
    """
    if "@" not in environment and _PINNED.search(environment.removeprefix("azureml:")):
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"The environment is {environment}",
        rule="An environment is named by its version: what a label means changes without notice",
        remedy="Look the version up once and write it (…/versions/N, azureml:NAME:N)",
    )


def check_image(image: str, *, where: str = "image") -> Finding | None:
    """Judge the reference of an image.

    Args:
        image: The image's reference.
        where: Its path in the declaration.
    """
    # What follows the colon of a digest is no `latest` either.
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag and tag.lower() != "latest":
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"The image is {image}",
        rule="An image is named by a digest, or by a tag other than latest",
        remedy="Write NAME@sha256:… or a tag that is not moved",
    )
