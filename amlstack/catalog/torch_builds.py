"""Which GPUs PyTorch's own builds and NVIDIA's framework images run on, as far as their makers document it."""

from __future__ import annotations

from functools import cache
from typing import Any

from amlstack.catalog.files import load
from amlstack.catalog.gpus import version


def runs_on(torch: str, cuda: str, capability: str) -> bool | None:
    """Whether a build that PyTorch publishes has code for a GPU; None where no table speaks of the build.

    Code for a capability runs on later ones of the same major number, PTX on all later ones.

    Args:
        torch: Release, e.g. ``2.9.1``.
        cuda: CUDA release of the build, e.g. ``12.6``.
        capability: The GPU's, e.g. ``10.0``.
    """
    asked, gpu = version(torch), version(capability)
    for row in _builds():
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
    cuda = next((row["cuda"] for row in _releases() if version(row["release"]) == asked), None)
    least = [row["least"] for row in _releases() if row["least"] is not None and version(row["release"]) <= asked]
    return cuda, least[-1] if least else None


@cache
def _builds() -> tuple[dict[str, Any], ...]:
    return tuple(load("torch_builds"))


@cache
def _releases() -> tuple[dict[str, Any], ...]:
    """By release, the oldest first."""
    return tuple(load("ngc_releases"))
