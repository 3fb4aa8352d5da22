"""The right that a request needs, as Azure's roles name it: what to ask for after a 403."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

_VERBS: Final = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}
_ROLE: Final = "AzureML Data Scientist"


def needed(method: str, url: str) -> str:
    """``Microsoft.…/workspaces/jobs/write``; empty for what is no request to a resource provider.

    Args:
        method: HTTP method.
        url: Absolute URL, or its path.
    """
    path = urlsplit(url).path
    namespace, _, rest = path.partition("/providers/")[2].partition("/")
    if not namespace:
        return ""
    words = rest.strip("/").split("/")
    if path.startswith("/history/"):
        return f"{namespace}/workspaces/experiments/runs/{_VERBS.get(method, 'write')}"
    types = "/".join(words[::2])
    if method == "POST":
        return f"{namespace}/{types}/action"
    return f"{namespace}/{types}/{_VERBS[method]}"


def advice(method: str, url: str) -> str:
    """A sentence for the user who got a 403; empty where nothing is known."""
    right = needed(method, url)
    return f" It needs the right {right}, which the role {_ROLE} has, among others." if right else ""
