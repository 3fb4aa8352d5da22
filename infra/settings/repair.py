"""Mistakes in settings as findings, and their repair, so that the rest is judged in the same run."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amlstack.base import models
from amlstack.base.findings import Finding, Level, stated
from infra.settings.model.stack import Settings
from infra.settings.stackfile import NAMESPACE, Loc

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


EXPLAINER = models.Explainer(
    Settings, models.Codes("setting-missing", "setting-unknown", "setting-refused", "setting-value")
)


def dotted(loc: Loc) -> str:
    """``amlstack:clusters[0].nodes.max`` of ``("clusters", 0, "nodes", "max")``."""
    return f"{NAMESPACE}:{models.where(loc)}"


Found = tuple[Loc, Finding]
"""A finding, and the path of the setting that it is about."""


def finding_at(loc: Loc, code: str, seen: str, rule: str, remedy: str = "", *, level: Level = Level.ERROR) -> Found:
    """A finding on the setting at a path."""
    return loc, Finding(code, dotted(loc), seen, rule, remedy, level)


def stated_at(loc: Loc, key: str, level: Level = Level.ERROR, /, **values: Any) -> Found:
    """A finding on the setting at a path, in the words of `amlstack/base/findings.json`."""
    return loc, stated(key, dotted(loc), level, **values)


def describe(error: ErrorDetails) -> Finding:
    """One of pydantic's errors as a finding, its place not yet in a file."""
    loc, seen = EXPLAINER.written(error["loc"]), error.get("input")
    if error["type"] == "string_pattern_mismatch" and loc[-1] == "public_key":
        error = {**error, "input": f"{str(seen)[:11]}…"}  # what was meant as a public key may be the private one
    found = EXPLAINER.finding(error)
    return replace(found, where=dotted(loc), remedy=found.remedy or _idle_remedy(loc, seen))


def _idle_remedy(loc: Loc, seen: Any) -> str:
    """Seconds and shorthands are what people write for a duration: the same as ISO 8601."""
    if loc[-2:] != ("nodes", "idle") or not isinstance(seen, str | int):
        return ""
    text = str(seen).strip().lower()
    if text.isdigit():
        return f"For {text} seconds write PT{text}S"
    number, unit = text[:-1], text[-1:]
    return f"Write PT{number}{unit.upper()}" if number.isdigit() and unit in "hms" else ""


_MADE_UP: dict[str, Any] = {
    "location": "westeurope",
    "workspace": "doubtful",
    "name": "doubtful",
    "curated": "doubtful",
    "image": "doubtful",
    "size": "doubtful",
    "file": "doubtful",
    "container": "doubtful",
    "path": "doubtful",
    "role": "doubtful",
    "principals": [{"id": "00000000-0000-0000-0000-000000000000", "type": "user"}],
    "id": "00000000-0000-0000-0000-000000000000",
    "type": "user",
    "nodes": {"max": 1},
    "max": 1,
    "user": "doubtful",
    "public_key": f"ssh-rsa {'A' * 64}",
    "key": "doubtful",
    "subnet": "/subscriptions/-/resourceGroups/-/providers/Microsoft.Network/virtualNetworks/-/subnets/-",
}
"""A legal value of each key that has no default."""


class Mending:
    """Settings on their way to being readable.

    Attributes:
        values: The settings as they are now.
        doubtful: Paths of what was made up.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values: dict[str, Any] = copy.deepcopy(values)
        self.doubtful: set[Loc] = set()
        self._renamed: dict[Loc, Loc] = {}
        self._dropped: set[Loc] = set()

    def news(self, errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
        """Those errors that are a person's, and follow from no other one."""
        given = _given(self._target(error) for error in errors) | self._dropped
        return [error for error in errors if not self._follows(error, given)]

    def _follows(self, error: ErrorDetails, given: set[Loc]) -> bool:
        """True where it follows from another error: of a key that was misspelt or dropped, of values made up."""
        loc = EXPLAINER.written(error["loc"])
        made_up = error["type"] == "value_error" and any(one[: len(loc)] == loc != one for one in self.doubtful)
        return made_up or (error["type"] == "missing" and loc in given)

    def mend(self, errors: Sequence[ErrorDetails]) -> None:
        """Change the values so that these errors do not come again."""
        renames = {EXPLAINER.written(error["loc"]): self._target(error) for error in errors}
        given = _given(renames.values())
        for error in sorted(errors, key=lambda each: -len(each["loc"])):  # inner ones first: paths stay true
            loc = EXPLAINER.written(error["loc"])
            if error["type"] == "missing":
                if loc not in given:
                    self.put(loc, copy.deepcopy(_MADE_UP.get(str(loc[-1]), "doubtful")))
                    self.doubtful.add(loc)
            elif (target := renames[loc]) and (around := self._around(loc, target[len(loc) - 1 :])) is not None:
                around[str(target[-1])] = self._take(loc)
                self._renamed[target] = loc
            elif len(loc) == 2 and isinstance(loc[-1], int):
                self.put(loc, _item(str(loc[0])))
                self.doubtful.add(loc)
            elif isinstance(loc[-1], int):  # an entry of a list that has a default: the whole list becomes that
                self._take(loc[:-1])
                self._dropped.add(loc[:-1])
            elif error["type"] == "value_error":  # about several keys together: each of them is in doubt
                self.put(loc, copy.deepcopy(_MADE_UP.get(str(loc[-1]), {})))
                self.doubtful.add(loc)
            else:
                self._take(loc)
                self._dropped.add(loc)

    def leave_out(self, loc: Loc) -> None:
        """Read on without a setting that is refused, whatever it is."""
        if len(loc) > 1 and isinstance(loc[-1], int):
            self.put(loc, _item(str(loc[0])))
            self.doubtful.add(loc)
        else:
            self._take(loc)
            self._dropped.add(loc)

    def gone(self, *locs: Loc) -> bool:
        """True where any of these is not as the person wrote it: made up, or left out."""
        return any(loc in self.doubtful or loc in self._dropped for loc in locs)

    def written(self, loc: Loc) -> Loc:
        """The place of the person's text for the value at pydantic's path ``loc``."""
        found = EXPLAINER.written(loc)
        for length in range(len(found), 0, -1):
            if source := self._renamed.get(found[:length]):
                found = (*source, *found[length:])
        return found

    def _target(self, error: ErrorDetails) -> Loc | None:
        """For an unknown key: the path of the key that it was probably meant to be, when that is still free."""
        if error["type"] != "extra_forbidden" or not (meant := EXPLAINER.meant(error["loc"])):
            return None
        loc = EXPLAINER.written(error["loc"])
        around = self._around(loc, meant)
        return None if around is None or meant[-1] in around else (*loc[:-1], *meant)

    def _around(self, loc: Loc, meant: Loc) -> dict[str, Any] | None:
        """The mapping that a key beside ``loc`` is in, made where it is not there; None where something else is."""
        around = self._parent(loc)
        for outer in meant[:-1]:
            around = around.setdefault(outer, {})
        return around if isinstance(around, dict) else None

    def _parent(self, loc: Loc) -> Any:
        at: Any = self.values
        for index, part in enumerate(loc[:-1]):
            inside = at[part]
            if isinstance(inside, str):  # a bare string that stands for an object
                key = str(loc[index - 1] if isinstance(part, int) else part)
                inside = at[part] = {_SHORT[key]: inside} if key in _SHORT else {}
            at = inside
        return at

    def put(self, loc: Loc, value: Any) -> None:
        """Read on with another value."""
        self._parent(loc)[loc[-1]] = value

    def _take(self, loc: Loc) -> Any:
        try:
            parent = self._parent(loc)
        except KeyError:  # an earlier fault has taken what is around it
            return None
        return parent.pop(loc[-1], None) if isinstance(parent, dict) else None


def _given(targets: Iterable[Loc | None]) -> set[Loc]:
    """Paths that misspelt keys give a value to, those of the mappings around them as well."""
    return {target[:length] for target in targets if target for length in range(1, len(target) + 1)}


_SHORT = {"workspace": "name", "environments": "curated", "jobs": "file", "identity": "type", "encryption": "key"}


_FIELDS = {
    "clusters": ("name", "size", "nodes"),
    "environments": ("curated",),
    "jobs": ("file",),
    "datastores": ("name", "container"),
    "data": ("name", "path"),
    "access": ("role", "principals"),
}
"""Keys that an entry of a list needs at least."""


def _item(key: str) -> dict[str, Any]:
    fields = _FIELDS.get(key, ())
    return {field: copy.deepcopy(_MADE_UP[field]) for field in fields}
