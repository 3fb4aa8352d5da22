"""Packages by their names: what PyPI calls a conda package, and what a machine without GPUs cannot have at all."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

_TABLES: Final = tomllib.loads(Path(__file__).with_name("packages.toml").read_text(encoding="utf-8"))
CONDA: Final[dict[str, str]] = _TABLES["conda"]
PIP: Final[dict[str, str]] = _TABLES["pip"]
LEFT_OUT: Final = frozenset(_TABLES["left_out"])
_FIRST_ON_CPU: Final[dict[str, str]] = _TABLES["first_on_cpu"]
_NEEDS_GPU: Final[dict[str, list[str]]] = _TABLES["needs_gpu"]
_NOT_PUBLIC: Final[dict[str, list[str]]] = _TABLES["not_public"]
_REPOSITORIES: Final[dict[str, str]] = _TABLES["repositories"]
_MODULES: Final[dict[str, str]] = _TABLES["modules"]
NO_PYTHON = re.compile(
    r"^(r-.*|bioconductor-.*|_.*|lib(?!cst|rosa|sass|tmux|clang$|usb1).*|gcc_.*|gxx_.*|openjdk|nodejs|r)$"
)
"""Conda packages that have no twin on PyPI by their kind."""
_GITHUB = re.compile(r"github\.com[/:](?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?(?:[@#/].*)?$", re.IGNORECASE)


def why_absent(name: str) -> str | None:
    """Why no stand-in can have a package, by its canonical name; None for one that may be had."""
    if name in _NEEDS_GPU or name.startswith(("nvidia-dali", "cupy-cuda")):
        return "it is compiled against CUDA"
    if name in _NOT_PUBLIC:
        return "it is part of Azure ML's images and on no public index"
    return None


def modules(name: str) -> tuple[str, ...]:
    """The modules that a package brings, as far as its name tells."""
    known = _NEEDS_GPU.get(name) or _NOT_PUBLIC.get(name)
    if known is not None:
        return tuple(known)
    return (_MODULES.get(name, name.replace("-", "_")),)


def package_of(module: str) -> str:
    """The package that brings a module, by the top of its name; the same name where none is known."""
    found = (package for package, brought in _MODULES.items() if brought == module and not package.endswith("-cpu"))
    return next(found, module.replace("_", "-"))


def on_cpu(name: str, rule: str) -> str | None:
    """The release to install for an exact version that no CPU can run; None where the version may stay."""
    first = _FIRST_ON_CPU.get(name)
    exact = re.fullmatch(r"===?\s*(\d+(?:\.\d+)*)", rule)
    if first is None or exact is None:
        return None
    asked, needed = ([int(part) for part in text.split(".")] for text in (exact[1], first))
    return first if asked < needed else None


def without_cuda(extras: str) -> str:
    """A requirement's extras, ``[a,b]``, without those that bring CUDA's libraries."""
    kept = [each.strip() for each in extras.strip("[] ").split(",") if each.strip() and "cuda" not in each.lower()]
    return f"[{','.join(kept)}]" if kept else ""


def release_of(address: str) -> str | None:
    """The package that a well-known repository releases on PyPI; None for any other address."""
    found = _GITHUB.search(address)
    return _REPOSITORIES.get(found["repository"].lower()) if found is not None else None
