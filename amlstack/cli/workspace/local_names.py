"""Names that a service gives to files, as paths below a folder of this machine, and nowhere else."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Final

_LONGEST: Final = 255
"""Bytes of a file's name, as the usual file systems bound it."""


class RefusedNameError(Exception):
    """A name that leads out of the folder, or that no file can have; the message is for the user."""


def inside(folder: Path, name: str) -> Path:
    """The path of a file below a folder.

    Raises:
        RefusedNameError: The name is absolute, goes upwards, or has parts that are no names of files.
    """
    parts = PurePosixPath(name).parts
    wrong = (
        not parts
        or name.startswith("/")
        or name.endswith("/")
        or any(part in {".", ".."} for part in name.split("/"))
        or any(ord(character) < 32 or character == "\\" or ord(character) == 127 for character in name)
        or any(len(part.encode("utf-8", "surrogatepass")) > _LONGEST for part in parts)
    )
    if wrong:
        raise RefusedNameError(
            f"The service names a file {name[:200]!r}, which leads out of the folder or is no file name."
        )
    return folder.joinpath(*parts)
