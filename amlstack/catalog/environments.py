"""Curated environments of Azure ML for training, as far as their names were looked up.

A name is no promise of its content, and live version numbers are known only to the registry: look one up once, pin it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from amlstack.base import near_misses
from amlstack.catalog.files import day, load

if TYPE_CHECKING:
    from datetime import date

SHORT_PREFIX = "azureml-"


@dataclass(frozen=True, slots=True)
class CatalogEnvironment:
    """One curated environment.

    Attributes:
        name: Name in the registry, e.g. ``acpt-pytorch-2.8-cuda12.6``.
        registry: Registry that holds it.
        framework: ``pytorch``, ``tensorflow``, ``sklearn`` or ``lightgbm``.
        framework_version: Version that the name states.
        cuda: CUDA version that the name states; empty for none.
        source: Where it was read, as keys of ``data/sources.json`` followed by the path.
        checked: Month in which it was read, as its first day.
        note: What a reader should know besides; may be empty.
    """

    name: str
    registry: str
    framework: str
    framework_version: str
    cuda: str
    source: tuple[str, ...]
    checked: date
    note: str

    def version_id(self, version: str) -> str:
        """The asset id of one pinned version."""
        return f"{self._asset}/versions/{version}"

    def label_id(self, label: str = "latest") -> str:
        """The asset id behind a label; what it means changes without notice."""
        return f"{self._asset}/labels/{label}"

    @property
    def _asset(self) -> str:
        return f"azureml://registries/{self.registry}/environments/{self.name}"


@cache
def _by_name() -> dict[str, CatalogEnvironment]:
    return {
        row["name"]: CatalogEnvironment(**{**row, "source": tuple(row["source"]), "checked": day(row["checked"])})
        for row in load("environments")
    }


def all_environments() -> tuple[CatalogEnvironment, ...]:
    """Every curated environment of the catalogue."""
    return tuple(_by_name().values())


def get(name: str) -> CatalogEnvironment | None:
    """The environment of that name, in any letter case, with or without the ``AzureML-`` of the short form."""
    return _by_name().get(_bare(name))


def near(name: str, n: int = 3) -> tuple[str, ...]:
    """Names that somebody who wrote ``name`` may have meant, best first."""
    return near_misses.near(_bare(name), _by_name(), n)


def _bare(name: str) -> str:
    return name.lower().removeprefix(SHORT_PREFIX)
