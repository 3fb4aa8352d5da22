"""The console script."""

from __future__ import annotations


def main() -> None:
    """Run one verb."""
