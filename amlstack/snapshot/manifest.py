"""The files of a run's code as a short list with digests, to say later which of them changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST: Final = 256
"""Entries of a list at most: a folder with more files than there is room for is one entry."""
_DIGITS: Final = 10

_Tree = dict[str, Any]
"""What a folder holds: name to digest of a file, ``name/`` to digest of a folder that is one entry, name to a tree."""


def compact(digests: Mapping[str, str], most: int = MOST) -> dict[str, str]:
    """Files and, where those are too many, folders (their names end in ``/``) with ten hex digits of their content.

    Folders are opened from the top down, as long as the list has room.

    Args:
        digests: The content digest of each file, by its path with ``/``.
        most: How many entries there may be.
    """
    root = _tree({path: digest[:_DIGITS] for path, digest in digests.items()})
    if len(root) > most:
        return {"./": _digest(root)}
    entries: dict[str, Any] = {_entry(name, node): node for name, node in root.items()}
    waiting = [(name, node) for name, node in entries.items() if isinstance(node, dict)]
    for folder, node in waiting:  # grows as folders are opened: the upper ones come first
        if len(entries) - 1 + len(node) > most:
            continue
        del entries[folder]
        inner = {f"{folder}{_entry(name, each)}": each for name, each in node.items()}
        entries |= inner
        waiting += [(name, each) for name, each in inner.items() if isinstance(each, dict)]
    return {name: _digest(node) for name, node in sorted(entries.items())}


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    """``train.py changed``, ``data.py added``, ``old.py removed`` between two lists that `compact` made."""
    whole = {name for entries in (old, new) for name in entries if name.endswith("/")}
    before, after = _closed(old, whole), _closed(new, whole)
    return tuple(
        f"{name} {'added' if name not in before else 'removed' if name not in after else 'changed'}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _closed(entries: Mapping[str, str], folders: set[str]) -> dict[str, str]:
    """The list with these folders as one entry each, so that two lists can be compared name by name."""
    if "./" in folders:
        return dict(entries) if "./" in entries else {"./": _digest(_tree(entries))} if entries else {}
    outer = sorted(folders, key=lambda name: name.count("/"))
    result: dict[str, str] = {}
    below: dict[str, dict[str, str]] = {}
    for name, digest in entries.items():
        folder = next((each for each in outer if name != each and name.startswith(each)), None)
        if folder is None:
            result[name] = digest
        else:
            below.setdefault(folder, {})[name.removeprefix(folder)] = digest
    return result | {folder: _digest(_tree(inner)) for folder, inner in below.items()}


def _tree(entries: Mapping[str, str]) -> _Tree:
    root: _Tree = {}
    for path, digest in entries.items():
        closed = "/" if path.endswith("/") else ""
        *folders, last = path.removesuffix("/").split("/")
        node = root
        for folder in folders:
            node = node.setdefault(folder, {})
        node[f"{last}{closed}"] = digest
    return root


def _entry(name: str, node: Any) -> str:
    return f"{name}/" if isinstance(node, dict) else name


def _digest(node: Any) -> str:
    """A file's digest, or a folder's: the same whether its own folders are given by their files or by digests."""
    if isinstance(node, str):
        return node
    whole = hashlib.sha256("\n".join(_lines(node)).encode())
    return whole.hexdigest()[:_DIGITS]


def _lines(node: _Tree) -> Iterator[str]:
    for name in sorted(node, key=lambda each: each.removesuffix("/")):
        yield f"{name.removesuffix('/')}/{_digest(node[name])}"
