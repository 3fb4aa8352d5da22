"""Answers of services side by side, as facts: what was said, by which form, without what is new in each answer.

Each fact that two answers have in common or differ in is found by its path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from xml.etree import ElementTree as ET

from amlstack.prove.forms import flat, written

SECRET: Final = "c2VjcmV0"
"""Stands for every key, password and token."""
_SECRET: Final = re.compile(
    r"(?i)(?:key|primary_?key|secondary_?key|userStorageKey|adminUserPassword|adminUserSshPublicKey|password2?|secret"
    r"|clientSecret|sasToken|token|pat|instrumentationKey|connectionString|sharedKey|.*SharedKey|username|value1|value2)"
)
"""Names of what is a secret wherever its value is text."""
_WHO: Final = re.compile(r"(?:created|lastModified)By|userName|owner")
_NODES: Final = re.compile(r"(?!min|max)\w+NodeCount")
ROWS: Final = 10
"""So many rows of a list are compared."""


def is_secret(name: str) -> bool:
    """True where a key of this name holds what must not be kept."""
    return _SECRET.fullmatch(name) is not None


def template(value: Any, name: str = "") -> Any:
    """A body whose texts are written as forms: of a secret or a person that there is one, of lists the first rows."""
    if isinstance(value, dict):
        return {written(key): template(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [template(inner, name) for inner in value[:ROWS]]
    if not isinstance(value, str):
        return value
    if value and is_secret(name):
        return "<secret>"
    return "<who>" if value and _WHO.fullmatch(name) else written(value)


def of_moment(value: Any, name: str = "") -> Any:
    """An answer about a cluster without what its other users change by the minute: counts of nodes are a form."""
    if isinstance(value, dict):
        return {key: of_moment(inner, key) for key, inner in value.items()}
    if isinstance(value, int) and _NODES.fullmatch(name):
        return "<count>"
    return "<state>" if name == "allocationState" and value in ("Steady", "Resizing") else value


def of_xml(text: str) -> Any:
    """A document as objects: elements of one name in a row are a list; of several lines of text the first."""
    try:
        return _element(ET.fromstring(text.lstrip("\ufeff")))
    except ET.ParseError:
        return None


def _element(element: ET.Element) -> Any:
    found: dict[str, Any] = {}
    for child in element:
        found.setdefault(child.tag, []).append(_element(child))
    if not found:
        return (element.text or "").partition("\n")[0]
    return {tag: rows if len(rows) > 1 else rows[0] for tag, rows in found.items()}


AS_SENT: Final = "as sent"
"""In place of a value that the request had at the same path."""
ABSENT: Final = "absent"
_LISTS: Final = (
    *("value", "Blobs.Blob", "Blobs.BlobPrefix", "Containers.Container", "TagSet.Tag"),
    *("CommittedBlocks.Block", "UncommittedBlocks.Block"),
)
"""The lists of answers whose rows have names; XML writes one row as it writes an object, and no row as empty text."""
_OPERATION: Final = "operation"
_NAMES: Final = "name", "id", _OPERATION, "namespace", "resourceType", "name"
"""Keys that name a row of a list, the first that names each of them; at last names that several have, by their turn.

Operations of a deployment are named by what they make, and are in the order in which they happened to end.
"""
_TYPES: Final = "resourceTypes"
_HIDDEN: Final = "<hidden>"
"""Stands where a recorder has hidden a value: any is equal to it."""


@dataclass(frozen=True)
class GivenAnswer:
    """The answer of a service to one request, as a template (`template`).

    Attributes:
        status: Of HTTP.
        headers: Those that clients act on, by names in lower-case letters.
        body: JSON, or None.
        states: Each status that polls have seen, in their order.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    states: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class ComparedFact:
    """One fact of an answer: what Azure says at a path, and what the other service says there, both as JSON."""

    path: str
    azure: str
    other: str

    @property
    def equal(self) -> bool:
        """True where both say the same."""
        if _HIDDEN in self.azure and self.other not in {ABSENT, AS_SENT}:
            return re.fullmatch(".+".join(map(re.escape, self.azure.split(_HIDDEN))), self.other) is not None
        return self.azure == self.other or (self.azure == f'"{_HIDDEN}"' and self.other == AS_SENT)


def facts(answer: GivenAnswer, sent: Any = None) -> dict[str, str]:
    """Path → what is said there; a value that was ``sent`` at its path is :data:`AS_SENT`."""
    found = {"status": str(answer.status)}
    found |= {f"header {name}": value for name, value in answer.headers.items()}
    if answer.states:
        found["states"] = " ".join(answer.states)
    known = flat(template(sent))
    for path, value in flat(template(answer.body)).items():
        same = (
            path in known and type(known[path]) is type(value) and known[path] == value and value not in ({}, [], None)
        )
        found["body.status" if path == "status" else path or "body"] = (
            AS_SENT if same else json.dumps(value, ensure_ascii=False)
        )
    return found


def compared(azure: GivenAnswer, other: GivenAnswer, sent: Any = None) -> list[ComparedFact]:
    """Each fact of either answer; where the statuses are far apart, the bodies say nothing about each other."""
    azure, other, rows = _paired(azure, other)
    left, right = {**facts(azure, sent), **rows[0]}, {**facts(other, sent), **rows[1]}
    if azure.status // 100 != other.status // 100:
        return [ComparedFact("status", left["status"], f"{right['status']} {_code(other.body)}".strip())]
    pairs = ((path, left.get(path, ABSENT), right.get(path, ABSENT)) for path in sorted({*left, *right}))
    # A story that was distilled before a form was known has the text.
    return [ComparedFact(path, *(pair if pair[0] == pair[1] else map(written, pair))) for path, *pair in pairs]


def _paired(azure: GivenAnswer, other: GivenAnswer) -> tuple[GivenAnswer, GivenAnswer, list[dict[str, str]]]:
    """Lists with the rows that both have, by their names; how many each has, and in which order, are facts."""
    facts: list[dict[str, str]] = [{}, {}]
    for place in _LISTS:
        lists = [_rows(one.body, place) for one in (azure, other)]
        if None in lists or (place != "value" and not any(lists)):
            continue
        shown, orders = _shared([one or [] for one in lists])
        begin = "" if place == "value" else f"{place} "
        for said, one, order in zip(facts, lists, orders, strict=True):
            said |= {f"{begin}rows": str(len(one or ())), **({f"{begin}order": order} if order else {})}
        for at, pair in enumerate(zip(*shown, strict=True)):
            types = [row.get(_TYPES) or [] if isinstance(row, dict) else [] for row in pair]
            if all(types):
                for side, (row, part) in enumerate(zip(pair, _shared(types)[0], strict=True)):
                    shown[side][at] = {**row, _TYPES: part}
                    facts[side][f"{place}[{at}].{_TYPES} rows"] = str(len(row[_TYPES]))
        azure, other = (
            replace(one, body=_with(one.body, place, part)) for one, part in zip((azure, other), shown, strict=True)
        )
    return azure, other, facts


def _name(row: dict[str, Any]) -> str:
    """The name of a row in a list, with the version, the snapshot or the deletion of a blob: these share its name."""
    marks = (key for key in ("Snapshot", "VersionId", "Deleted", "Version") if key in row)
    return " ".join((str(row.get("name", row.get("Name", row.get("Key")))), *marks))


def _rows(body: Any, place: str) -> list[Any] | None:
    outer, _, inner = place.partition(".")
    if not isinstance(body, dict) or outer not in body:
        return None
    rows = body[outer]
    if inner:
        rows = rows.get(inner, []) if isinstance(rows, dict) else []
        return rows if isinstance(rows, list) else [rows]
    return rows if isinstance(rows, list) else None


def _with(body: dict[str, Any], place: str, rows: list[Any]) -> dict[str, Any]:
    outer, _, inner = place.partition(".")
    if not inner:
        return {**body, outer: rows}
    rest = {key: value for key, value in body[outer].items() if key != inner} if isinstance(body[outer], dict) else {}
    return {**body, outer: {**rest, **({inner: rows} if rows else {})}}


def _shared(lists: list[list[Any]]) -> tuple[list[list[Any]], list[str]]:
    """Two lists with the rows that both have, and their order; as many rows as both have where nothing names them."""
    for at, key in enumerate(_NAMES):
        named = [_by(key, one, again=at == len(_NAMES) - 1) for one in lists]
        if all(len(names) == len(one) for names, one in zip(named, lists, strict=True)):
            both = [name for name in named[0] if name in named[1]]
            orders = [" ".join(name for name in names if name in both and key != _OPERATION) for names in named]
            return [[names[name] for name in both] for names in named], orders
    least = min(map(len, lists))
    return [one[:least] for one in lists], ["", ""]


def _called(key: str, row: dict[str, Any]) -> str:
    inner = row.get("properties")
    if key == _OPERATION and isinstance(inner, dict):
        return str((inner.get("targetResource") or {}).get("id") or inner.get("provisioningOperation"))
    return _name(row) if key == "name" else str(row.get(key))


def _by(key: str, rows: list[Any], *, again: bool) -> dict[str, Any]:
    """Rows by what a key says; those that say what an earlier one did with their turn, or not at all."""
    found: dict[str, Any] = {}
    for row in rows:
        name = _called(key, row) if isinstance(row, dict) else "None"
        if name != "None":
            turn = sum(1 for each in found if each.partition("\n")[0] == name) if again else 0
            found[f"{name}\n{turn}" if turn else name] = row
    return found


def _code(body: Any) -> str:
    error = body.get("error") if isinstance(body, dict) else None
    return f"{error.get('code')}: {error.get('message')}" if isinstance(error, dict) else ""
