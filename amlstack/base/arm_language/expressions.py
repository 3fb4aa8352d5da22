"""Expressions in the rules of Azure Policy: template functions, and those that only policies have.

Source: Azure Policy, "Policy rule structure: policy functions"; Azure Resource Manager, "ARM template functions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from amlstack.base.arm_language import aliases, comparisons, iprange
from amlstack.base.arm_language.functions import FUNCTIONS, as_text, truth
from amlstack.base.arm_language.resources import PartlyKnown, PolicyPlace, PolicyTarget
from amlstack.base.arm_language.syntax import Access, FunctionCall, Literal, Node, NotAnExpressionError, parse
from amlstack.base.arm_language.values import FailingExpressionError, OpenError, alike
from amlstack.base.pulumi_wire import UNKNOWN

_BROKEN = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class PolicyAround:
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

    def choosing(self, choice: aliases.Chosen, element: Any) -> PolicyAround:
        """The same while one element of an array of the resource is looked at."""
        return replace(self, chosen=choice, counted={**self.counted, "default": element})

    def counting(self, name: str, element: Any) -> PolicyAround:
        """The same while one element of another list is looked at."""
        return replace(self, counted={**self.counted, name.lower(): element, "default": element})


def is_expression(value: Any) -> bool:
    """Whether a value of a rule is worked out; two brackets at its start stand for a text with one."""
    return isinstance(value, str) and value.startswith("[") and value.endswith("]") and not value.startswith("[[")


def worked_out(value: Any, around: PolicyAround) -> Any:
    """A value of a rule with the expressions in it replaced by their values.

    Raises:
        OpenError: It cannot be worked out here; `FailingExpressionError` where Azure cannot either.
    """
    if is_expression(value):
        return value_of(value, around)
    if isinstance(value, str):
        return value[1:] if value.startswith("[[") else value
    if isinstance(value, list):
        return [worked_out(one, around) for one in value]
    if isinstance(value, Mapping):
        return {key: worked_out(one, around) for key, one in value.items()}
    return value


def value_of(expression: str, around: PolicyAround) -> Any:
    """The value of one expression, brackets included; raises as `worked_out` does."""
    try:
        return _closed(parse(expression), around)
    except NotAnExpressionError as error:
        raise OpenError(f"`{expression[:80]}` is no expression: {error}") from None
    except OpenError:
        raise
    except _BROKEN as error:
        raise OpenError(f"`{expression[:80]}` does not work out here: {str(error)[:80]}") from None


def _value(node: Node, around: PolicyAround) -> Any:
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Access):
        return _member(_value(node.of, around), _closed(node.key, around))
    if node.name in SPECIAL:
        return SPECIAL[node.name](around, *node.arguments)
    if node.name in FUNCTIONS:
        return FUNCTIONS[node.name](*(_closed(one, around) for one in node.arguments))
    raise OpenError(f"the function `{node.name[:60]}` is not worked out here")


def _closed(node: Node, around: PolicyAround) -> Any:
    found = _value(node, around)
    if found is UNKNOWN:
        raise OpenError("it is known once the stack is up", later=True)
    return found


def _member(value: Any, key: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(key, str):
        for name, one in value.items():
            if name.lower() == key.lower():
                return one
        if isinstance(value, PartlyKnown):
            raise OpenError(f"`{key[:60]}` of the subscription, the resource group or the request is not known here")
        return ""  # as `field` gives what is not there
    if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool):
        if 0 <= key < len(value):
            return value[key]
        raise FailingExpressionError(f"the list has no element {key}")
    raise FailingExpressionError(f"there is no `{str(key)[:60]}` in the value")


def _parameter(around: PolicyAround, name: Node) -> Any:
    wanted = as_text(_closed(name, around))
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
    wanted = as_text(_closed(names[0], around)) if names else "default"
    if wanted.lower() in around.counted:
        return around.counted[wanted.lower()]
    if "/" in wanted:
        (value,) = aliases.select(wanted, around.target, around.chosen).values or (None,)
        return "" if value is None else value
    raise OpenError(f"nothing that is counted is called `{wanted[:60]}`")


def _if(around: PolicyAround, condition: Node, yes: Node, no: Node) -> Any:
    return _value(yes if truth(_closed(condition, around)) else no, around)


def _all(around: PolicyAround, *arguments: Node) -> bool:
    return all(truth(_closed(one, around)) for one in arguments)


def _any(around: PolicyAround, *arguments: Node) -> bool:
    return any(truth(_closed(one, around)) for one in arguments)


def _coalesce(around: PolicyAround, *arguments: Node) -> Any:
    return next((one for one in (_closed(each, around) for each in arguments) if one is not None), None)


def _try_get(around: PolicyAround, of: Node, *keys: Node) -> Any:
    value = _closed(of, around)
    for key in keys:
        found = _closed(key, around)
        if isinstance(value, Mapping) and not isinstance(value, PartlyKnown):
            value = _any_case(value, as_text(found))
        else:
            value = _member(value, found)
    return value


def _request(around: PolicyAround) -> PartlyKnown:
    return PartlyKnown({"apiVersion": around.target.api_version} if around.target.api_version else {})


def _equal(around: PolicyAround, left: Node, right: Node) -> bool:
    return alike(_closed(left, around), _closed(right, around))


def _ordered(by: str) -> Callable[..., bool]:
    return lambda around, left, right: comparisons.ordered(by, _closed(left, around), _closed(right, around))


def _add_days(around: PolicyAround, moment: Node, days: Node) -> str:
    text, number = as_text(_closed(moment, around)), _closed(days, around)
    try:
        return _moment(datetime.fromisoformat(text) + timedelta(days=int(number)))
    except (ValueError, TypeError, OverflowError):
        raise FailingExpressionError(f"`{text[:40]}` is no moment to which days can be added") from None


def _moment(value: datetime) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond:06d}0Z"


def _in_range(around: PolicyAround, outer: Node, inner: Node) -> bool:
    return iprange.contains(as_text(_closed(outer, around)), as_text(_closed(inner, around)))


SPECIAL: Mapping[str, Callable[..., Any]] = {
    "adddays": _add_days,
    "and": _all,
    "coalesce": _coalesce,
    "current": _current,
    "equals": _equal,
    "field": lambda around, name: field_value(as_text(_closed(name, around)), around),
    "greater": _ordered("greater"),
    "greaterorequals": _ordered("greaterorequals"),
    "if": _if,
    "iprangecontains": _in_range,
    "less": _ordered("less"),
    "lessorequals": _ordered("lessorequals"),
    "or": _any,
    "parameters": _parameter,
    "policy": lambda _: PartlyKnown(),
    "requestcontext": _request,
    "resourcegroup": lambda around: around.place.group,
    "subscription": lambda around: around.place.subscription,
    "tryget": _try_get,
    "utcnow": lambda around: _moment(around.place.now),
}
"""Functions that see the resource, or do not need all of their arguments."""


def functions_in(expression: str) -> set[str]:
    """The names of the functions that an expression calls, in small letters.

    Raises:
        NotAnExpressionError: It follows no grammar.
    """
    found: set[str] = set()
    todo: list[Node] = [parse(expression)]
    while todo:
        node = todo.pop()
        if isinstance(node, FunctionCall):
            found.add(node.name)
            todo += node.arguments
        elif isinstance(node, Access):
            todo += (node.of, node.key)
    return found
