"""Stand-ins for Azure ML's images: Python environments on this machine, built on first use.

Each ``data/*.toml`` names the curated environments and images that it stands in for and what it installs, in exact
versions; for an environment of one's own the stand-in is read from what that declares. `answer` says whether an
environment can be had, `build` makes it in the user's cache.
"""

from __future__ import annotations

from amlstack.sandbox.images.absent import Absent
from amlstack.sandbox.images.answers import EnvironmentAnswer, answer
from amlstack.sandbox.images.builder import ImageBuildError, build, check_programs, folder, ready
from amlstack.sandbox.images.chosen import Chosen
from amlstack.sandbox.images.declared.conda import CondaFileError
from amlstack.sandbox.images.declared.environment import DOCKERFILE, Declared, DeclaredError, from_conda, standin_of
from amlstack.sandbox.images.declared.twins import package_of
from amlstack.sandbox.images.differences import for_diagnosis
from amlstack.sandbox.images.differences import line as difference
from amlstack.sandbox.images.own import OwnStandIn
from amlstack.sandbox.images.own import of as own_of
from amlstack.sandbox.images.references import image_name
from amlstack.sandbox.images.resolving import UnknownImageError, find, resolve
from amlstack.sandbox.images.standins import StandIn, all_standins, has_openmpi_5, openmpi, with_openmpi

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
    "ready",
    "resolve",
    "standin_of",
    "with_openmpi",
]
