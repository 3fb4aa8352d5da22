"""Stand-ins for Azure ML's images: Python environments on this machine, built on first use.

Each ``data/*.toml`` names the curated environments and images that it stands in for and what it installs, in exact
versions; for an environment of one's own the stand-in is read from what that declares. `answer` says whether an
environment can be had, `build` makes it in the user's cache.
"""

from __future__ import annotations

from amlstack.images.building import ImageBuildError, build, check_programs, folder, read_record, ready
from amlstack.images.differences import for_diagnosis
from amlstack.images.differences import line as difference
from amlstack.images.environments import (
    DOCKERFILE,
    Chosen,
    Declared,
    DeclaredError,
    EnvironmentAnswer,
    OwnStandIn,
    answer,
    from_conda,
    own_of,
    standin_of,
)
from amlstack.images.requirements import CondaFileError, package_of
from amlstack.images.standins import (
    Absent,
    StandIn,
    UnknownImageError,
    all_standins,
    find,
    has_openmpi_5,
    image_name,
    openmpi,
    resolve,
    with_openmpi,
)

UNREADABLE = (UnknownImageError, CondaFileError, DeclaredError)
"""Why an environment has no stand-in."""

__all__ = [
    "DOCKERFILE",
    "UNREADABLE",
    "Absent",
    "Chosen",
    "CondaFileError",
    "Declared",
    "DeclaredError",
    "EnvironmentAnswer",
    "ImageBuildError",
    "OwnStandIn",
    "StandIn",
    "UnknownImageError",
    "all_standins",
    "answer",
    "build",
    "check_programs",
    "difference",
    "find",
    "folder",
    "for_diagnosis",
    "from_conda",
    "has_openmpi_5",
    "image_name",
    "openmpi",
    "own_of",
    "package_of",
    "read_record",
    "ready",
    "resolve",
    "standin_of",
    "with_openmpi",
]
