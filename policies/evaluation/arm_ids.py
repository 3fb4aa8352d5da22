"""Ids of Azure as the resource manager reads them: percent signs, slashes, spaces and letter case aside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from policies.evaluation.facts import GAP, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

_BEFORE = re.compile(r"\s*azureml:(?:/*(?=/subscriptions|subscriptions))?", re.IGNORECASE)
_UNWRITTEN = "-"
"""Stands for a name that a declaration does not know yet."""


@lru_cache(maxsize=4096)
def segments(text: str) -> tuple[str, ...]:
    """The parts of an id or a path between its slashes, decoded, in small letters.

    Args:
        text: The id, in any spelling that a server takes for it.
    """
    for _ in range(3):  # a server decodes once
        text = unquote(text) if "%" in text else text
    found: list[str] = []
    for part in re.split(r"[?#]", text, maxsplit=1)[0].replace("\\", "/").split("/"):
        one = part.strip().lower()
        if one == "..":
            del found[-1:]
        elif one and one != ".":
            found.append(one)
    return tuple(found)


def resource_type(parts: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Type and names of what an id's parts name, such as ``microsoft.x/outer/inner`` and both names.

    Args:
        parts: Of the whole id, or from its provider on. A name at the end may be missing.
    """
    inner = list(parts)
    while "providers" in inner:
        del inner[: inner.index("providers") + 1]
    return "/".join(inner[:1] + inner[1::2]), tuple(inner[2::2])


@dataclass(frozen=True, slots=True)
class Address:
    """The place of something in a workspace; a part that is not known is None.

    Attributes:
        subscription: Its subscription.
        group: Its resource group.
        workspace: Its workspace.
        name: Its own name.
        unknown: Why its own name is not known.
    """

    subscription: str | None = None
    group: str | None = None
    workspace: str | None = None
    name: str | None = None
    unknown: Unknown | None = None

    def may_be(self, other: Address) -> bool:
        """True where both may be one resource as far as their places are known; names are compared by the caller."""
        pairs = zip(self._around, other._around, strict=True)
        return all(one is None or two is None or one == two for one, two in pairs)

    def agrees(self, other: Address) -> int:
        """In how many parts of their places both are known to be equal."""
        return sum(one is not None and one == two for one, two in zip(self._around, other._around, strict=True))

    def within(self, around: Address | None) -> Address:
        """The same; what it does not say of itself is that of what names it."""
        if around is None or self.workspace is not None:
            return self
        return Address(around.subscription, around.group, around.workspace, self.name, self.unknown)

    @property
    def _around(self) -> tuple[str | None, str | None, str | None]:
        return self.subscription, self.group, self.workspace


@lru_cache(maxsize=4096)
def address_of(reference: str) -> Address:
    """The address that a reference names: an id of any length, a name, or a child's full name.

    Args:
        reference: As it was written; parts may be gaps.
    """
    parts = segments(_BEFORE.sub("", reference, count=1))
    name = parts[-1] if parts else ""
    if "computes" in parts[:-1]:
        name = parts[parts.index("computes") + 1]
    workspace = _after(parts, "workspaces")
    if workspace is None and len(parts) == 2:
        workspace = _known(parts[0])
    return Address(_after(parts, "subscriptions"), _after(parts, "resourcegroups"), workspace, name)


def name_of(reference: str) -> str:
    """The name at the end of a reference, in small letters."""
    return address_of(reference).name or ""


def _after(parts: tuple[str, ...], word: str) -> str | None:
    return _known(parts[parts.index(word) + 1]) if word in parts[:-1] else None


def _known(part: str) -> str | None:
    return None if GAP in part or part == _UNWRITTEN else part
