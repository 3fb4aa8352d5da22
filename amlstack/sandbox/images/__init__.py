"""Stand-ins for Azure ML's curated images: Python environments declared as data, built on first use.

Each ``*.toml`` here names the curated environments that it stands in for and what it installs, in exact versions.
`resolve` looks one up by what a job or an environment version says, `build` makes it in the user's cache.
"""

from __future__ import annotations

from amlstack.sandbox.images.builder import ImageBuildError, build, folder, ready
from amlstack.sandbox.images.declared import CondaFileError, from_conda
from amlstack.sandbox.images.standins import (
    StandIn,
    UnknownImageError,
    all_standins,
    find,
    image_name,
    resolve,
    with_openmpi,
)

__all__ = [
    "CondaFileError",
    "ImageBuildError",
    "StandIn",
    "UnknownImageError",
    "all_standins",
    "build",
    "find",
    "folder",
    "from_conda",
    "image_name",
    "ready",
    "resolve",
    "with_openmpi",
]
