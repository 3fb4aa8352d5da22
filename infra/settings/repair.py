"""Faulty settings mended so far that the rest of them can be judged in the same run.

A misspelt key is read as the key that it was probably meant to be; a faulty value becomes its default; what has no
default is made up and remembered as doubtful. What each part of this is worth was measured: docs/adr/0006.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from infra.settings import problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

    from infra.settings.stackfile import Loc

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
        """Those errors that are a person's: not a key that is missing because it is misspelt or was dropped."""
        meant = {target for error in errors if (target := self._target(error))}
        return [
            error
            for error in errors
            if error["type"] != "missing" or problems.plain(error["loc"]) not in (meant | self._dropped)
        ]

    def mend(self, errors: Sequence[ErrorDetails]) -> None:
        """Change the values so that these errors do not come again."""
        renames = {problems.plain(error["loc"]): self._target(error) for error in errors}
        for error in sorted(errors, key=lambda each: -len(each["loc"])):  # inner ones first: paths stay true
            loc = problems.plain(error["loc"])
            if error["type"] == "missing":
                if loc not in renames.values():
                    self._put(loc, copy.deepcopy(_MADE_UP.get(str(loc[-1]), "doubtful")))
                    self.doubtful.add(loc)
            elif target := renames[loc]:
                self._put(target, self._take(loc))
                self._renamed[target] = loc
            elif len(loc) == 2 and isinstance(loc[-1], int):
                self._put(loc, _item(str(loc[0])))
                self.doubtful.add(loc)
            elif isinstance(loc[-1], int):  # an entry of a list that has a default: the whole list becomes that
                self._take(loc[:-1])
                self._dropped.add(loc[:-1])
            elif error["type"] == "value_error":  # about several keys together: each of them is in doubt
                self._put(loc, copy.deepcopy(_MADE_UP.get(str(loc[-1]), {})))
                self.doubtful.add(loc)
            else:
                self._take(loc)
                self._dropped.add(loc)

    def leave_out(self, loc: Loc) -> None:
        """Read on without a setting that is refused, whatever it is."""
        if len(loc) > 1 and isinstance(loc[-1], int):
            self._put(loc, _item(str(loc[0])))
            self.doubtful.add(loc)
        else:
            self._take(loc)
            self._dropped.add(loc)

    def write(self, loc: Loc, value: Any) -> None:
        """Read on with another value."""
        self._put(loc, value)

    def gone(self, *locs: Loc) -> bool:
        """Whether any of these is not what the person wrote: made up, or left out."""
        return any(loc in self.doubtful or loc in self._dropped for loc in locs)

    def written(self, loc: Loc) -> Loc:
        """Where the person wrote what now stands at pydantic's path ``loc``."""
        found = problems.plain(loc)
        for length in range(len(found), 0, -1):
            if source := self._renamed.get(found[:length]):
                found = (*source, *found[length:])
        return found

    def _target(self, error: ErrorDetails) -> Loc | None:
        """For an unknown key: the path of the key that it was probably meant to be, when that is still free."""
        if error["type"] != "extra_forbidden":
            return None
        loc = problems.plain(error["loc"])
        meant = problems.meant(error["loc"])
        return (*loc[:-1], meant) if meant and meant not in self._parent(loc) else None

    def _parent(self, loc: Loc) -> Any:
        at: Any = self.values
        for index, part in enumerate(loc[:-1]):
            inside = at[part]
            if isinstance(inside, str):  # a bare string that stands for an object
                inside = at[part] = _object(str(loc[index - 1] if isinstance(part, int) else part), inside)
            at = inside
        return at

    def _put(self, loc: Loc, value: Any) -> None:
        self._parent(loc)[loc[-1]] = value

    def _take(self, loc: Loc) -> Any:
        parent = self._parent(loc)
        if isinstance(parent, dict):
            return parent.pop(loc[-1], None)
        return None


_SHORT = {"workspace": "name", "environments": "curated", "jobs": "file", "identity": "type", "encryption": "key"}


_FIELDS = {
    "clusters": ("name", "size", "nodes"),
    "environments": ("curated",),
    "jobs": ("file",),
    "datastores": ("name", "container"),
    "data": ("name", "path"),
    "access": ("role", "principals"),
}
"""What an entry of a list needs at least."""


def _object(key: str, text: str) -> dict[str, Any]:
    return {_SHORT[key]: text} if key in _SHORT else {}


def _item(key: str) -> dict[str, Any]:
    fields = _FIELDS.get(key, ())
    return {field: copy.deepcopy(_MADE_UP[field]) for field in fields}
