"""Where a report goes: written whole or not at all, never over a file that is something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.files import write_whole
from amlstack.report.rendering.page import GENERATOR

if TYPE_CHECKING:
    from pathlib import Path

HEAD = 4096


class NotOursError(Exception):
    """The path holds something that this program did not write; the message says what to do."""


def write(path: Path, page: str, *, force: bool = False) -> None:
    """Writes a page.

    Args:
        path: Where to.
        page: The whole of it.
        force: Overwrite whatever file is there.

    Raises:
        NotOursError: Something else is there, or no folder to write into.
        OSError: It cannot be written.
    """
    if path.is_dir():
        message = f"{path} is a folder. Name a file with --output."
        raise NotOursError(message)
    if not path.parent.is_dir():
        message = f"There is no folder {path.parent} to write {path.name} into."
        raise NotOursError(message)
    if path.exists() and not force and not _ours(path):
        message = f"{path} is there and is no report. Name another file with --output, or overwrite it with --force."
        raise NotOursError(message)
    write_whole(path, page.encode(errors="replace"), mode=0o644)


def _ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f'content="{GENERATOR}"'.encode() in file.read(HEAD)
