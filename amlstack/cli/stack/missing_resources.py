"""What the stack's state records and the sandbox has not: after a reset, or when somebody deleted it by other ways."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from amlstack.sandbox.store.places import folder

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.cli.stack.state import State

CONVERGING = (
    "azure-native:",
    "amlstack:code:",
    "amlstack:environments:",
    "amlstack:components:",
    "amlstack:schedules:",
)
"""Types that `up` makes again. A run is none of them: one whose record is gone is not run again by itself."""


def lost(state: State, home: Path) -> tuple[str, ...]:
    """URNs of resources of the state that the sandbox of a home does not have."""
    wanted = {
        str(one["urn"]): str(one["id"])
        for one in state.resources
        if str(one["type"]).startswith(CONVERGING) and str(one.get("id", "")).startswith("/subscriptions/")
    }
    if not wanted:
        return ()
    if not (folder(home) / "state.db").is_file():
        return tuple(wanted)
    from amlstack.sandbox.store.store import Store

    with contextlib.closing(Store(home)) as store:
        return tuple(urn for urn, resource_id in wanted.items() if store.resources.get(resource_id) is None)
