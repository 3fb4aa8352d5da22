"""What the name of an image says, as far as Microsoft's naming is known; nothing of any other image."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.catalog import environments

if TYPE_CHECKING:
    from collections.abc import Mapping

_X64 = ("x64",)
_BASE = re.compile(
    r"mcr\.microsoft\.com/azureml/openmpi(?P<mpi>\d+(?:\.\d+)*)(?:-cuda(?P<cuda>\d+\.\d+))?\b", re.IGNORECASE
)
_CURATED = re.compile(r"mcr\.microsoft\.com/azureml/curated/(?P<name>[^:@]+)", re.IGNORECASE)
_OWN = re.compile(
    r"(?:.*/environments/(?P<long>[^/]+)/versions/|azureml:(?P<short>[^/:@]+):)(?P<version>[^/:@]+)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Image:
    """What is known of an image.

    Attributes:
        name: What to call it.
        architectures: CPUs that it is built for, as sizes write them.
        cuda: CUDA release that it is built with; None where it has none or nobody says.
        torch: PyTorch in it, with the CUDA release that it was compiled for; None where it is not known to have one.
        open_mpi: Open MPI in it; None where it has none or nobody says.
    """

    name: str
    architectures: tuple[str, ...]
    cuda: str | None = None
    torch: str | None = None
    open_mpi: str | None = None


def of(reference: str, known: Mapping[str, str]) -> Image | None:
    """What the environment of a job contains; None where nothing is known of it.

    Args:
        reference: The environment as a job names it.
        known: Images of environments that the stack registers, by `key`.
    """
    if (curated := environments.of(reference)) is not None:
        return _of_curated(curated)
    image = known.get(key(reference) or "")
    return None if image is None else named(image)


def key(reference: str) -> str | None:
    """Name and version of a workspace's environment in small letters, of its id as of its short reference."""
    found = _OWN.fullmatch(reference)
    return f"{found['long'] or found['short']}/{found['version']}".lower() if found else None


def named(image: str) -> Image | None:
    """What an image's own name says: of Azure ML's base images, and of the curated environments' images."""
    if found := _CURATED.match(image):
        curated = environments.get(found["name"])
        return None if curated is None else _of_curated(curated)
    if found := _BASE.match(image):
        return Image(image, _X64, cuda=found["cuda"], open_mpi=found["mpi"])
    return None


def _of_curated(curated: environments.CatalogEnvironment) -> Image:
    inside = curated.contains
    return Image(curated.name, curated.architectures, inside.get("cuda"), inside.get("torch"), inside.get("open_mpi"))
