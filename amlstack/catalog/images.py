"""What is known of the image of an environment: of the curated ones, of Azure ML's bases, of public images by name."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from amlstack.catalog import environments, image_names

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
        architectures: CPUs that it is built for, as sizes write them; empty where nobody says.
        cuda: CUDA release that it is built with; None where it has none or nobody says.
        torch: PyTorch in it, with the CUDA release that it was compiled for; None where it is not known to have one.
        open_mpi: Open MPI in it; None where it has none or nobody says.
        vendor: For whose GPUs it is built, ``NVIDIA`` or ``AMD``; None where nobody says.
        build: Release of PyTorch where it is PyTorch's own build for ``cuda``.
        least: Least compute capability that its makers support; None where nobody says.
    """

    name: str
    architectures: tuple[str, ...]
    cuda: str | None = None
    torch: str | None = None
    open_mpi: str | None = None
    vendor: str | None = None
    build: str | None = None
    least: str | None = None

    def without_framework(self) -> Image:
        """The same where another PyTorch may be installed in it."""
        return replace(self, torch=None, build=None, least=None)

    def under_conda(self) -> Image:
        """The same under a conda environment of its own, whose packages run instead of the image's."""
        return replace(self.without_framework(), vendor=None)


class Registered(NamedTuple):
    """The image of an environment that the stack registers, and whether a conda environment lies on top."""

    image: str
    conda: bool = False


def of(reference: str, known: Mapping[str, Registered]) -> Image | None:
    """What the environment of a job contains; None where nothing is known of it.

    Args:
        reference: The environment as a job names it.
        known: Images of environments that the stack registers, by `key`.
    """
    if (curated := environments.of(reference)) is not None:
        return _of_curated(curated)
    registered = known.get(key(reference) or "")
    image = None if registered is None else named(registered.image)
    return image.under_conda() if image is not None and registered is not None and registered.conda else image


def key(reference: str) -> str | None:
    """Name and version of a workspace's environment in small letters, of its id as of its short reference."""
    found = _OWN.fullmatch(reference)
    return f"{found['long'] or found['short']}/{found['version']}".lower() if found else None


def named(image: str) -> Image | None:
    """What an image's own name says."""
    if found := _CURATED.match(image):
        curated = environments.get(found["name"])
        return None if curated is None else _of_curated(curated)
    if found := _BASE.match(image):
        cuda = found["cuda"]
        return Image(image, _X64, cuda=cuda, open_mpi=found["mpi"], vendor="NVIDIA" if cuda else None)
    if (documented := image_names.read(image)) is not None:
        return Image(
            image, (), documented.cuda, vendor=documented.vendor, build=documented.torch, least=documented.least
        )
    return None


def _of_curated(curated: environments.CatalogEnvironment) -> Image:
    inside = curated.contains
    cuda = inside.get("cuda")
    return Image(
        curated.name,
        curated.architectures,
        cuda,
        inside.get("torch"),
        inside.get("open_mpi"),
        vendor="NVIDIA" if cuda else None,
    )
