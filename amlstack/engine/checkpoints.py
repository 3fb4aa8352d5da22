"""States of the sandbox's file backend that were cut off, by a full disk or a machine that stopped: the last good copy.

The engine keeps the state of before each writing beside the file (``.json.bak``), and one of each update under
``backups``. It does not look there itself, and says ``unexpected end of JSON input`` for good.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from amlstack.base.files import write_whole
from amlstack.engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def mend(backend: Path) -> tuple[str, ...]:
    """Puts the last good copy in the place of each state that cannot be read; what was cut off is kept beside it.

    Args:
        backend: Folder of the backend. No engine may be at work in it.

    Returns:
        A sentence for each state that was mended.

    Raises:
        EngineError: A state cannot be read and has no good copy.
    """
    told = []
    root = backend / ".pulumi"
    for file in sorted((root / "stacks").glob("*/*.json")):
        if is_good(file):
            continue
        good = next(filter(is_good, _copies(root, file)), None)
        size = file.stat().st_size
        if good is None:
            raise EngineError(
                f"{file}, the state of the stack `{file.stem}`, cannot be read (it ends after {size:,} bytes), and no "
                f"copy of it can. Put a copy of yours in its place; or `amlstack down` removes the sandbox with all "
                "that it has, and the next `amlstack up` begins anew."
            )
        content = good.read_bytes()
        broken = file.with_name(f"{file.name}.broken")
        os.replace(file, broken)  # noqa: PTH105 - a rename needs no room
        write_whole(file, content, mode=0o600)
        day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(good.stat().st_mtime))
        told.append(
            f"the state of the stack `{file.stem}` could not be read (it ended after {size:,} bytes): the engine's "
            f"copy of {day} is in its place, and what was there is {broken}. What was made since is found and adopted."
        )
    return tuple(told)


def is_good(file: Path) -> bool:
    """Whether a file is a whole state."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and isinstance(content.get("checkpoint"), dict)


def _copies(root: Path, file: Path) -> Iterator[Path]:
    """Copies of a state, the latest first."""
    yield file.with_name(f"{file.name}.bak")
    kept = (root / "backups" / file.parent.name / file.stem).glob(f"{file.stem}.*.json")
    yield from sorted(kept, reverse=True)  # their names have the time in nanoseconds
