"""What a build notes in the environment that it made: what was installed otherwise than it was declared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from amlstack.base.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from amlstack.sandbox.images.absent import Absent

FILE = "stand-in.json"


def write(
    place: Path,
    python: str,
    changed: Mapping[str, tuple[str, str]],
    absent: Iterable[Absent],
    variables: Iterable[tuple[str, str]] = (),
) -> None:
    """Notes a build.

    Args:
        place: The environment's folder.
        python: Its Python, ``3.11``.
        changed: By package the version that was declared and the one that was installed.
        absent: What could not be installed.
        variables: What the image sets in its processes' environment.
    """
    missing = [{"what": each.what, "why": each.why, "modules": list(each.modules)} for each in absent]
    data = {"python": python, "changed": dict(changed), "absent": missing, "variables": dict(variables)}
    write_whole(place / FILE, json.dumps(data, indent=1) + "\n")


def read(place: Path) -> dict[str, Any]:
    """What was noted; empty where nothing was."""
    try:
        found = json.loads((place / FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
