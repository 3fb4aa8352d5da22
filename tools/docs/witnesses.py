"""The witnesses of the sandbox's operations: recordings of Azure, requests of Microsoft's clients, or none."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from amlstack.base.paths import PROJECT
from amlstack.sandbox import kinds
from amlstack.sandbox.protocol.addresses import parse
from tests.support.recordings import stories

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import ResourceKind

FOLDER: Final = PROJECT / "tests" / "support" / "sandbox"
RECORDS: Final = ("clients.json", "other_clients.json")
"""Files of what Microsoft's clients asked for in tests."""
MARKS: Final = ("recorded", "Microsoft's client", "assumed")
_ERROR: Final = 400
_ROW: Final = re.compile(r"^(\| `(Microsoft\.[\w./]+)` \|.*\| )[^|]*\|$", re.MULTILINE)


def operation(method: str, path: str) -> str | None:
    """The operation of a request: ``GET <type>``, ``list <type>``, ``POST <type>/<action>``; None for no type."""
    place = parse(path)
    if method == "POST":
        above, _, action = path.rstrip("/").rpartition("/")
        place = parse(above)
        kind = None if place is None or place.collection else kinds.find(place.type)
        known = None if kind is None else next((one for one in kind.actions if one.lower() == action.lower()), None)
        return None if kind is None or known is None else f"POST {kind.type}/{known}"
    kind = None if place is None else kinds.find(place.type)
    if place is None or kind is None:
        return None
    return f"{'list' if method == 'GET' and place.collection else method} {kind.type}"


def operations(kind: ResourceKind) -> dict[str, str]:
    """The operations of a type: the verb or action, and its name among all types."""
    writes = () if kind.read_only else ("PUT", *(("PATCH",) if kind.patches else ()), "DELETE")
    named = {verb: f"{verb} {kind.type}" for verb in ("GET", "list", *writes)}
    return {**named, **{action: f"POST {kind.type}/{action}" for action in kind.actions}}


@functools.cache
def recorded() -> dict[str, tuple[str, str]]:
    """Operation → day and source of the newest recording in which Azure did it."""
    found: dict[str, tuple[str, str]] = {}
    for story in stories.read():
        for one in story.exchanges:
            name = operation(one.method, one.path) if one.answer.status < _ERROR else None
            if name is not None:
                found[name] = max(found.get(name, ("", "")), (story.date, story.name.partition(" ")[0]))
    return found


@functools.cache
def asked() -> frozenset[str]:
    """The operations that Microsoft's clients asked for."""
    return frozenset(one for name in RECORDS for one in json.loads((FOLDER / name).read_text("utf-8"))["operations"])


def mark(name: str) -> str:
    """The way in which an operation is known, with the source and the day of a recording."""
    if name in recorded():
        day, source = recorded()[name]
        return f"{MARKS[0]} ({source}, {day})"
    return MARKS[1] if name in asked() else MARKS[2]


def known_by(kind: ResourceKind) -> str:
    """The ways in which the operations of a type are known, the recorded ones first."""
    found: dict[str, list[str]] = defaultdict(list)
    for verb, name in operations(kind).items():
        found[mark(name)].append(verb)
    ranked = sorted(found, key=lambda one: (MARKS.index(one.partition(" (")[0]), one))
    return "; ".join(f"{one}: {', '.join(found[one])}" for one in ranked)


def counts() -> str:
    """The number of operations by how they are known, as one sentence."""
    names = [name for kind in kinds.ALL for name in operations(kind).values()]
    found = Counter(mark(name).partition(" (")[0] for name in names)
    parts = [f"{found[one]} are *{one}*" for one in MARKS]
    return f"Of {len(names)} operations on {len(kinds.ALL)} types, {', '.join(parts[:-1])} and {parts[-1]}."


def filled(page: str) -> str:
    """The page with the last cell of each type's row as it is now."""
    by_type = {kind.type: kind for kind in kinds.ALL}
    return _ROW.sub(lambda row: f"{row[1]}{known_by(by_type[row[2]])} |" if row[2] in by_type else row[0], page)
