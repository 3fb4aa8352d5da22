"""ARM expressions: grammar, tree and evaluation."""

from __future__ import annotations

import ipaddress
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, ClassVar

from amlstack.base.arm_language import resources
from amlstack.base.arm_language.functions import FUNCTIONS, FailingExpressionError, OpenError, as_text, truth
from amlstack.base.arm_language.resources import PartlyKnown, PolicyPlace, PolicyTarget
from amlstack.base.pulumi_wire import UNKNOWN

DEPTH = 60
"""Most levels of one expression; Azure's own limit is on its length."""

LENGTH = 24_576
"""Most characters of one expression, as Azure limits it."""

_TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[()\[\],.]))")


class NotAnExpressionError(ValueError):
    """The text is no expression; the message says where it stops being one."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text or a whole number."""

    value: Any


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function with its arguments; the name in small letters, a user's own with its namespace before a dot."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """A property or an element of a value."""

    of: Node
    key: Node


Node = Literal | FunctionCall | Access


@lru_cache(maxsize=1024)
def parse(expression: str) -> Node:
    """The tree of an expression.

    Args:
        expression: With its brackets, as a template has it.

    Raises:
        NotAnExpressionError: It does not follow the grammar, is too long or too deep.
    """
    if len(expression) > LENGTH:
        raise NotAnExpressionError(f"it has more than {LENGTH} characters")
    reader = _Reader(expression[1:-1])
    tree = reader.value(0)
    reader.end()
    return tree


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise NotAnExpressionError(f"`{text[at : at + 20]}` is not part of the language")
            kind = str(found.lastgroup)
            self._tokens.append((kind, found[kind]))
            at = found.end()
        self._at = 0

    def _next(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _take(self, sign: str) -> bool:
        if self._next() == ("sign", sign):
            self._at += 1
            return True
        return False

    def _must(self, sign: str) -> None:
        if not self._take(sign):
            raise NotAnExpressionError(f"`{sign}` is missing before `{self._next()[1]}`")

    def end(self) -> None:
        if self._next()[0] != "end":
            raise NotAnExpressionError(f"`{self._next()[1]}` follows its end")

    def value(self, depth: int) -> Node:
        if depth > DEPTH:
            raise NotAnExpressionError(f"it is nested more than {DEPTH} deep")
        kind, word = self._next()
        self._at += 1
        match kind:
            case "text":
                return Literal(word[1:-1].replace("''", "'"))
            case "number":
                return Literal(int(word))
            case "name":
                name = word.lower()
                if self._take("."):
                    name = f"{name}.{self._name()}"
                self._must("(")
                return self._accesses(FunctionCall(name, self._arguments(depth + 1)), depth)
        raise NotAnExpressionError(f"a value is missing before `{word}`")

    def _name(self) -> str:
        kind, word = self._next()
        if kind != "name":
            raise NotAnExpressionError(f"a name is missing before `{word}`")
        self._at += 1
        return word.lower()

    def _arguments(self, depth: int) -> tuple[Node, ...]:
        found: list[Node] = []
        if self._take(")"):
            return ()
        while True:
            found.append(self.value(depth))
            if not self._take(","):
                self._must(")")
                return tuple(found)

    def _accesses(self, node: Node, depth: int) -> Node:
        while True:
            depth += 1
            if depth > DEPTH:
                raise NotAnExpressionError(f"it is nested more than {DEPTH} deep")
            if self._take("."):
                node = Access(node, Literal(self._name()))
            elif self._take("["):
                node = Access(node, self.value(depth + 1))
                self._must("]")
            else:
                return node


_BROKEN = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)


def is_expression(value: Any) -> bool:
    """True where Azure works a value out; two brackets at its start stand for a text with one."""
    return isinstance(value, str) and value.startswith("[") and value.endswith("]") and not value.startswith("[[")


class Evaluator:
    """The names that expressions see: a language overrides what is unknown or absent, and adds its functions.

    Attributes:
        special: Functions that see the names, or do not need all of their arguments: from names and nodes to a value.
    """

    __slots__ = ()
    special: ClassVar[Mapping[str, Callable[..., Any]]]

    def expression(self, text: str) -> Any:
        """The value of an expression, brackets included.

        Raises:
            OpenError: It cannot be worked out here; `FailingExpressionError` where Azure cannot either.
        """
        try:
            return self.value(parse(text))
        except NotAnExpressionError as error:
            raise OpenError(f"`{text[:80]}` is no expression: {error}") from None
        except OpenError:
            raise
        except _BROKEN as error:
            raise OpenError(f"`{text[:80]}` does not work out here: {str(error)[:80]}") from None

    def worked_out(self, value: Any) -> Any:
        """A value with the expressions in it replaced by their values; raises as `expression` does."""
        if is_expression(value):
            return self.expression(value)
        if isinstance(value, str):
            return value[1:] if value.startswith("[[") else value
        if isinstance(value, list):
            return [self.worked_out(one) for one in value]
        if isinstance(value, Mapping):
            return {key: self.worked_out(one) for key, one in value.items()}
        return value

    def value(self, node: Node) -> Any:
        """The value of one node."""
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Access):
            value, key = self.value(node.of), self.closed(node.key)
            try:
                return lookup(value, key)
            except LookupError:
                return self.absent(value, key)
        if node.name in self.special:
            return self.special[node.name](self, *node.arguments)
        if node.name in FUNCTIONS:
            return FUNCTIONS[node.name](*map(self.closed, node.arguments))
        raise OpenError(f"the function `{node.name[:60]}` is not worked out here")

    def closed(self, node: Node) -> Any:
        """The value of a node, of which every part is known."""
        return self.value(node)

    def absent(self, value: Any, key: Any) -> Any:
        """The value of a property or an element that is not there."""
        raise OpenError(f"there is no `{str(key)[:60]}` in {'it' if value is None else 'the value'}")


def lookup(value: Any, key: Any) -> Any:
    """A property of an object, in any letter case, or an element of a list; raises LookupError where there is none."""
    if isinstance(value, Mapping) and isinstance(key, str):
        found = [one for name, one in value.items() if name.lower() == key.lower()]
        if len(found) == 1:
            return found[0]
    if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(value):
        return value[key]
    raise LookupError


def _if(names: Evaluator, condition: Node, yes: Node, no: Node) -> Any:
    return names.value(yes if truth(names.closed(condition)) else no)


def _try_get(names: Evaluator, of: Node, *keys: Node) -> Any:
    value = names.closed(of)
    for key in keys:
        wanted = names.closed(key)
        try:
            value = lookup(value, wanted)
        except LookupError:
            return names.absent(value, wanted) if isinstance(value, PartlyKnown) else None
    return value


LAZY: Mapping[str, Callable[..., Any]] = {
    "and": lambda names, *parts: all(truth(names.closed(one)) for one in parts),
    "coalesce": lambda names, *parts: next((one for one in map(names.closed, parts) if one is not None), None),
    "if": _if,
    "or": lambda names, *parts: any(truth(names.closed(one)) for one in parts),
    "tryget": _try_get,
}
"""Functions of every language that look at an argument only when they need it."""


_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "less": operator.lt,
    "lessorequals": operator.le,
    "greater": operator.gt,
    "greaterorequals": operator.ge,
}
_PLACES = {"#": r"\d", "?": "[A-Za-z]", ".": "."}


def ordered(by: str, left: Any, right: Any) -> bool:
    """True where two numbers, two texts or two moments are in an order.

    Raises:
        FailingExpressionError: They are of two kinds, which Azure refuses.
        OpenError: How Azure orders them is not proven (docs/reference/unproven.md#policy-language).
    """
    if left is None or right is None:
        raise OpenError("how Azure orders a property that is not there is not proven")
    if isinstance(left, str) and isinstance(right, str):
        moments = _moment(left), _moment(right)
        if None not in moments:
            return _ORDERS[by](*moments)
        if not (left.isascii() and right.isascii()):
            raise OpenError("how Azure orders texts that are not ASCII is not proven")
        return _ORDERS[by](left.lower(), right.lower())
    if _is_number(left) and _is_number(right):
        return _ORDERS[by](left, right)
    raise FailingExpressionError(f"`{_shown(left)}` and `{_shown(right)}` are of two kinds and have no order")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _moment(text: str) -> datetime | None:
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _shown(value: Any) -> str:
    return str(value)[:40]


def _same(value: Any, wanted: Any) -> bool:
    if value is None or isinstance(value, dict | list) or isinstance(wanted, dict | list):
        return value is not None and bool(value == wanted)
    return str(value).lower() == str(wanted).lower()


def _one_of(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, list | tuple):
        raise FailingExpressionError("`in` takes a list")
    return any(_same(value, one) for one in wanted)


def _like(value: Any, wanted: Any) -> bool:
    pattern = ".*".join(map(re.escape, str(wanted).split("*")))
    return value is not None and re.fullmatch(pattern, str(value), re.IGNORECASE | re.DOTALL) is not None


def _match(value: Any, wanted: Any, flags: int = 0) -> bool:
    pattern = "".join(_PLACES.get(sign, re.escape(sign)) for sign in str(wanted))
    return value is not None and re.fullmatch(pattern, str(value), flags) is not None


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        return any(_same(one, wanted) for one in value)
    return value is not None and not isinstance(value, dict) and str(wanted).lower() in str(value).lower()


def _has_key(value: Any, wanted: Any) -> bool:
    return isinstance(value, Mapping) and any(key.lower() == str(wanted).lower() for key in value)


def _exists(value: Any, wanted: Any) -> bool:
    return (value is not None) is (str(wanted).lower() == "true")


def _negated(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, wanted: not test(value, wanted)


def _in_order(by: str) -> Callable[[Any, Any], bool]:
    return lambda value, wanted: ordered(by, value, wanted)


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": _same,
    "notequals": _negated(_same),
    "like": _like,
    "notlike": _negated(_like),
    "match": _match,
    "notmatch": _negated(_match),
    "matchinsensitively": lambda value, wanted: _match(value, wanted, re.IGNORECASE),
    "notmatchinsensitively": lambda value, wanted: not _match(value, wanted, re.IGNORECASE),
    "contains": _contains,
    "notcontains": _negated(_contains),
    "in": _one_of,
    "notin": _negated(_one_of),
    "containskey": _has_key,
    "notcontainskey": _negated(_has_key),
    "exists": _exists,
    **{by: _in_order(by) for by in _ORDERS},
}
"""By name in small letters: from a value and what the condition wants to whether it holds."""


def range_contains(outer: str, inner: str) -> bool:
    """True where all addresses of a range lie in another.

    Args:
        outer: An address, a CIDR range, or two addresses with ``-`` between them.
        inner: Likewise.

    Raises:
        FailingExpressionError: One is no range, or they are of two families; Azure's evaluation fails there too.
    """
    (first, last), (start, end) = _ends(outer), _ends(inner)
    if first.version != start.version:
        raise FailingExpressionError("the ranges are of IPv4 and of IPv6")
    return int(first) <= int(start) and int(end) <= int(last)


def _ends(
    text: str,
) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        if "-" in text:
            low, high = (ipaddress.ip_address(part.strip()) for part in text.split("-", 1))
            return low, high
        net = ipaddress.ip_network(text.strip(), strict=False)
        return net[0], net[-1]
    except ValueError:
        raise FailingExpressionError(f"`{text[:60]}` is no range of IP addresses") from None


@dataclass(frozen=True, slots=True)
class PolicyAround(Evaluator):
    """The facts that the expressions of one rule may ask for.

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
    chosen: resources.Chosen = field(default_factory=dict)
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

    def choosing(self, choice: resources.Chosen, element: Any) -> PolicyAround:
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
    """The value of ``field('…')``: a list for an array alias, an empty text for a field that is not there."""
    asked = around if around.asker is None else replace(around, target=around.asker, chosen={})
    found = field_of(name, asked)
    if found.every:
        return list(found.values)
    (value,) = found.values
    return "" if value is None else value


def field_of(name: str, around: PolicyAround) -> resources.Selection:
    """The values of a field: of the resource as a whole, of a tag, or of an alias.

    Raises:
        OpenError: It is no field that is known here.
    """
    target, low = around.target, name.lower()
    if "/" in name and not low.startswith("tags"):
        return resources.select(name, target, around.chosen)
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
        return resources.Selection((plain[low](),))
    if low.startswith("identity."):
        identity = target.body.get("identity")
        value = _any_case(identity, name.partition(".")[2]) if isinstance(identity, Mapping) else identity
        return resources.Selection((value,))
    if (tag := tag_of(name)) is not None:
        tags = target.body.get("tags")
        return resources.Selection((_any_case(tags, tag) if isinstance(tags, Mapping) else tags,))
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
        (value,) = resources.select(wanted, around.target, around.chosen).values or (None,)
        return "" if value is None else value
    raise OpenError(f"nothing that is counted is called `{wanted[:60]}`")


def _request(around: PolicyAround) -> PartlyKnown:
    return PartlyKnown({"apiVersion": around.target.api_version} if around.target.api_version else {})


def _ordered(by: str) -> Callable[..., bool]:
    return lambda around, left, right: ordered(by, around.closed(left), around.closed(right))


def _add_days(around: PolicyAround, moment: Node, days: Node) -> str:
    text, number = as_text(around.closed(moment)), around.closed(days)
    try:
        return _moment_text(datetime.fromisoformat(text) + timedelta(days=int(number)))
    except (ValueError, TypeError, OverflowError):
        raise FailingExpressionError(f"`{text[:40]}` is no moment to which days can be added") from None


def _moment_text(value: datetime) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond:06d}0Z"


def _in_range(around: PolicyAround, outer: Node, inner: Node) -> bool:
    return range_contains(as_text(around.closed(outer)), as_text(around.closed(inner)))


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
    "utcnow": lambda around: _moment_text(around.place.now),
}
