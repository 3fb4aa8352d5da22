"""A hook of mkdocs: sections stand in the order in which a reader comes to need them."""

from __future__ import annotations

from typing import Any

_ORDER = ["Tutorial", "How to", "Reference", "Explanation", "Architecture", "Adr", "Maintain"]


def on_nav(nav: Any, **_: Any) -> None:
    """Sorts what mkdocs has sorted by name."""
    nav.items.sort(key=lambda item: _ORDER.index(item.title) if item.title in _ORDER else -1)
