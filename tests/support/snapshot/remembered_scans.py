"""Scans with a memory: their clock, and their comparison with scans that have none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from amlstack.snapshot import remembered, scan

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from amlstack.snapshot import Snapshot

LATER = 10_000_000_000
"""Nanoseconds by which the clock of a scan is ahead, so that files written just now are old enough."""


def at(monkeypatch: pytest.MonkeyPatch, ahead: int) -> None:
    """Sets the clock of scans, in nanoseconds from the machine's."""
    clock = time.time_ns
    monkeypatch.setattr(remembered, "now", lambda: clock() + ahead)


def same(folder: Path) -> Snapshot:
    """A scan with memory, which must find what one without it finds."""
    fresh = scan(folder, remember=False)
    found = scan(folder)
    assert found == fresh
    return found
