"""The pack: its name, its version, the configuration built into it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.catalog.clock import today
from policies import config
from policies.server import Pack

if TYPE_CHECKING:
    from datetime import date

NAME = "amlstack"
_HERE = Path(__file__).resolve().parent
BUILT_IN = _HERE / "pack-config.json"
"""What a platform team builds into its archive (`make pack CONFIG=…`); absent in this repository."""


def version() -> str:
    """The version in PulumiPolicy.yaml, which the official CLI reads by itself."""
    found = re.search(r"^version:\s*(\S+)", (_HERE / "PulumiPolicy.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "0.0.0"


def pack(on: date | None = None) -> Pack:
    """The pack.

    Args:
        on: The day of the judgement; today, or the day in ``AMLSTACK_TODAY``, when None.

    Raises:
        ValueError: That day is none, or the built-in configuration is wrong.
    """
    return Pack(NAME, version(), on or today(), config.load(BUILT_IN))
