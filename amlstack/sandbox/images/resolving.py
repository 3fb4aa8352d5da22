"""Which stand-in an image or a registered environment gets."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.base import near_misses
from amlstack.sandbox.images import references
from amlstack.sandbox.images.standins import RealImage, StandIn, all_standins

if TYPE_CHECKING:
    from amlstack.sandbox.images.references import Reference

FRAMEWORKS = {"torch": "torch", "tensorflow": "tensorflow"}
"""A framework's package in images, and the one that its stand-in installs."""
CURATED = ("acpt-pytorch-*", "lightgbm-*", "sklearn-*", "tensorflow-2.*")
"""Names of curated environments in messages."""
_COMPACT = re.compile(r"^\d{2,}$")


class UnknownImageError(Exception):
    """No stand-in exists for this environment or image; the message names those that do."""


def find(reference: str) -> StandIn | None:
    """The stand-in for an environment id or image; None when there is none."""
    named = references.read(reference)
    for standin in all_standins():
        if any(_matches(pattern, named) for pattern in standin.names):
            return _for(standin, named)
    return None


def resolve(reference: str) -> StandIn:
    """The stand-in for an environment id or image.

    Raises:
        UnknownImageError: There is none.
    """
    found = find(reference)
    if found is not None:
        return found
    name = references.image_name(reference)
    known = sorted(pattern for standin in all_standins() for pattern in standin.names)
    message = (
        f"The sandbox has no stand-in for the environment {name!r}.{near_misses.hint(name, known)} It has them for "
        f"{', '.join(CURATED)}, Azure ML's base images, and public images of Python, PyTorch and TensorFlow."
    )
    raise UnknownImageError(message)


def _matches(pattern: str, named: Reference) -> bool:
    pattern = pattern.lower()
    if fnmatch.fnmatchcase(named.name, pattern):
        return True
    # An image of a registry of one's own that keeps the name of a public one.
    return named.image and not named.known_registry and fnmatch.fnmatchcase(named.name.rsplit("/", 1)[-1], pattern)


def _for(standin: StandIn, named: Reference) -> StandIn:
    """The stand-in with what is known of this very image."""
    for image in standin.images:
        found = re.fullmatch(image.pattern, named.full, re.IGNORECASE)
        if found is not None:
            groups = {name: _version(text) for name, text in found.groupdict().items() if text}
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
    if not framework or _installed(standin, FRAMEWORKS[framework]) == versions[framework]:
        return known
    release = ".".join(versions[framework].split(".")[:2])
    as_of = dict(standin.releases).get(release)
    if as_of is None:
        return known
    package = FRAMEWORKS[framework]
    rule = f"=={versions[framework]}" if versions[framework].count(".") > 1 else f"=={versions[framework]}.*"
    return replace(
        known,
        summary=f"{framework} {versions[framework]} and what goes with it",
        requirements=(f"{package}{rule}", *(image.companions or standin.companions)),
        constraints="",
        as_of=as_of,
    )


def _installed(standin: StandIn, package: str) -> str:
    return next((each.partition("==")[2] for each in standin.requirements if each.startswith(f"{package}==")), "")


def _version(text: str) -> str:
    """A version as tags write it: ``2.1.0``, ``1131`` (1.13.1), ``38`` (3.8), ``310`` (3.10)."""
    if not _COMPACT.match(text):
        return text
    if text[0] == "3":
        return f"3.{text[1:]}"
    return ".".join((text[0], text[1:-1], text[-1])) if len(text) > 2 else f"{text[0]}.{text[1]}"
