"""The number of examples that a property test draws."""

from __future__ import annotations

from hypothesis import settings


def examples(share: float) -> int:
    """A share of what the profile draws, so that ``--hypothesis-profile=thorough`` draws more here too.

    Args:
        share: Of the 50 examples that are drawn otherwise, and 1000 where it is to be thorough.
    """
    return round(settings().max_examples * share)
