"""The api-versions that the resource manager knows for each type; the list with its sources is api_versions.json."""

from __future__ import annotations

import functools
import json
import re
from importlib import resources
from typing import TYPE_CHECKING

from amlstack.sandbox.protocol.ids import GROUPS, ML, OF_LOCATION, parse
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

_DATE = re.compile(r"\d{4}-\d\d-\d\d(-[a-z]+)?")


@functools.cache
def known() -> Mapping[str, tuple[str, ...]]:
    """The api-versions of each type (in lower-case letters), oldest first."""
    text = resources.files(__package__).joinpath("api_versions.json").read_text("utf-8")
    return {name.lower(): tuple(row["versions"]) for row in json.loads(text)["rows"] for name in row["types"]}


def check(text: str, query: Mapping[str, str]) -> None:
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
    supported = known().get(kind.lower(), ())
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
    if path is not None and path.collection and path.type.lower() not in known():
        path = parse(text.rpartition("/")[0])
    return path.type if path is not None else ""
