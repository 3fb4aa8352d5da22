"""Two recordings of one walk side by side: what each service answered, as facts without ids and times."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from amlstack.prove import forms

Exchange = dict[str, Any]
_HOST: Final = re.compile(r"(?:https://)?127\.0\.0\.1:\d+|https://AZURE")
_HASH: Final = re.compile(r"\b[0-9a-fA-F]{10,64}\b")
"""Ends of names that hash where they lie are shorter than the hashes of `forms`."""
_STATES: Final = (("properties", "provisioningState"), ("status",), ("properties", "status"))
_UNORDERED: Final = "/resources", "/roleAssignments", "/policyDefinitions", "/policySetDefinitions"
_POLLED: Final = re.compile(r"(?i)<operation>|/operation(?:s|Status|Results)")
"""Addresses that are asked until an operation ends: how often, and whether a 202 is seen, depends on the moment."""
_PASSING: Final = re.compile(rf"{_POLLED.pattern}|/jobs/|/computes/|/runs/")
"""Addresses whose answer depends on the moment of the question."""


@dataclass(frozen=True, slots=True, order=True)
class DifferingFact:
    """One fact that the two services answer otherwise.

    Attributes:
        step: Where it was met first.
        request: Method and address without ids.
        aspect: ``answers``, ``states``, ``header NAME``, or the path of a key of the body.
        azure, sandbox: What each says; ``None`` for absent, as JSON.
    """

    step: str
    request: str
    aspect: str
    azure: str
    sandbox: str

    def line(self) -> str:
        """The fact as one line of JSON, with Azure's answer as what holds."""
        return json.dumps({"request": self.request, "aspect": self.aspect, "azure": self.azure, "step": self.step})


def read(file: Path) -> list[Exchange]:
    """The exchanges of a recording; a line that a kill cut off is left out."""
    found = []
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def plain(text: str, proof_id: str) -> str:
    """A text without ids, hosts and times."""
    return _HASH.sub("HASH", forms.written(_HOST.sub("HOST", text.replace(proof_id, "ID"))))


def both(one: Iterable[Exchange], other: Iterable[Exchange]) -> frozenset[str]:
    """Addresses that both recordings have: an id in one of them is no matter of chance, and two of them stay two."""
    left, right = ({each["path"].partition("?")[0] for each in some} for some in (one, other))
    return frozenset(left & right)


def facts(
    exchanges: Iterable[Exchange], proof_id: str, same: frozenset[str] = frozenset()
) -> dict[str, dict[str, tuple[str, str]]]:
    """Request → aspect → (step, value) of a recording; ids stay in the addresses of ``same``."""
    grouped: dict[str, list[Exchange]] = defaultdict(list)
    for one in exchanges:
        path = one["path"].partition("?")[0]
        path = path.replace(proof_id, "ID") if path in same else plain(path, proof_id)
        if "/metadata/" not in path:
            grouped[f"{one['method']} {path}"].append(one)
    return {request: dict(_aspects(request, some, proof_id)) for request, some in grouped.items()}


def _aspects(request: str, some: list[Exchange], proof_id: str) -> Iterator[tuple[str, tuple[str, str]]]:
    first = some[0]["step"]
    answers = _runs([[one["status"], _code(one)] for one in some])
    polled = request.startswith("GET") and _POLLED.search(request) is not None
    if polled:
        answers = answers[-1:]
    elif request.startswith(("GET", "HEAD")):  # what is asked before and after it is made is a matter of the moment
        answers = sorted({tuple(each) for each in answers})
    yield "answers", (first, json.dumps(answers))
    states = _states(some)
    if states:
        yield "states", (first, json.dumps(states))
    good = [one for one in some if 200 <= one["status"] < 300]
    if not good:
        return
    for name, value in good[-1 if polled else 0]["headers"].items():
        yield f"header {name}", (first, plain(str(value).partition("?")[0], proof_id))
    if not _PASSING.search(request) or request.startswith("PUT"):
        for path, value in forms.flat(_listed(request, good[0]["body"])).items():
            yield path or "body", (good[0]["step"], plain(json.dumps(value), proof_id))
    elif (body := good[-1]["body"]) is not None:
        for path, value in forms.flat(_listed(request, body)).items():
            yield path or "body", (good[-1]["step"], plain(json.dumps(value), proof_id))


def _states(some: list[Exchange]) -> list[str]:
    """The states of the one resource or operation, of those with this address, that showed most of them."""
    met: dict[str, dict[str, None]] = defaultdict(dict)
    for one in some:
        if (state := _state(one["body"])) is not None:
            met[one["path"]][state] = None
    return max(map(list, met.values()), key=len, default=[])


def _runs(values: list[Any]) -> list[Any]:
    """Values without repetitions that follow each other."""
    return [value for at, value in enumerate(values) if not at or values[at - 1] != value]


def _code(one: Exchange) -> str:
    error = one["body"].get("error") if isinstance(one["body"], dict) else None
    return str(error.get("code") or "") if isinstance(error, dict) else ""


def _state(body: Any) -> str | None:
    for path in _STATES:
        value: Any = body
        for word in path:
            value = value.get(word) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value
    return None


def _listed(request: str, body: Any) -> Any:
    """A body; the list of all resources of a group, whose order is that of their making, by their ids."""
    if isinstance(body, dict) and request.endswith(_UNORDERED) and isinstance(body.get("value"), list):
        return {**body, "value": sorted(body["value"], key=lambda row: str(row.get("id")).lower())}
    return body


def compare(
    azure: Mapping[str, Mapping[str, tuple[str, str]]], sandbox: Mapping[str, Mapping[str, tuple[str, str]]]
) -> tuple[int, list[DifferingFact]]:
    """The number of equal facts, and the facts that differ; a request that one walk alone made is one difference."""
    alike, found = 0, []
    for request in sorted({*azure, *sandbox}):
        left, right = azure.get(request), sandbox.get(request)
        if left is None or right is None:
            step = next(iter((left or right or {}).values()))[0]
            said = ["asked" if side else "not asked" for side in (left, right)]
            found.append(DifferingFact(step, request, "request", *said))
            continue
        for aspect in sorted({*left, *right}):
            one, other = left.get(aspect), right.get(aspect)
            if one and other and _alike(request, aspect, one[1], other[1]):
                alike += 1
            else:
                step = (one or other or ("", ""))[0]
                found.append(
                    DifferingFact(step, request, aspect, one[1] if one else "absent", other[1] if other else "absent")
                )
    return alike, found


def _alike(request: str, aspect: str, one: str, other: str) -> bool:
    """Equal; of what passes, states in no other order and the same end."""
    if one == other:
        return True
    if aspect not in {"states", "answers"}:
        return False
    left, right = json.loads(one), json.loads(other)
    if left[-1] != right[-1] or not (_PASSING.search(request) or aspect == "states"):
        return False
    if aspect == "answers":
        return all(each[0] < 400 for each in (*left, *right) if each != left[-1]) and left[0] == right[0]
    both = [state for state in left if state in right]
    return both == [state for state in right if state in left] and bool(both)
