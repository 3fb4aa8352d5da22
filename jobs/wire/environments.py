"""An inline environment as the properties of an environment version, as azure-ai-ml would register it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from jobs.model.values import Environment


def conda_text(environment: Environment, base: Path) -> str | None:
    """The conda specification as text with sorted keys, so that the same content has the same hash.

    Args:
        environment: The environment.
        base: Folder that its conda file's path starts from.

    Raises:
        OSError: If the file cannot be read; `jobs.plan` says so before.
    """
    import yaml  # noqa: PLC0415 - few jobs have a conda file, and yaml is a tenth of the time to import jobs

    conda = environment.conda_file
    if isinstance(conda, str):
        conda = yaml.safe_load((base / conda).read_text(encoding="utf-8-sig"))
    return None if not conda else str(yaml.dump(conda, sort_keys=True, default_flow_style=False))


def environment_properties(environment: Environment, base: Path, *, context_uri: str | None = None) -> dict[str, Any]:
    """Properties of the environment version that an inline environment becomes.

    Args:
        environment: The environment.
        base: Folder that its paths start from.
        context_uri: Where its build context was uploaded; None leaves the path as written.
    """
    build = environment.build
    properties = {
        "condaFile": conda_text(environment, base),
        "image": environment.image,
        "build": None
        if build is None
        else {
            key: value
            for key, value in (("contextUri", context_uri or build.path), ("dockerfilePath", build.dockerfile_path))
            if value is not None
        },
        "osType": environment.os_type,
        "tags": environment.tags or None,
        "description": environment.description or None,
        "properties": environment.properties or None,
        "inferenceConfig": _routes(environment.inference_config),
        "isAnonymous": True,
        "isArchived": False,
    }
    return {key: value for key, value in properties.items() if value is not None}


def _routes(config: dict[str, Any] | None) -> dict[str, Any] | None:
    if not config:
        return None
    names = {"liveness_route": "livenessRoute", "scoring_route": "scoringRoute", "readiness_route": "readinessRoute"}
    return {names.get(key, key): value for key, value in config.items()}
