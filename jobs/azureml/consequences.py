"""Suppresses follow-up findings: what only follows from another error of a file is not reported again."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, Level
from jobs.azureml import preview_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

Placed = tuple[tuple[Any, ...], Finding]
"""A finding with the keys that lead to its place."""

_NAMES = re.compile(r"`([^`]+)`")


def first_causes(found: Iterable[Placed], outer: Collection[str]) -> list[Placed]:
    """The findings of a file without those that another one explains.

    What two readers of the same block have seen is one finding. A key of the job itself inside another block is there
    by its indentation, and so is what stands below it; a key without a value has lost it to the unknown keys that
    follow; a key that is misspelt or misplaced is not missing.

    Args:
        found: Findings in the order of the file.
        outer: Keys of the file itself.
    """
    kept: list[Placed] = []
    astray: set[tuple[Any, ...]] = set()  # blocks that have swallowed keys of the job itself
    for path, finding in preview_keys.remedied(found):
        block, key = path[:-1], path[-1] if path else None
        before = kept[-1] if kept else None
        if (path, finding) in kept:
            continue
        if finding.code != "key-unknown" or finding.remedy:
            kept.append((path, finding))
        elif block in astray:
            continue
        elif len(path) > 1 and key in outer:
            astray.add(block)
            kept.append((path, replace(finding, remedy=f"`{key}` belongs to the job itself: indent it less.")))
        elif before is not None and before[1].code == "value-missing" and before[0][:-1] == block:
            remedy = f"Indent `{key}` further if it belongs to `{before[0][-1]}`; else remove the key."
            kept[-1] = (before[0], replace(before[1], remedy=remedy))
            astray.add(block)
        else:
            kept.append((path, finding))
    return [each for each in kept if not _explained(each, kept)]


def _explained(each: Placed, found: Sequence[Placed]) -> bool:
    """Whether a key that is missing stands there under another name, or in another block."""
    path, finding = each
    if finding.code != "key-missing":
        return False
    missing = set(_NAMES.findall(finding.seen))
    return any(
        other.code == "key-unknown"
        and (
            (where[:-1] == path and missing & set(_NAMES.findall(other.remedy)))
            or (path == () and len(where) > 1 and where[-1] in missing)
        )
        for where, other in found
    )


def unreadable(found: Iterable[Placed]) -> frozenset[tuple[str, ...]]:
    """Keys in the file of which the findings say already that they are not as meant.

    A key that is not known may have been meant as one that its remedy names, here or at the outermost level.
    """
    paths: set[tuple[str, ...]] = set()
    for path, finding in found:
        if finding.level is not Level.ERROR or not path:
            continue
        names = tuple(str(name) for name in path)
        paths.add(names)
        if finding.code == "key-unknown":
            meant = (names[-1], *_NAMES.findall(finding.remedy))
            paths |= {(*block, name) for block in (names[:-1], ()) for name in meant}
    return frozenset(paths)
