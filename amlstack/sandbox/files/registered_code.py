"""Registered code on disk: from a code version's id, or a blob address, to its files."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from amlstack.sandbox.protocol.azure_hosts import BLOB as BLOB_SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import Store


def locate(uri: str) -> tuple[str, str, str] | None:
    """Account, container and name (may be empty) behind a blob address; None when it is none of ours.

    Both ``https://127.0.0.1:PORT/blob/<account>/<container>/<name>`` (whatever the port was when it was written) and
    ``https://<account>.blob.core.windows.net/<container>/<name>`` are taken.
    """
    parts = urlsplit(uri)
    words = [unquote(word) for word in parts.path.strip("/").split("/")]
    host = parts.hostname or ""
    if parts.scheme != "https" or not all(words):
        return None
    if host.endswith(BLOB_SUFFIX):
        return host.removesuffix(BLOB_SUFFIX), words[0], "/".join(words[1:])
    if host in {"127.0.0.1", "localhost", "::1"} and words[0] == "blob" and len(words) >= 3:
        return words[1].partition(".")[0], words[2], "/".join(words[3:])
    return None


def unpack(store: Store, code_id: str, target: Path) -> int:
    """Writes the files of a code version (``<workspace>/codes/<name>/versions/<version>``) into a folder.

    Returns:
        The number of files.

    Raises:
        LookupError: The version is not registered, or its files are gone.
    """
    version = store.resources.get(code_id)
    if version is None:
        message = f"the code version {code_id} is not registered"
        raise LookupError(message)
    uri = version.body["properties"]["codeUri"]
    place = locate(uri)
    count = 0 if place is None else store.blobs.unpack(*place, target)
    if not count:
        message = f"there are no files at {uri}, where the code version {code_id} should have them"
        raise LookupError(message)
    return count
