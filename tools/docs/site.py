"""A hook of mkdocs: links that leave docs lead to the repository, or are text where its address is not known."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """The page's text, with its links to other files of the repository rewritten."""

    def rewritten(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), found[2]))
        if target.startswith("docs/"):
            return found[0]
        repository = config.repo_url
        return f"[{found[1]}]({repository.rstrip('/')}/blob/main/{target})" if repository else found[1]

    return _LINK.sub(rewritten, markdown)


def on_nav(nav: Any, **_: Any) -> None:
    """Sections stand in the order in which a reader comes to need them; mkdocs sorts them by name."""
    order = ["Tutorial", "How to", "Reference", "Explanation", "Architecture", "Adr", "Maintain"]
    nav.items.sort(key=lambda item: order.index(item.title) if item.title in order else -1)
