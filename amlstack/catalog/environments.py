"""Curated environments of Azure ML for training, as far as their names were looked up.

A name is no promise of its content: what the image is really built with stands beside what the name says. Which version
is the newest only the registry knows: the catalogue has one that was there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from amlstack.base import text
from amlstack.catalog.files import rows

if TYPE_CHECKING:
    from datetime import date

SHORT_PREFIX = "azureml-"
_REFERENCE = re.compile(
    r"azureml://registries/azureml/environments/(?P<long>[^/@:]+)(?:/.*)?|(?:azureml:)?(?P<short>azureml-[^/@:]+)(?:[@:].*)?",
    re.IGNORECASE,
)


class CatalogEnvironment(NamedTuple):
    """One curated environment.

    Attributes:
        name: Name in the registry, e.g. ``acpt-pytorch-2.8-cuda12.6``.
        registry: Registry that holds it.
        framework: ``pytorch``, ``tensorflow``, ``sklearn`` or ``lightgbm``.
        framework_version: Version that the name states.
        cuda: CUDA version that the name states; empty for none.
        source: Where it was read, as keys of ``data/sources.json`` followed by the path.
        checked: Day of the copy in which it was read.
        note: What a reader should know besides; may be empty.
        contains: What the newest version is built with: ``torch``, ``cuda``, ``python``, ``os``, ``open_mpi``, …;
            what its definition does not say is left out.
        changed: Last change of its definition; what was registered before may contain something else.
        architectures: CPUs that it is built for, as sizes write them.
        version: One that there is: the tag of its image in the newest vuln-remediation-tracking.md of its definition,
            whose builds are tagged by version; empty where none was found.
    """

    name: str
    registry: str
    framework: str
    framework_version: str
    cuda: str
    source: tuple[str, ...]
    checked: date
    note: str
    contains: Mapping[str, str]
    changed: date
    architectures: tuple[str, ...]
    version: str = ""

    def describe(self) -> str:
        """The contents, e.g. ``torch 2.10.0+cu126, CUDA 12.6, Python 3.10, Ubuntu 22.04``."""
        words = {"cuda": "CUDA ", "python": "Python ", "os": "", "open_mpi": "Open MPI ", "lightgbm": "LightGBM "}
        return ", ".join(f"{words.get(name, f'{name} ')}{version}" for name, version in self.contains.items())

    def version_id(self, version: str) -> str:
        """The asset id of one pinned version."""
        return f"{self._asset}/versions/{version}"

    def label_id(self, label: str = "latest") -> str:
        """The asset id behind a label; what it means changes without notice."""
        return f"{self._asset}/labels/{label}"

    @property
    def _asset(self) -> str:
        return f"azureml://registries/{self.registry}/environments/{self.name}"


class RetiredEnvironment(NamedTuple):
    """A name that a curated environment had once: its definition has left the repository of those that are renewed.

    Attributes:
        name: Name in the registry, without the prefix of the short form.
        source: Where it was read, as keys of ``data/sources.json`` followed by the path.
        checked: Day on which its definition was looked for, and was gone.
        taken: Last day on which Azure was recorded to take the name; None where nobody recorded that.
    """

    name: str
    source: tuple[str, ...]
    checked: date
    taken: date | None

    @property
    def note(self) -> str:
        """A sentence for whoever reads the environment."""
        return f"Retired: it was no curated environment any more on {self.checked.isoformat()}, and is not renewed."


@cache
def _by_name() -> dict[str, CatalogEnvironment]:
    return {row["name"]: CatalogEnvironment(**row) for row in rows("environments")}


def all_environments() -> tuple[CatalogEnvironment, ...]:
    """Every curated environment of the catalogue."""
    return tuple(_by_name().values())


def get(name: str) -> CatalogEnvironment | None:
    """The environment of that name, in any letter case, with or without the ``AzureML-`` of the short form."""
    return _by_name().get(_bare(name))


@cache
def _retired() -> dict[str, RetiredEnvironment]:
    return {row["name"].lower(): RetiredEnvironment(**row) for row in rows("retired_environments")}


def retired(name: str) -> RetiredEnvironment | None:
    """The retired environment of that name, in any letter case, with or without the ``AzureML-`` of the short form."""
    return _retired().get(_bare(name))


def successors(name: str) -> tuple[str, ...]:
    """Names of the curated environments of today with the framework of a retired one, e.g. ``sklearn-1.5``."""
    framework = _bare(name).partition("-")[0]
    return tuple(each for each in _by_name() if each.partition("-")[0] == framework)


def curated(reference: str) -> CatalogEnvironment | None:
    """The curated environment that a job's reference names, in any of Azure ML's forms; None for every other one.

    ``azureml://registries/azureml/environments/NAME/versions/V``, ``…/labels/latest``, ``azureml:AzureML-NAME@latest``.
    A workspace's own environment may bear any name, that of a curated one too, and is none.
    """
    found = _REFERENCE.fullmatch(reference.strip())
    return get(found["long"] or found["short"]) if found else None


def near(name: str, n: int = 3) -> tuple[str, ...]:
    """Names that somebody who wrote ``name`` may have meant, best first."""
    return text.near(_bare(name), _by_name(), n)


def _bare(name: str) -> str:
    return name.lower().removeprefix(SHORT_PREFIX)
