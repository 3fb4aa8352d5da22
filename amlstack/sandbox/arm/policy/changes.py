"""Changes that Azure Policy's `modify` and `append` write into a request before it is judged further."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.arm_language import aliases
from amlstack.base.arm_language.expressions import tag_of
from amlstack.sandbox.arm.refusals import not_emulated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.base.arm_language.effects import PolicyChange
    from amlstack.sandbox.kinds.base import Body

_BESIDE: Final = frozenset({"extendedLocation", "identity", "kind", "plan", "sku"})
"""What a body has beside ``properties``."""


def bodies(body: Body, kind: str, change: PolicyChange) -> Iterator[Body]:
    """A body with a change in it: one for each place that the property may have, the likeliest first.

    Args:
        body: As it was sent, or as another policy left it.
        kind: Its type.
        change: The field and its new value.

    Raises:
        Refused: The sandbox does not know where the field is.
    """
    name = change.field
    if (tag := tag_of(name)) is not None:
        yield _written(body, ("tags", tag), change)
    elif name.lower() in {"location", "tags"}:
        yield _written(body, (name.lower(),), change)
    elif name.lower().startswith("identity."):
        yield _written(body, tuple(name.split(".")), change)
    else:
        yield from _by_alias(body, kind, change)


def _by_alias(body: Body, kind: str, change: PolicyChange) -> Iterator[Body]:
    path = aliases.path_of(change.field, kind)
    adds = path is not None and path.endswith(aliases.EVERY)
    plain = None if path is None else path.removesuffix(aliases.EVERY)
    if plain is None or "[" in plain:
        raise not_emulated(f"a policy that writes the field '{change.field}'")
    steps = tuple(plain.split("."))
    beside = [()] if steps[0] in _BESIDE else []
    places: list[tuple[str, ...]] = [*beside, ("properties",)]
    if isinstance((body.get("properties") or {}).get("properties"), dict):
        places.append(("properties", "properties"))
    # One that is there stays where it is.
    places.sort(key=lambda place: _found(body, (*place, *steps)) is None)
    for place in places:
        yield _written(body, (*place, *steps), change, adds=adds)


def _found(value: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        value = value.get(_as_it_is(value, step)) if isinstance(value, dict) else None
    return value


def _written(body: Body, steps: tuple[str, ...], change: PolicyChange, *, adds: bool = False) -> Body:
    made = copy.deepcopy(body)
    inside: Any = made
    for step in steps[:-1]:
        key = _as_it_is(inside, step)
        if not isinstance(inside.get(key), dict):
            inside[key] = {}
        inside = inside[key]
    last = _as_it_is(inside, steps[-1])
    if change.after is None:
        inside.pop(last, None)
    elif adds:
        inside[last] = [*(inside.get(last) or ()), change.after]
    else:
        inside[last] = change.after
    return made


def _as_it_is(value: dict[str, Any], name: str) -> str:
    """The key in the letters that the body has."""
    return next((key for key in value if key.lower() == name.lower()), name)
