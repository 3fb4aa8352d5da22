"""How many examples a property test draws."""

from __future__ import annotations

from hypothesis import settings


def examples(share: float) -> int:
    """A share of what the profile draws, so that ``--hypothesis-profile=thorough`` draws ten times as many here too.

    Args:
        share: Of the 100 examples that the usual profile draws.
    """
    return round(settings().max_examples * share)
