"""Files that look like secrets: a code snapshot is readable by everybody who can read the workspace."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from amlstack.base.credential_patterns import FORMS
from amlstack.base.findings import Finding, Level

_NAMES: Final = {
    ".env": "environment files usually hold credentials",
    ".netrc": "it holds passwords of hosts",
    ".pgpass": "it holds database passwords",
    ".git-credentials": "it holds tokens of git hosts",
    "id_rsa": "it is named like an SSH key",
    "id_dsa": "it is named like an SSH key",
    "id_ecdsa": "it is named like an SSH key",
    "id_ed25519": "it is named like an SSH key",
    "msal_token_cache.json": "it holds tokens of the Azure CLI",
    "accessTokens.json": "it holds tokens of the Azure CLI",
}
_SUFFIXES: Final = {
    ".pfx": "it is a key store",
    ".p12": "it is a key store",
    ".jks": "it is a key store",
    ".kdbx": "it is a password database",
}
_FOLDERS: Final = {".ssh": "keys of SSH", ".aws": "credentials of AWS", ".azure": "tokens of the Azure CLI"}
_TEMPLATE: Final = re.compile(r"\.(example|sample|template|dist)$", re.IGNORECASE)

_CONTENT: Final = tuple((re.compile(pattern.encode()), what) for pattern, what in FORMS)

HEAD: Final = 1024 * 1024
"""How many bytes from the start of a file are looked at."""


def suspicion(relative: str, head: bytes) -> Finding | None:
    """A warning when the file's name or the start of its content looks like a secret; never quotes the content.

    Args:
        relative: Path in the snapshot, with ``/``.
        head: The first `HEAD` bytes.
    """
    by_name = _by_name(PurePosixPath(relative))
    if by_name:
        return _finding(relative, f"{relative} looks like a secret: {by_name}", None)
    if b"\0" in head[:8192]:
        return None  # a binary file: matches there are chance
    for pattern, what in _CONTENT:
        if match := pattern.search(head):
            line = head.count(b"\n", 0, match.start()) + 1
            return _finding(relative, f"{relative} holds what looks like {what}", line)
    return None


def _by_name(path: PurePosixPath) -> str | None:
    name = path.name
    if _TEMPLATE.search(name):
        return None
    if why := _NAMES.get(name) or _SUFFIXES.get(path.suffix.lower()):
        return why
    if name.startswith(".env."):
        return _NAMES[".env"]
    folder = next((part for part in path.parts[:-1] if part in _FOLDERS), None)
    return f"{folder}/ holds {_FOLDERS[folder]}" if folder else None


def _finding(relative: str, seen: str, line: int | None) -> Finding:
    return Finding(
        "secret-in-code",
        "",
        seen,
        "Everybody who can read the workspace can read its code snapshots, and they are kept",
        "List it in .amlignore and hand the secret over through a key vault or an identity",
        Level.WARNING,
        file=relative,
        line=line,
    )
