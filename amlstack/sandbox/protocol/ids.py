"""ARM ids: what a path names, and what lies above it."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

GROUPS = "Microsoft.Resources/resourceGroups"
ML = "Microsoft.MachineLearningServices"
ABOVE_GROUPS = frozenset({"microsoft.authorization"})
"""Namespaces whose resources may lie directly in the subscription, or on any other resource."""
OF_LOCATION = re.compile(
    r"/subscriptions/[^/]+/providers/Microsoft\.MachineLearningServices/locations/(?P<location>[^/]+)/(?P<what>\w+)",
    re.IGNORECASE,
)
"""What the service says of a region."""
EXTENDING = ABOVE_GROUPS | {"microsoft.insights"}
"""Namespaces whose resources may lie on any other resource."""


@dataclass(frozen=True, slots=True)
class ArmPath:
    """A parsed path.

    Attributes:
        text: The path without what follows its last name (no action, no trailing slash).
        subscription: Its subscription.
        group: Its resource group, None for a path above one.
        type: ``Microsoft.X/a/b`` as the client wrote it; ``Microsoft.Resources/resourceGroups`` for a group.
        names: The names, one per segment of the type; empty for a collection directly under a group.
        collection: The path ends in a kind, not in a name.
        on: Id of the resource that this one is written on, for one that extends another; empty for all others.
    """

    text: str
    subscription: str
    group: str | None
    type: str
    names: tuple[str, ...]
    collection: bool
    on: str = ""

    @property
    def name(self) -> str:
        """The last name."""
        return self.names[-1] if self.names else ""

    @property
    def group_id(self) -> str:
        """Id of the resource group."""
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.group}"

    @property
    def parent(self) -> str:
        """Id of the resource directly above: the parent resource, else the group, else the subscription."""
        if self.on:
            return self.on
        if self.type.lower() == GROUPS.lower():
            return f"/subscriptions/{self.subscription}"
        if self.type.count("/") == 1:
            return self.group_id if self.group is not None else f"/subscriptions/{self.subscription}"
        return self.text.rsplit("/", 1 if self.collection else 2)[0]


@functools.lru_cache(1024)
def parse(path: str) -> ArmPath | None:
    """Reads ``/subscriptions/S[/resourceGroups/G][/providers/NS/kind/name…]``; None when it is no such path.

    Without a group only `ABOVE_GROUPS` is read.
    """
    words = path.strip("/").split("/")
    if len(words) < 3 or words[0].lower() != "subscriptions" or not all(words):
        return None
    text = "/" + "/".join(words)
    if words[2].lower() == "providers" and len(words) > 4 and words[3].lower() in ABOVE_GROUPS:
        return _of(text, words[1], None, words[3:])
    if words[2].lower() != "resourcegroups":
        return None
    if len(words) <= 4:
        group = words[3] if len(words) == 4 else None
        return ArmPath(text, words[1], group, GROUPS, tuple(words[3:4]), collection=group is None)
    if words[4].lower() != "providers" or len(words) < 7:
        return None
    lower = [word.lower() for word in words]
    last = len(words) - 1 - lower[::-1].index("providers")
    if last > 4 and len(words) > last + 2 and lower[last + 1] in EXTENDING:
        return _of(text, words[1], words[3], words[last + 1 :], on="/" + "/".join(words[:last]))
    return _of(text, words[1], words[3], words[5:])


def _of(text: str, subscription: str, group: str | None, words: list[str], on: str = "") -> ArmPath:
    """The path of a namespace and pairs of kind and name."""
    pairs = words[1:]
    kind = "/".join([words[0], *pairs[0::2]])
    return ArmPath(text, subscription, group, kind, tuple(pairs[1::2]), collection=len(pairs) % 2 == 1, on=on)
