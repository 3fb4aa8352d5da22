"""What the name of a public image says of what is in it: CUDA or ROCm, PyTorch's own builds, NVIDIA's releases.

A name is read as its makers document theirs: ``nvidia/cuda:12.4.1-…``, ``pytorch/pytorch:2.5.1-cuda12.4-…``,
``nvcr.io/nvidia/pytorch:24.05-py3``, and ``cuda12.4``, ``cu124`` or ``rocm6.2`` as a word of any other. What it does
not say is unknown. For which CPUs an image is built no name says.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from amlstack.catalog import torch_builds

_DIGEST = re.compile(r"@sha256:.*$")
_TAGGED = re.compile(r"(?P<repository>.+?)(?::(?P<tag>[^/:]+))?")
_CUDA = re.compile(r"(?<![a-z0-9])cuda[-_]?(\d+)(?:\.(\d+))?", re.IGNORECASE)
_SHORT = re.compile(r"(?<![a-z0-9])cu(\d{2})(\d)(?!\d)", re.IGNORECASE)
_ROCM = re.compile(r"(?<![a-z0-9])rocm(?![a-z])", re.IGNORECASE)
_LEADING = re.compile(r"(\d+\.\d+)")
_TORCH = re.compile(r"(\d+\.\d+(?:\.\d+)?)-cuda(\d+\.\d+)")
_RELEASE = re.compile(r"(\d{2}\.\d{2})(?!\d)")
_NGC = "nvcr.io/nvidia/"
_OF_CUDA = ("nvidia/cuda", "nvcr.io/nvidia/cuda")
_OF_TORCH = "pytorch/pytorch"
_DOCKER_HUB = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")


class ImageName(NamedTuple):
    """What a name says.

    Attributes:
        vendor: ``NVIDIA`` or ``AMD``, for whose GPUs the image is built.
        cuda: CUDA release, major and minor; None where it does not say.
        torch: Release of PyTorch where the image is one of PyTorch's own; None otherwise.
        least: Least compute capability that the image supports; None where nobody says.
    """

    vendor: str
    cuda: str | None = None
    torch: str | None = None
    least: str | None = None


def read(image: str) -> ImageName | None:
    """What the name of an image says; None where it says nothing of GPUs, or of both vendors'."""
    found = _TAGGED.fullmatch(_DIGEST.sub("", image.strip()))
    if found is None:
        return None
    repository, tag = found["repository"].lower(), found["tag"] or ""
    for prefix in _DOCKER_HUB:
        repository = repository.removeprefix(prefix)
    if repository in _OF_CUDA:
        leading = _LEADING.match(tag)
        return ImageName("NVIDIA", leading[1] if leading else None)
    if repository == _OF_TORCH and (built := _TORCH.match(tag)):
        return ImageName("NVIDIA", built[2], torch=built[1])
    if repository.startswith(_NGC) and (release := _RELEASE.match(tag)):
        cuda, least = torch_builds.of_release(release[1])
        return ImageName("NVIDIA", cuda, least=least)
    words = f"{repository}:{tag}"
    cuda = _cuda(words)
    if _ROCM.search(words):
        return ImageName("AMD") if cuda is None else None
    return None if cuda is None else ImageName("NVIDIA", cuda or None)


def _cuda(words: str) -> str | None:
    """``12.4``; empty where only the major number is there, None where nothing names CUDA."""
    if found := _CUDA.search(words):
        if found[2]:
            return f"{found[1]}.{found[2]}"
        # cuda118 is CUDA 11.8; cuda12 says no minor.
        return f"{found[1][:2]}.{found[1][2:]}" if len(found[1]) > 2 else ""
    found = _SHORT.search(words)
    return f"{found[1]}.{found[2]}" if found else None
