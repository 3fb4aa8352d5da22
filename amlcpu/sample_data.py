"""Data sets that a library knows by their checksums: a rehearsal reads a sample in the same form."""

from __future__ import annotations

import os
import sys
from typing import Any

_named: set[str] = set()


def change_torchvision(module: Any) -> None:
    """A file of a data set that is there is taken, whatever its checksum; another one than the original is named."""
    check = module.check_integrity

    def check_integrity(fpath: Any, md5: str | None = None) -> bool:
        if check(fpath, md5):
            return True
        if not os.path.isfile(fpath):  # noqa: PTH113 - as torchvision gives it, text or path
            return False
        folder = os.path.dirname(os.fspath(fpath))  # noqa: PTH120
        if folder not in _named:
            _named.add(folder)
            sys.stderr.write(
                f"amlstack: {folder} does not hold the data set that torchvision knows; it is read as it is\n"
            )
        return True

    module.check_integrity = check_integrity
