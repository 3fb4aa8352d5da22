"""Functions of ARM template expressions that know of texts with gaps, and the ids of resources.

What takes and gives known values alone is `amlstack.base.arm_language.functions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.functions import FUNCTIONS, as_text, refuse
from amlstack.base.arm_language.values import OpenError
from policies.evaluation.door import read_json
from policies.evaluation.facts import GAP, Gapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _keeping_gaps(joining: Callable[..., Any]) -> Callable[..., Any]:
    """A function that joins texts, whose result has the gaps of its arguments."""

    def of(*parts: Any) -> Any:
        made = joining(*parts)
        why = next((part.why for part in parts if isinstance(part, Gapped)), "")
        return Gapped.of(made, why) if why and isinstance(made, str) else made

    return of


JOINING: Mapping[str, Callable[..., Any]] = {name: _keeping_gaps(FUNCTIONS[name]) for name in ("concat", "format")}
"""Those that also take texts with gaps."""


READING: Mapping[str, Callable[[Any], Any]] = {
    "json": lambda value: read_json(as_text(value)),
    "base64tojson": lambda value: read_json(FUNCTIONS["base64tostring"](value)),
}
"""Those that read JSON, in which no name stands twice."""


def resource_id(known: list[Any], *, scope: str, group: str, why: str) -> str:
    """The id of a resource, with gaps for what is not known of its place.

    Args:
        known: The arguments; None for one that could not be worked out, which only the leading ones may be.
        scope: ``group``, ``subscription`` or ``tenant``: what the id is relative to.
        group: The deployment's resource group; a gap where it is not known.
        why: Why the gaps are there.

    Raises:
        OpenError: The arguments do not name a resource.
    """
    at = next((index for index, one in enumerate(known) if isinstance(one, str) and "/" in one), None)
    if at is None or None in known[at:] or any(not isinstance(one, str) for one in known[at:]):
        raise OpenError("the resource's type or name is not known here")
    (provider, *types), names, before = known[at].split("/"), known[at + 1 :], known[:at]
    refuse(len(types) != len(names) or len(before) > 2, "as many names as types are expected")
    inner = "/".join(f"{kind}/{name}" for kind, name in zip(types, names, strict=True))
    place = [GAP if one is None else as_text(one) for one in before]
    prefix = ""
    if scope == "subscription":
        prefix = f"/subscriptions/{place[-1] if place else GAP}"
    elif scope == "group":
        subscription = place[0] if len(place) == 2 else GAP
        prefix = f"/subscriptions/{subscription}/resourceGroups/{place[-1] if place else group}"
    return Gapped.of(f"{prefix}/providers/{provider}/{inner}", why)
