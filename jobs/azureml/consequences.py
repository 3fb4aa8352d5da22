"""Suppresses follow-up findings: what only follows from another error of a file is not reported again.

Words of the CLI's preview that are still found in public files, and what they became.

Only the remedy of a finding changes: whether a key is known is decided where it is read.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.base.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

ANY = "*"


class Former(NamedTuple):
    """One former spelling.

    Attributes:
        path: The last keys that lead to it; ``*`` is any name.
        code: Of the finding that it gives today.
        remedy: What to write instead.
        seen: What the finding has to say for this to apply: a key may be there in its new form, with another fault.
    """

    path: tuple[str, ...]
    code: str
    remedy: str
    seen: str = ""


_DATA = "Write `type: uri_folder` (or `uri_file`) and `path: …`; a data asset is `path: azureml:NAME:VERSION`."
TABLE = (
    Former(("code",), "value-kind", "Write the folder itself: `code: src`, without `local_path`.", "a mapping"),
    Former(
        ("compute",),
        "value-kind",
        "Write `compute: azureml:NAME`, and the number of nodes as `resources: {instance_count: …}`.",
        "a mapping",
    ),
    *(
        Former(("inputs", ANY, key), "key-unknown", _DATA)
        for key in ("data", "dataset", "file", "folder", "local_path")
    ),
    Former(("environment", "docker"), "key-unknown", "Write `image` directly under `environment`."),
    Former(("build", "local_path"), "key-unknown", "It is called `path` now."),
    Former(("services", ANY, "job_service_type"), "key-unknown", "It is called `type` now."),
    Former(("distribution", "type"), "value-unknown", "In a job it is called `pytorch`.", "`torch.distributed`"),
    Former(("jobs", ANY, "type"), "value-unknown", "A step with a component is of type `command`.", "`component`"),
    Former(
        ("schedule",),
        "key-unknown",
        "A schedule is a file of its own, with `trigger` and with this file as `create_job`.",
    ),
    *(
        Former((key,), "key-unknown", f"It stands in a block: `resources: {{{key}: …}}`.")
        for key in ("instance_count", "instance_type", "shm_size", "docker_args")
    ),
    Former(
        ("process_count_per_instance",),
        "key-unknown",
        "It stands in a block: `distribution: {type: pytorch, process_count_per_instance: …}`.",
    ),
)


def remedied(found: Iterable[tuple[tuple[Any, ...], Finding]]) -> Iterator[tuple[tuple[Any, ...], Finding]]:
    """The findings of a file, each that a former spelling gave with what is written today."""
    for path, finding in found:
        entry = next((entry for entry in TABLE if _is(entry, path, finding)), None)
        yield path, replace(finding, remedy=entry.remedy) if entry else finding


def _is(entry: Former, path: tuple[Any, ...], finding: Finding) -> bool:
    tail = path[-len(entry.path) :]
    return (
        finding.code == entry.code
        and entry.seen in finding.seen
        and len(tail) == len(entry.path)
        and all(want in (ANY, key) for want, key in zip(entry.path, tail, strict=True))
        # One word alone is a key of the file or of a step, never of a deeper block.
        and (len(entry.path) > 1 or len(path) == 1 or path[0] == "jobs")
    )


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
    for path, finding in remedied(found):
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
    """True where a key that is missing stands there under another name, or in another block."""
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
