"""Images of environments: CUDA, PyTorch and framework versions by name, and the GPUs that they run on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from amlstack.catalog import environments
from amlstack.catalog.files import rows

if TYPE_CHECKING:
    from datetime import date


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU model.

    Attributes:
        model: As sizes name it, e.g. ``H100``.
        vendor: ``NVIDIA`` or ``AMD``.
        compute_capability: E.g. ``9.0``; None where CUDA does not apply.
        cuda_from: First CUDA release whose programs run on it; None where CUDA does not apply. Code for a compute
            capability runs on later ones of the same major number.
        cuda_until: Last one that does; None while none has dropped it.
        source: Where it was read, as keys of ``data/sources.json``.
        checked: Month of that, as its first day.
        note: What a reader should know besides; may be empty.
    """

    model: str
    vendor: str
    compute_capability: str | None
    cuda_from: str | None
    cuda_until: str | None
    source: tuple[str, ...]
    checked: date
    note: str

    def builds_for(self, cuda: str) -> bool | None:
        """True where that CUDA release (``12.6``) builds code that runs on this GPU; None where CUDA does not apply."""
        if self.cuda_from is None:
            return None
        asked = version(cuda)
        return version(self.cuda_from) <= asked and (self.cuda_until is None or asked <= version(self.cuda_until))


def get(model: str) -> Gpu | None:
    """The GPU of that name as sizes write it."""
    return by_model().get(model)


def version(text: str) -> tuple[int, int]:
    """Major and minor of a version such as ``12.6`` or ``12.6.1``; a missing minor is 0."""
    major, _, rest = text.partition(".")
    return int(major), int(rest.partition(".")[0] or 0)


@cache
def by_model() -> dict[str, Gpu]:
    """Every GPU of the catalogue by its model."""
    return {row["model"]: Gpu(**row) for row in rows("gpus")}


def runs_on(torch: str, cuda: str, capability: str) -> bool | None:
    """True where a build that PyTorch publishes has code for a GPU; None where no table speaks of the build.

    Code for a capability runs on later ones of the same major number, PTX on all later ones.

    Args:
        torch: Release, e.g. ``2.9.1``.
        cuda: CUDA release of the build, e.g. ``12.6``.
        capability: The GPU's, e.g. ``10.0``.
    """
    asked, gpu = version(torch), version(capability)
    for row in rows("torch_builds"):
        if not version(row["torch_from"]) <= asked <= version(row["torch_until"]):
            continue
        if row["cuda"] is None:
            return None if gpu <= version(row["highest"]) else False
        if version(row["cuda"]) == version(cuda):
            built = [version(each) for each in row["capabilities"]]
            native = any(each[0] == gpu[0] and each <= gpu for each in built)
            return native or (row["ptx"] is not None and version(row["ptx"]) <= gpu)
    return None


def of_release(release: str) -> tuple[str | None, str | None]:
    """CUDA of a release of NVIDIA's framework images (``24.05``), and the least capability that it supports.

    Each is None where no release notes that were read say it; a least capability holds for later releases too.
    """
    asked = version(release)
    releases = rows("ngc_releases")  # the oldest first
    cuda = next((row["cuda"] for row in releases if version(row["release"]) == asked), None)
    least = [row["least"] for row in releases if row["least"] is not None and version(row["release"]) <= asked]
    return cuda, least[-1] if least else None


# Patterns of names are compiled when an image is read: most starts of a process read none.
_DIGEST = r"@sha256:.*$"
_TAGGED = r"(?P<repository>.+?)(?::(?P<tag>[^/:]+))?"
_CUDA = r"(?i)(?<![a-z0-9])cuda[-_]?(\d+)(?:\.(\d+))?"
_SHORT = r"(?i)(?<![a-z0-9])cu(\d{2})(\d)(?!\d)"
_ROCM = r"(?i)(?<![a-z0-9])rocm(?![a-z])"
_LEADING = r"(\d+\.\d+)"
_TORCH = r"(\d+\.\d+(?:\.\d+)?)-cuda(\d+\.\d+)"
_RELEASE = r"(\d{2}\.\d{2})(?!\d)"
_NGC = "nvcr.io/nvidia/"
_OF_CUDA = ("nvidia/cuda", "nvcr.io/nvidia/cuda")
_OF_TORCH = "pytorch/pytorch"
_DOCKER_HUB = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")


def read(image: str) -> Image | None:
    """The facts that an image's name states; None where it says nothing of GPUs, or of both vendors'."""
    found = re.fullmatch(_TAGGED, re.sub(_DIGEST, "", image.strip()))
    if found is None:
        return None
    repository, tag = found["repository"].lower(), found["tag"] or ""
    for prefix in _DOCKER_HUB:
        repository = repository.removeprefix(prefix)
    if repository in _OF_CUDA:
        leading = re.match(_LEADING, tag)
        return Image(image, cuda=leading[1] if leading else None, vendor="NVIDIA")
    if repository == _OF_TORCH and (built := re.match(_TORCH, tag)):
        return Image(image, cuda=built[2], vendor="NVIDIA", build=built[1])
    if repository.startswith(_NGC) and (release := re.match(_RELEASE, tag)):
        cuda, least = of_release(release[1])
        return Image(image, cuda=cuda, vendor="NVIDIA", least=least)
    words = f"{repository}:{tag}"
    cuda = _cuda(words)
    if re.search(_ROCM, words):
        return Image(image, vendor="AMD") if cuda is None else None
    return None if cuda is None else Image(image, cuda=cuda or None, vendor="NVIDIA")


def _cuda(words: str) -> str | None:
    """``12.4``; empty where only the major number is there, None where nothing names CUDA."""
    if found := re.search(_CUDA, words):
        if found[2]:
            return f"{found[1]}.{found[2]}"
        # cuda118 is CUDA 11.8; cuda12 says no minor.
        return f"{found[1][:2]}.{found[1][2:]}" if len(found[1]) > 2 else ""
    found = re.search(_SHORT, words)
    return f"{found[1]}.{found[2]}" if found else None


_X64 = ("x64",)
_BASE = r"(?i)mcr\.microsoft\.com/azureml/openmpi(?P<mpi>\d+(?:\.\d+)*)(?:-cuda(?P<cuda>\d+\.\d+))?\b"
_CURATED = r"(?i)mcr\.microsoft\.com/azureml/curated/(?P<name>[^:@]+)"
_OWN = r"(?i)(?:.*/environments/(?P<long>[^/]+)/versions/|azureml:(?P<short>[^/:@]+):)(?P<version>[^/:@]+)"


class Image(NamedTuple):
    """The facts that are known of an image.

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
    architectures: tuple[str, ...] = ()
    cuda: str | None = None
    torch: str | None = None
    open_mpi: str | None = None
    vendor: str | None = None
    build: str | None = None
    least: str | None = None

    def without_framework(self) -> Image:
        """The same where another PyTorch may be installed in it."""
        return self._replace(torch=None, build=None, least=None)

    def under_conda(self) -> Image:
        """The same under a conda environment of its own, whose packages run instead of the image's."""
        return self.without_framework()._replace(vendor=None)


class Registered(NamedTuple):
    """The image of an environment that the stack registers, and whether a conda environment lies on top."""

    image: str
    conda: bool = False


def image_of(reference: str, known: Mapping[str, Registered]) -> Image | None:
    """The contents of a job's environment; None where nothing is known of it.

    Args:
        reference: The environment as a job names it.
        known: Images of environments that the stack registers, by `key`.
    """
    if (curated := environments.curated(reference)) is not None:
        return _of_curated(curated)
    registered = known.get(key(reference) or "")
    image = None if registered is None else named(registered.image)
    return image.under_conda() if image is not None and registered is not None and registered.conda else image


def key(reference: str) -> str | None:
    """Name and version of a workspace's environment in small letters, of its id as of its short reference."""
    found = re.fullmatch(_OWN, reference)
    return f"{found['long'] or found['short']}/{found['version']}".lower() if found else None


def named(image: str) -> Image | None:
    """The facts that an image's own name states."""
    if found := re.match(_CURATED, image):
        curated = environments.get(found["name"])
        return None if curated is None else _of_curated(curated)
    if found := re.match(_BASE, image):
        cuda = found["cuda"]
        return Image(image, _X64, cuda=cuda, open_mpi=found["mpi"], vendor="NVIDIA" if cuda else None)
    return read(image)


def _of_curated(curated: environments.CatalogEnvironment) -> Image:
    inside = curated.contains
    cuda = inside.get("cuda")
    vendor = "NVIDIA" if cuda else None
    return Image(curated.name, curated.architectures, cuda, inside.get("torch"), inside.get("open_mpi"), vendor=vendor)
