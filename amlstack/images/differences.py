"""Differences between an image and its stand-in."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from amlstack.images import building, pythons
from amlstack.images.requirements import NAME, module_names, requirement_name
from amlstack.images.standins import Absent

if TYPE_CHECKING:
    from amlstack.images.standins import StandIn

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
    if wanted and not pythons.suits(wanted, tuple(int(part) for part in python.split(".")[:2])):
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
    found = pythons.find(standin.python)
    if found is None:
        return pythons.wanted(standin.python) if standin.python[:1].isdigit() else _ours()
    if found == sys.executable:
        return _ours()
    return next((".".join(map(str, version)) for version, path in pythons.installed() if path == found), _ours())


def _ours() -> str:
    return ".".join(map(str, pythons.OURS))


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
