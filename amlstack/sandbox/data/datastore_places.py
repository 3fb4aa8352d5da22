"""Where a datastore's files lie: which container of which account, for every type of datastore.

The sandbox stores blobs alone, so that a file share or a file system is a container of that name here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINER: Final[Mapping[str, str]] = {
    "AzureBlob": "containerName",
    "AzureDataLakeGen2": "filesystem",
    "AzureFile": "fileShareName",
}
"""By type: the property that names the container."""


def account_and_container(properties: Mapping[str, Any]) -> tuple[str, str]:
    """Both names; empty where a datastore of another type has none."""
    name = CONTAINER.get(str(properties.get("datastoreType")), "")
    return str(properties.get("accountName") or ""), str(properties.get(name) or "")
