"""``cluster_defaults``: what each entry of ``clusters`` says unless it says otherwise.

An entry is completed before it is validated, so that everything behind knows whole clusters only. Objects are completed
key by key (``nodes``, ``ssh``, ``tags``); what else an entry says takes the place of the default as a whole.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from infra.settings.stackfile import Loc

KEY: Final = "cluster_defaults"
LIST: Final = "clusters"
BY_KEY: Final = frozenset({"nodes", "ssh", "tags"})
"""Objects of a cluster that are completed key by key."""


def complete(values: dict[str, Any]) -> dict[Loc, Loc]:
    """Complete each cluster in settings as they were written.

    Args:
        values: The settings; entries of ``clusters`` are changed in place.

    Returns:
        Path of each value that came from the defaults → path of the default.
    """
    defaults, clusters = values.get(KEY), values.get(LIST)
    taken: dict[Loc, Loc] = {}
    if isinstance(defaults, dict) and isinstance(clusters, list):
        for index, entry in enumerate(clusters):
            if isinstance(entry, dict):
                _fill(entry, defaults, (LIST, index), (KEY,), taken)
    return taken


def origin(loc: Loc, taken: dict[Loc, Loc]) -> Loc | None:
    """The default that a path of the settings, or something around it, came from; None for what an entry says."""
    for length in range(len(loc), 2, -1):
        if (source := taken.get(loc[:length])) is not None:
            return (*source, *loc[length:])
    return None


def _fill(entry: dict[str, Any], defaults: dict[str, Any], at: Loc, of: Loc, taken: dict[Loc, Loc]) -> None:
    for name, value in defaults.items():
        if name == "name" and len(at) == 2:
            continue  # refused where it is written: each cluster has its own
        if name not in entry:
            entry[name] = copy.deepcopy(value)
            taken[(*at, name)] = (*of, name)
        elif len(at) == 2 and name in BY_KEY and isinstance(entry[name], dict) and isinstance(value, dict):
            _fill(entry[name], value, (*at, name), (*of, name), taken)
