"""The version of the pack, which is that of the project."""

from __future__ import annotations

from amlstack import __version__


def version() -> str:
    """The version that every verdict names."""
    return __version__
