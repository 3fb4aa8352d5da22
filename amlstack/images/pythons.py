"""Pythons of this machine: found by looking at folders, no program is started."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = (sys.version_info.major, sys.version_info.minor)
_FOLDER = re.compile(r"^(?:cpython-)?(?P<version>3\.\d+(\.\d+)?)")
_MINOR = re.compile(r"(?P<how>==|!=)?\s*(?P<version>\d+(?:\.\d+)?)(?:\.\*)?")
_MOST_PATCHES = 40
"""More than a minor version of Python has had."""


def suits(rule: str, version: tuple[int, ...]) -> bool:
    """True where some release of a version, ``(3, 11)``, fulfils a rule: ``3.10``, ``3.10.13``, ``>=3.9,<3.12``."""
    clauses = (_clause(each.strip()) for each in rule.split(",") if each.strip())
    try:
        fulfils = SpecifierSet(",".join(clauses)).contains
    except InvalidSpecifier:
        return False
    return any(fulfils(f"{version[0]}.{version[1]}.{patch}") for patch in range(_MOST_PATCHES))


def _clause(written: str) -> str:
    """One rule as packaging takes it: a version alone means its releases."""
    minor = _MINOR.fullmatch(written)
    if minor is not None:
        return f"{minor['how'] or '=='}{minor['version']}.*"
    return f"=={written}" if written[0].isdigit() else written


def find(rule: str) -> str | None:
    """A Python of this machine for a rule: the project's own where it suits, else the newest that does; None: none."""
    if not rule or suits(rule, OURS):
        return sys.executable
    found = sorted((version, path) for version, path in installed() if suits(rule, version))
    return found[-1][1] if found else None


def wanted(rule: str) -> str:
    """The Python that uv is asked for where there is none: the rule, its last number dropped from a full version."""
    return ".".join(rule.split(".")[:2]) if re.fullmatch(r"\d+(\.\d+)+", rule) else rule


def installed() -> Iterator[tuple[tuple[int, ...], str]]:
    """Pythons with their versions: on PATH, of pyenv, of uv."""
    for minor in range(7, 16):
        path = shutil.which(f"python3.{minor}")
        # pyenv's shims are on PATH for each version and work for the chosen one alone.
        if path is not None and f"{os.sep}shims{os.sep}" not in path:
            yield (3, minor), path
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    roots = (
        Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path(data) / "uv" / "python"),
    )
    for root in roots:
        try:
            folders = sorted(root.iterdir())
        except OSError:
            continue
        for folder in folders:
            found = _FOLDER.match(folder.name)
            python = folder / "bin" / "python3"
            if found is not None and python.exists():
                yield tuple(int(part) for part in found["version"].split(".")[:2]), str(python)


def nearest(rule: str) -> str:
    """Of this machine's Pythons the one closest to a rule; the project's own where nothing is closer."""
    found = re.search(r"3\.(?P<minor>\d+)", rule)
    if found is None:
        return sys.executable
    wanted_minor = int(found["minor"])
    known = [(OURS, sys.executable), *((version, path) for version, path in installed() if version >= (3, 8))]
    return min(known, key=lambda each: (abs(each[0][1] - wanted_minor), each[0] != OURS))[1]
