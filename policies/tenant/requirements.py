"""What our statements ask of a resource, in a dozen words: whether it is met, and what was seen where it is not.

A requirement names a `property` by its alias's path and says one of: `is` (a value, or one of several), `is_not`,
`given` (there, and not empty), `empty`, `at_most`, `last_number_at_most`; or it says `has` (a property with an element
that has the values of `with`), `beside` (a resource of a type on it, likewise), or `any` of other requirements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language import aliases
from amlstack.base.arm_language.resources import PolicyTarget
from amlstack.base.arm_language.values import FailingExpressionError, OpenError
from amlstack.base.pulumi_wire import UNKNOWN

if TYPE_CHECKING:
    from policies.tenant.stack import DeclaredStack

_UNITS = re.compile("[PYMDTH]")


@dataclass(frozen=True, slots=True)
class Breach:
    """A requirement that is not met.

    Attributes:
        property: Path of the property, or the type that is missing.
        seen: What was there, in words.
        wanted: The value that would meet it; None where there is not one.
    """

    property: str
    seen: str
    wanted: Any = None


def breaches(
    requires: tuple[Mapping[str, Any], ...], target: PolicyTarget, stack: DeclaredStack, parameters: Mapping[str, Any]
) -> list[Breach]:
    """The requirements that a resource does not meet.

    Raises:
        OpenError: A value is known once the stack is up; `FailingExpressionError` where the definition itself fails.
    """
    found = (_breach(one, target, stack, parameters) for one in requires)
    return [one for one in found if one is not None]


def applies(when: Mapping[str, list[str]], target: PolicyTarget) -> bool:
    """Whether a resource has the values without which a definition says nothing."""
    return all(_same_as_any(_value(path, target), wanted) for path, wanted in when.items())


def _breach(
    requirement: Mapping[str, Any], target: PolicyTarget, stack: DeclaredStack, parameters: Mapping[str, Any]
) -> Breach | None:
    if "any" in requirement:
        missed = [_breach(one, target, stack, parameters) for one in requirement["any"]]
        return None if None in missed else missed[0]
    if "has" in requirement:
        path = requirement["has"]
        listed = _value(path, target)
        wanted = requirement.get("with", {})
        if any(_matches(one, wanted) for one in (listed if isinstance(listed, list) else ())):
            return None
        return Breach(path, f"`{path}` has no element{_with(wanted)}")
    if "beside" in requirement:
        return _beside(requirement, target, stack)
    path = requirement["property"]
    value = _value(path, target)
    word = next(word for word in _WORDS if word in requirement)
    asked = requirement[word]
    if isinstance(asked, Mapping):
        asked = parameters[asked["parameter"]]
    if _WORDS[word](value, asked):
        return None
    only = asked if word in {"is", "at_most"} and not isinstance(asked, list) else None
    return Breach(path, f"`{path}` is {_shown(value)}", only)


def _beside(requirement: Mapping[str, Any], target: PolicyTarget, stack: DeclaredStack) -> Breach | None:
    kind, wanted = requirement["beside"], requirement.get("with", {})
    any_of = requirement.get("with_any", {})
    for one in stack.related(kind):
        inside = one.id.lower().startswith(f"{target.id.lower()}/")
        some = all(value in _values(path, one) for path, value in any_of.items())
        if inside and some and _matches(one.body, wanted):
            return None
    return Breach(kind, f"no `{kind}`{_with({**wanted, **any_of})} is on it")


def _with(wanted: Mapping[str, Any]) -> str:
    return f" with {', '.join(f'`{path}` {_shown(value)}' for path, value in wanted.items())}" if wanted else ""


def _matches(element: Any, wanted: Mapping[str, Any]) -> bool:
    inside = PolicyTarget("element", "", element if isinstance(element, Mapping) else {})
    return all(_same(_value(path, inside), value) for path, value in wanted.items())


def _values(path: str, target: PolicyTarget) -> tuple[Any, ...]:
    return aliases.select(f"{target.type}/{path}", target, {}).values


def _value(path: str, target: PolicyTarget) -> Any:
    (value, *_) = _values(path, target) or (None,)
    if value is UNKNOWN:
        raise OpenError(f"`{path}` is known once the stack is up", later=True)
    return value


def _same(value: Any, wanted: Any) -> bool:
    return value is not None and str(value).lower() == str(wanted).lower()


def _same_as_any(value: Any, wanted: Any) -> bool:
    return any(_same(value, one) for one in (wanted if isinstance(wanted, list) else [wanted]))


def _at_most(value: Any, most: int) -> bool:
    if value is None:
        raise OpenError("how Azure orders a property that is not there is not documented")
    return bool(value <= most)


def _last_number_at_most(value: Any, most: int) -> bool:
    """The definition takes what follows a duration's last unit for its seconds, and fails where nothing does."""
    last = _UNITS.split(str(value or "").replace("S", ""))[-1]
    if not last.isdecimal():
        why = f"it takes the number after the last letter of `{value or ''}` for seconds, and there is none"
        raise FailingExpressionError(why)
    return int(last) <= most


_WORDS = {
    "is": _same_as_any,
    "is_not": lambda value, wanted: not _same_as_any(value, wanted),
    "given": lambda value, _: value not in (None, "", [], {}),
    "empty": lambda value, _: not value,
    "at_most": _at_most,
    "last_number_at_most": _last_number_at_most,
}


def _shown(value: Any) -> str:
    if value in (None, "", [], {}):
        return "not set"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
