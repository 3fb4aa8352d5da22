"""Addresses of requests: Azure's host names, ARM ids, and the api-versions of each type."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amlstack.sandbox.protocol.refusals import Refused

LOGIN: Final = "login.microsoftonline.com"
BLOB: Final = ".blob.core.windows.net"
LAKE: Final = ".dfs.core.windows.net"
VAULT: Final = ".vault.azure.net"
HOST_NAMES: Final = (LOGIN, f"*{BLOB}", f"*{LAKE}", f"*{VAULT}")
"""Names of the certificate, beside those of the loopback."""


def path_at_host(host: str, raw: str) -> str:
    """The path of the sandbox's one endpoint for a path of one of Azure's hosts; other hosts' paths as they are.

    Args:
        host: The request's ``Host``.
        raw: Its path, with a leading slash, still encoded.
    """
    name = host.partition(":")[0].lower()
    if name.endswith(LAKE):
        return f"/blob/{name}{raw}"
    for suffix, prefix in ((BLOB, "/blob/"), (VAULT, "/vault/")):
        if name.endswith(suffix):
            return prefix + name.removesuffix(suffix) + raw
    return raw


def is_known_host(host: str) -> bool:
    """True where the sandbox answers under this name."""
    name = host.lower()
    names = (name.removesuffix(suffix) for suffix in (BLOB, LAKE, VAULT) if name.endswith(suffix))
    return name == LOGIN or any(one and "." not in one for one in names)


NUMBER: Final = "127.0.0.1"
NAME: Final = "localhost"


def by_name(base: str) -> str:
    """The endpoint's address for clients that are led to Azure's own host names, by which it knows them."""
    return base.replace(f"//{NUMBER}:", f"//{NAME}:")


GROUPS = "Microsoft.Resources/resourceGroups"
ML = "Microsoft.MachineLearningServices"
ABOVE_GROUPS = frozenset({"microsoft.authorization"})
"""Namespaces whose resources may lie directly in the subscription, or on any other resource."""
OF_LOCATION = re.compile(
    r"/subscriptions/[^/]+/providers/Microsoft\.MachineLearningServices/locations/(?P<location>[^/]+)/(?P<what>\w+)",
    re.IGNORECASE,
)
"""The service's description of a region."""
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
    if words[2].lower() == "resourcegroups":
        words[2] = "resourceGroups"  # as ids are answered, however they were asked for
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


_DATE = re.compile(r"\d{4}-\d\d-\d\d(-[a-z]+)?")


@functools.cache
def known_versions() -> Mapping[str, tuple[str, ...]]:
    """The api-versions of each type (in lower-case letters), oldest first."""
    text = Path(__file__).with_name("api_versions.json").read_text("utf-8")
    return {name.lower(): tuple(row["versions"]) for row in json.loads(text)["rows"] for name in row["types"]}


def check_version(text: str, query: Mapping[str, str]) -> None:
    """Refuses a call without an api-version, or with one that the path's type does not have.

    A path of a type that is not in the list is left to the handler that knows that type.
    """
    version = query.get("api-version")
    if not version:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise Refused(400, "MissingApiVersionParameter", message)
    if not _DATE.fullmatch(version):
        raise Refused(400, "InvalidApiVersionParameter", f"The api-version '{version}' is invalid.")
    kind = _type(text)
    supported = known_versions().get(kind.lower(), ())
    if not supported or version.lower() in supported:
        return
    listed = ", ".join(reversed(supported))
    if kind == GROUPS:
        message = f"The api-version '{version}' is invalid. The supported versions are '{listed}'."
        raise Refused(400, "InvalidApiVersionParameter", message)
    message = (
        f"No registered resource provider found for API version '{version}' for type '{kind.partition('/')[2]}'. "
        f"The supported api-versions are '{listed}'."
    )
    raise Refused(400, "NoRegisteredProviderFound", message)


def _type(text: str) -> str:
    """The type of a path, or of the one that an action (``POST <id>/<action>``) is asked of; empty for none."""
    if OF_LOCATION.fullmatch(text) is not None:
        return f"{ML}/workspaces"  # the versions of a provider's lists of a region are those of its main type
    path = parse(text)
    if path is not None and path.collection and path.type.lower() not in known_versions():
        path = parse(text.rpartition("/")[0])
    return path.type if path is not None else ""
