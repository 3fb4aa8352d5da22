"""HTML made of elements; every text is escaped unless an element made it, so nothing of a log can become markup."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Safe(str):
    """Markup that `element` or `join` made."""

    __slots__ = ()


HTML_VOID = frozenset({"meta"})
VOID = HTML_VOID | {"polyline", "line"}
"""Elements without content; those of SVG are closed."""


def element(tag: str, /, *content: str | None, **attributes: str | float | bool | None) -> Safe:
    """One element.

    Args:
        tag: Its name.
        content: Texts, escaped here, and markup, taken as it is; None is nothing.
        attributes: ``class_`` is class, other underscores are hyphens; None and False leave an attribute out, True
            gives it without a value.
    """
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value), quote=True)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID:
        return Safe(f"<{tag}{given}>" if tag in HTML_VOID else f"<{tag}{given}/>")
    return Safe(f"<{tag}{given}>{join(*content)}</{tag}>")


def join(*content: str | None) -> Safe:
    """Texts and markup one after the other."""
    return Safe("".join(each if isinstance(each, Safe) else escape(each) for each in content if each is not None))


def section(name: str, title: str, *content: str | None, **attributes: str) -> Safe:
    """A part of the page under a heading; ``name`` is the heading's anchor."""
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name, **attributes)


def facts(pairs: Iterable[tuple[str, str]]) -> Safe:
    """Names and values."""
    return element("dl", *(join(element("dt", name), element("dd", value)) for name, value in pairs), class_="facts")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Safe:
    """A table that scrolls when it is too wide."""
    names = (element("th", name, scope="col") for name in head)
    lines = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element(
        "div",
        element("table", element("thead", element("tr", *names)), element("tbody", *lines)),
        class_="wide",
    )
