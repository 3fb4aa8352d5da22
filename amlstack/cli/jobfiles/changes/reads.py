"""Which files a job file reads while it is loaded: components, environments, a JSON file of its own, Python modules."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_open: list[set[str]] = []
"""Where paths are noted: of the innermost `noted`. An audit hook stays for the process's life, so there is one."""
_hooked: list[bool] = []


@contextlib.contextmanager
def noted() -> Iterator[set[str]]:
    """A set that gets the path of every file that this process opens for reading meanwhile."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    paths: set[str] = set()
    _open.append(paths)
    try:
        yield paths
    finally:
        _open.remove(paths)


def sources(paths: set[str]) -> frozenset[Path]:
    """The files behind opened paths, links resolved; of compiled Python the source."""
    return frozenset(map(_source, paths))


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _open and isinstance(arguments[0], str | bytes):
        _open[-1].add(os.path.abspath(os.fsdecode(arguments[0])))  # noqa: PTH100 - called for each file


def _source(path: str) -> Path:
    found = Path(path)
    if found.suffix == ".pyc" and found.parent.name == "__pycache__":
        found = found.parent.parent / f"{found.name.partition('.')[0]}.py"
    return Path(os.path.realpath(found))
