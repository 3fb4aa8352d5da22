"""Expressions in the rules of Azure Policy: template functions, and those that only policies have.

Source: Azure Policy, "Policy rule structure: policy functions"; Azure Resource Manager, "ARM template functions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from amlstack.base.arm_language import aliases, comparisons
from amlstack.base.arm_language.evaluation import LAZY, Evaluator
from amlstack.base.arm_language.functions import as_text
from amlstack.base.arm_language.resources import PartlyKnown, PolicyPlace, PolicyTarget
from amlstack.base.arm_language.values import FailingExpressionError, OpenError
from amlstack.base.pulumi_wire import UNKNOWN

if TYPE_CHECKING:
    from amlstack.base.arm_language.syntax import Node


@dataclass(frozen=True, slots=True)
class PolicyAround(Evaluator):
    """What the expressions of one rule may ask for.

    Attributes:
        target: The resource.
        place: Where it is created.
        parameters: Values of the definition's parameters.
        chosen: Elements of its arrays that are looked at one by one.
        counted: Elements of a list that is counted, by the count's name; the innermost also as ``default``.
        asker: The resource that ``field()`` means where ``target`` is one that a rule looks for beside it.
    """

    target: PolicyTarget
    place: PolicyPlace
    parameters: Mapping[str, Any]
    chosen: aliases.Chosen = field(default_factory=dict)
    counted: Mapping[str, Any] = field(default_factory=dict)
    asker: PolicyTarget | None = None
    special: ClassVar[Mapping[str, Callable[..., Any]]]

    def value(self, node: Node) -> Any:
        """The value of one node, which has to be known."""
        found = Evaluator.value(self, node)
        if found is UNKNOWN:
            raise OpenError("it is known once the stack is up", later=True)
        return found

    def absent(self, value: Any, key: Any) -> Any:
        """An empty text for a property that is not there, as `field` gives it."""
        if isinstance(value, PartlyKnown):
            raise OpenError(f"`{key[:60]}` of the subscription, the resource group or the request is not known here")
        if isinstance(value, Mapping) and isinstance(key, str):
            return ""
        raise FailingExpressionError(f"there is no `{str(key)[:60]}` in the value")

    def choosing(self, choice: aliases.Chosen, element: Any) -> PolicyAround:
        """The same while one element of an array of the resource is looked at."""
        return replace(self, chosen=choice, counted={**self.counted, "default": element})

    def counting(self, name: str, element: Any) -> PolicyAround:
        """The same while one element of another list is looked at."""
        return replace(self, counted={**self.counted, name.lower(): element, "default": element})


def _parameter(around: PolicyAround, name: Node) -> Any:
    wanted = as_text(around.closed(name))
    for key, value in around.parameters.items():
        if key.lower() == wanted.lower():
            return value
    raise OpenError(f"the parameter `{wanted[:60]}` has no value")


def field_value(name: str, around: PolicyAround) -> Any:
    """What ``field('…')`` gives: a list for an array alias, an empty text for what is not there."""
    asked = around if around.asker is None else replace(around, target=around.asker, chosen={})
    found = field_of(name, asked)
    if found.every:
        return list(found.values)
    (value,) = found.values
    return "" if value is None else value


def field_of(name: str, around: PolicyAround) -> aliases.Selection:
    """The values of a field: of the resource as a whole, of a tag, or of an alias.

    Raises:
        OpenError: It is no field that is known here.
    """
    target, low = around.target, name.lower()
    if "/" in name and not low.startswith("tags"):
        return aliases.select(name, target, around.chosen)
    plain: Mapping[str, Callable[[], Any]] = {
        "type": lambda: target.type,
        "id": lambda: target.id or None,
        "name": lambda: target.name or None,
        "fullname": lambda: target.full_name or None,
        "kind": lambda: target.body.get("kind"),
        "location": lambda: _region(target.body.get("location")),
        "tags": lambda: target.body.get("tags"),
    }
    if low in plain:
        return aliases.Selection((plain[low](),))
    if low.startswith("identity."):
        identity = target.body.get("identity")
        value = _any_case(identity, name.partition(".")[2]) if isinstance(identity, Mapping) else identity
        return aliases.Selection((value,))
    if (tag := tag_of(name)) is not None:
        tags = target.body.get("tags")
        return aliases.Selection((_any_case(tags, tag) if isinstance(tags, Mapping) else tags,))
    raise OpenError(f"the field `{name[:80]}` is not known here")


def tag_of(name: str) -> str | None:
    """The tag that a field names, however it is written; None for another field."""
    if name.lower().startswith("tags[") and name.endswith("]"):
        inner = name[5:-1]
        return inner[1:-1].replace("''", "'") if inner[:1] == inner[-1:] == "'" and len(inner) > 1 else inner
    return name[5:] if name.lower().startswith("tags.") else None


def _any_case(value: Mapping[str, Any], name: str) -> Any:
    return next((one for key, one in value.items() if key.lower() == name.lower()), None)


def _region(value: Any) -> Any:
    """Azure hands a policy the code of a region."""
    return "".join(value.lower().split()) if isinstance(value, str) else value


def _current(around: PolicyAround, *names: Node) -> Any:
    wanted = as_text(around.closed(names[0])) if names else "default"
    if wanted.lower() in around.counted:
        return around.counted[wanted.lower()]
    if "/" in wanted:
        (value,) = aliases.select(wanted, around.target, around.chosen).values or (None,)
        return "" if value is None else value
    raise OpenError(f"nothing that is counted is called `{wanted[:60]}`")


def _request(around: PolicyAround) -> PartlyKnown:
    return PartlyKnown({"apiVersion": around.target.api_version} if around.target.api_version else {})


def _ordered(by: str) -> Callable[..., bool]:
    return lambda around, left, right: comparisons.ordered(by, around.closed(left), around.closed(right))


def _add_days(around: PolicyAround, moment: Node, days: Node) -> str:
    text, number = as_text(around.closed(moment)), around.closed(days)
    try:
        return _moment(datetime.fromisoformat(text) + timedelta(days=int(number)))
    except (ValueError, TypeError, OverflowError):
        raise FailingExpressionError(f"`{text[:40]}` is no moment to which days can be added") from None


def _moment(value: datetime) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond:06d}0Z"


def _in_range(around: PolicyAround, outer: Node, inner: Node) -> bool:
    return comparisons.range_contains(as_text(around.closed(outer)), as_text(around.closed(inner)))


PolicyAround.special = {
    **LAZY,
    "adddays": _add_days,
    "current": _current,
    "field": lambda around, name: field_value(as_text(around.closed(name)), around),
    "greater": _ordered("greater"),
    "greaterorequals": _ordered("greaterorequals"),
    "iprangecontains": _in_range,
    "less": _ordered("less"),
    "lessorequals": _ordered("lessorequals"),
    "parameters": _parameter,
    "policy": lambda _: PartlyKnown(),
    "requestcontext": _request,
    "resourcegroup": lambda around: around.place.group,
    "subscription": lambda around: around.place.subscription,
    "utcnow": lambda around: _moment(around.place.now),
}
