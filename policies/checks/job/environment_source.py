"""Only images from sources that the team has approved."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

RULE = Rule(
    code="environment-approved",
    title="Environments come from approved registries.",
    what=(
        "Refuses a job whose environment is of an Azure ML registry that is not approved, and an environment "
        "whose image comes from another container registry. An image named without a registry is Docker Hub's "
        "(`docker.io`). Environments of the workspace itself are judged where they are registered. Silent until "
        "registries are configured."
    ),
    why=("An image runs with the job's identity on every node: what it contains reads the data and leaves with it."),
    example=job(environmentId="azureml://registries/someone/environments/pytorch/versions/7"),
    instead=job(),
    settings=(
        Setting("registries", "array", "Approved Azure ML registries, e.g. azureml."),
        Setting("images", "array", "Approved container registries, e.g. mcr.microsoft.com."),
    ),
    sample={"registries": ["azureml"], "images": ["mcr.microsoft.com"]},
    not_exported=NO_JOB,
)


_REGISTRY = re.compile(r"azureml://registries/(?P<name>[^/]+)/", re.IGNORECASE)
_CURATED = re.compile(r"(?:azureml:)?AzureML-", re.IGNORECASE)


def check(environment: str, *, registries: Sequence[str] | None, where: str = "environment") -> Finding | None:
    """Judge where a job's environment comes from.

    Args:
        environment: Its id or reference.
        registries: Approved Azure ML registries; None or none at all for no bound.
        where: Its path in the declaration.
    """
    found = _REGISTRY.match(environment)
    source = found["name"] if found else "azureml" if _CURATED.match(environment) else None
    return _unless_approved("The environment", "an Azure ML registry", source, registries, where)


def check_image(image: str, *, images: Sequence[str] | None, where: str = "image") -> Finding | None:
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
        RULE.code,
        where,
        seen=f"{what} comes from {source}",
        rule=f"It comes from {kind} that the team approved",
        remedy=f"Approved: {', '.join(approved)}",
    )
