"""What of a code folder makes a run the run it is: the files that it runs, without what only lies beside them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.snapshot import remembered
from amlstack.snapshot.job_files import declarations, files_declaring
from amlstack.snapshot.manifest import compact
from amlstack.snapshot.tool_leftovers import litter

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from amlstack.snapshot.folder import Snapshot


@dataclass(frozen=True, slots=True)
class OwnCode:
    """The code of a run, for its identity.

    Attributes:
        hash: Of the files that count, 64 hex digits; empty without code, or where it cannot be read.
        files: The files that count with digests, as `compact` lists them: for naming what changed.
    """

    hash: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def own_code(found: Snapshot, *, declared_in: Collection[Path] = (), commands: Sequence[str] = ()) -> OwnCode:
    """The part of a scanned folder that counts for the identity of the run that it is the code of.

    Args:
        found: The folder; what travels beside it never counts.
        declared_in: The job's own file.
        commands: What the run executes: a job file that they name is code.
    """
    if not found.hash:
        return OwnCode()
    kept = remembered.keeper(found.root) if remembered.is_large(found.files) else None
    if kept is None:
        return _own_code(found, declared_in, commands)
    declared = [str(path.resolve()) for path in declared_in]
    places = sorted(file.relative for file in found.files if file.place in declared)
    key = f"own {found.key} {json.dumps([places, list(commands)])}"
    if (known := kept.read(key)) is not None:
        return OwnCode(known[0], known[1])
    own = _own_code(found, declared_in, commands)
    if remembered.is_steady(found.files):
        kept.write(key, [own.hash, own.files])
    return own


def has_job_files(found: Snapshot) -> bool:
    """Whether job files lie in a folder; without one, what counts of it is the same for all runs declared elsewhere."""
    left = litter(found.own_digests)
    return any(files_declaring([file for file in found.files if file.relative not in left]))


def _own_code(found: Snapshot, declared_in: Collection[Path], commands: Sequence[str]) -> OwnCode:
    digests = found.own_digests
    left = litter(digests)
    left |= declarations(found, declared_in, commands, left)
    digests = {path: digest for path, digest in digests.items() if path not in left}
    return OwnCode(_hash(digests), compact(digests))


def together(codes: Mapping[str, OwnCode]) -> OwnCode:
    """The code of a run of several parts, by their places; parts with the same files are listed once."""
    if not codes:
        return OwnCode()
    hashes = {place: code.hash for place, code in codes.items()}
    first: dict[str, str] = {}
    for place, digest in sorted(hashes.items()):
        first.setdefault(digest, place)
    several = len(first) > 1
    files = {
        f"{place.removeprefix('jobs.')}/{name.removeprefix('./')}" if several else name: digest
        for place in first.values()
        for name, digest in codes[place].files.items()
    }
    return OwnCode(_of_parts(hashes), compact(files))


def _hash(digests: Mapping[str, str]) -> str:
    """Of names and contents; where nothing is left that counts, still a hash."""
    return hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest()


def _of_parts(hashes: Mapping[str, str]) -> str:
    return hashlib.sha256(repr(sorted(hashes.items())).encode()).hexdigest()
