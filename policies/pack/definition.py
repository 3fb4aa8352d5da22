"""The pack: its name, its version, the configuration built into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.catalog import overlay
from amlstack.catalog.clock import today
from policies import config
from policies.pack.server import Pack
from policies.release import version

if TYPE_CHECKING:
    from datetime import date

NAME = "amlstack"


def pack(on: date | None = None) -> Pack:
    """The pack.

    Args:
        on: The day of the judgement; today, or the day in ``AMLSTACK_TODAY``, when None.

    Raises:
        ValueError: That day is none, or the built-in configuration or the team's catalogue is wrong.
    """
    overlay.current()
    return Pack(NAME, version(), on or today(), config.load(config.BUILT_IN))
