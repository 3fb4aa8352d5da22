"""Files that look like secrets: a code snapshot is readable by everybody who can read the workspace."""

from __future__ import annotations

import re
from typing import Final

from amlstack.base.credentials import FORMS
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

_START: Final = re.compile(r"^(?:\\b|\[[^]]*\])")
_CONTENT: Final = tuple(
    (re.compile(_START.sub("", pattern).encode()), re.compile(pattern.encode()), what) for pattern, what in FORMS
)
"""Each pattern twice, first without the boundary or set that it begins with: text at the start is found ten times as
fast, and nearly no file has it."""

HEAD: Final = 1024 * 1024
"""The number of bytes from the start of a file that are looked at."""


def finding(relative: str, secret: tuple[str, int] | None, *, what: str = "code") -> Finding | None:
    """A warning when the file's name or the start of its content looks like a secret; never quotes the content.

    Args:
        relative: Path in the snapshot, with ``/``.
        secret: What `secret_in` found in the content.
        what: ``code`` or ``data``.
    """
    if by_name := _by_name(relative):
        return _finding(relative, f"{relative} looks like a secret: {by_name}", None, what)
    return _finding(relative, f"{relative} holds what looks like {secret[0]}", secret[1], what) if secret else None


def secret_in(head: bytes) -> tuple[str, int] | None:
    """The text at the start of a file that looks like a secret, and its line.

    Args:
        head: The first `HEAD` bytes.
    """
    if b"\0" in head[:8192]:
        return None  # a binary file: matches there are chance
    for quick, pattern, what in _CONTENT:
        if quick.search(head) and (match := pattern.search(head)):
            return what, head.count(b"\n", 0, match.start()) + 1
    return None


def _by_name(relative: str) -> str | None:
    *folders, name = relative.split("/")
    if _TEMPLATE.search(name):
        return None
    stem, _, ending = name.rpartition(".")
    if why := _NAMES.get(name) or (stem and _SUFFIXES.get(f".{ending.lower()}")):
        return why
    if name.startswith(".env."):
        return _NAMES[".env"]
    if _FOLDERS.keys().isdisjoint(folders):
        return None
    folder = next(part for part in folders if part in _FOLDERS)
    return f"{folder}/ holds {_FOLDERS[folder]}"


def _finding(relative: str, seen: str, line: int | None, what: str) -> Finding:
    uploads = "code snapshots" if what == "code" else "data"
    return Finding(
        f"secret-in-{what}",
        "",
        seen,
        f"Everybody who can read the workspace can read its {uploads}, and they are kept",
        "List it in .amlignore and hand the secret over through a key vault or an identity",
        Level.WARNING,
        file=relative,
        line=line,
    )
