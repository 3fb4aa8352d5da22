"""Environments that jobs refer to by name."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from infra.settings.model.base import EnvironmentName, SettingsModel, name_of, or_named

CURATED_TAG, CUSTOM_TAG = "\0curated", "\0custom"
"""What pydantic puts into the paths of its errors inside an environment; no key of a YAML file can look like it."""


class CuratedEnvironment(SettingsModel):
    """A curated environment, referred to and never registered; a bare string is its name."""

    curated: EnvironmentName = Field(description="Name in the `azureml` registry, e.g. acpt-pytorch-2.8-cuda12.6.")
    version: Annotated[str, name_of(r"^\d+\Z")] | None = Field(
        None, description="Its version, which pins it; label `latest` when absent."
    )


class CustomEnvironment(SettingsModel):
    """An environment that is registered in the workspace under a version made from its content."""

    name: EnvironmentName = Field(description="Name under which jobs refer to it.")
    image: str = Field(min_length=1, description="Docker image that it builds on.")
    conda: str | None = Field(None, description="Conda file, a path in the project.")


def _kind(value: Any) -> str:
    has_curated = isinstance(value, CuratedEnvironment) or (isinstance(value, dict) and "curated" in value)
    return CURATED_TAG if has_curated else CUSTOM_TAG


Environment = Annotated[
    Annotated[CuratedEnvironment, Tag(CURATED_TAG)] | Annotated[CustomEnvironment, Tag(CUSTOM_TAG)],
    Discriminator(_kind),
    or_named("curated", CuratedEnvironment | CustomEnvironment),
]
