"""Near misses by name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def near(word: str, known: Iterable[str], n: int = 2) -> list[str]:
    """Known words that ``word`` may have been meant to be, best first; letter case is no difference."""
    folded = {name.lower(): name for name in known}
    return [folded[name] for name in difflib.get_close_matches(word.lower(), folded, n=n, cutoff=0.5)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``Did you mean `x` or `y`?``; empty when nothing is near."""
    found = near(word, known)
    return f"Did you mean {' or '.join(f'`{name}`' for name in found)}?" if found else ""
