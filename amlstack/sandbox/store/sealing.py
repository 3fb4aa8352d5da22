"""Environment variables in stored bodies, encrypted: they may be secrets, and nothing on the wire says which are.

What lies in the database is unreadable without the key beside it, so that a copy of the database, a search through the
home or an excerpt of it in a report shows none. It is no protection from whoever reads all files of the home.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.store.database import StateError, reading

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HOLDERS: Final = frozenset({"environmentVariables", "environment_variables"})
"""The keys of bodies and of pipelines' steps that hold variables."""

SEALED: Final = "amlstack-sealed:"
KEY: Final = "variables.key"
_NONCE: Final = 12


def dumps(body: Any, database: Path) -> str:
    """A body as JSON, the values of its variables encrypted.

    Args:
        body: Any JSON.
        database: The file that it goes into; the key lies beside it.
    """
    return json.dumps(_changed(body, lambda value: value if value is None else _seal(value, database)))


def loads(text: str, database: Path) -> Any:
    """The body of `dumps`; one that an earlier version wrote in clear text is as it is."""
    with reading(database):
        body = json.loads(text)
        return _changed(body, lambda value: _open(value, database)) if SEALED in text else body


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {
            key: {name: change(item) for name, item in inner.items()}
            if key in HOLDERS and isinstance(inner, dict)
            else _changed(inner, change)
            for key, inner in value.items()
        }
    return [_changed(item, change) for item in value] if isinstance(value, list) else value


def _seal(value: Any, database: Path) -> str:
    nonce = os.urandom(_NONCE)
    sealed = nonce + _cipher(database.parent).encrypt(nonce, json.dumps(value).encode(), None)
    return SEALED + base64.b64encode(sealed).decode()


def _open(value: Any, database: Path) -> Any:
    if not isinstance(value, str) or not value.startswith(SEALED):
        return value
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - most jobs have no variables

    sealed = base64.b64decode(value.removeprefix(SEALED))
    try:
        return json.loads(_cipher(database.parent).decrypt(sealed[:_NONCE], sealed[_NONCE:], None))
    except InvalidTag:
        message = f"{database.parent / KEY} is not the key that the variables of jobs were stored with. "
        raise StateError(message + "Run `amlstack sandbox reset` to start from nothing.") from None


_KNOWN: Final[dict[str, tuple[tuple[int, int, int], AESGCM]]] = {}
"""Key file → its inode, times of change in ns, and its cipher: a list of jobs would read the file for each variable."""


def _cipher(folder: Path) -> AESGCM:
    path = f"{folder}{os.sep}{KEY}"
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path)  # noqa: PTH116 - a tenth of the time of `Path.stat`, once for each variable
        seen, known = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns), _KNOWN.get(path)
        if known is not None and known[0] == seen:
            return known[1]
        _KNOWN[path] = seen, _read(folder / KEY)
        return _KNOWN[path][1]
    return _made(folder)


def _read(path: Path) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - most jobs have no variables

    return AESGCM(path.read_bytes())


def _made(folder: Path) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - most jobs have no variables

    fresh = folder / f"{KEY}.{os.getpid()}.{threading.get_ident()}"
    fresh.touch(mode=0o600)
    fresh.write_bytes(AESGCM.generate_key(bit_length=256))
    try:
        os.link(fresh, folder / KEY)  # of several processes and threads one makes it
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return _read(folder / KEY)
