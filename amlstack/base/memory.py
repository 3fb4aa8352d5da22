"""The frequency of Python's search for unused cycles of objects."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RARELY = (200_000, 20, 100)
"""Thresholds for work that makes many objects which live to its end, and next to none that form cycles.

Looking for cycles after every few hundred objects, as Python does of itself, is a tenth of such work.
"""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Inside, or in a function that this decorates, cycles are looked for rarely."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
