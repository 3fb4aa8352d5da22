"""The comparisons of Azure Policy's conditions, on one value each; letter case is ignored unless a match says it.

Source: Azure Policy, "Policy rule structure: conditions".
"""

from __future__ import annotations

import ipaddress
import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from amlstack.base.arm_language.values import FailingExpressionError, OpenError

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "less": operator.lt,
    "lessorequals": operator.le,
    "greater": operator.gt,
    "greaterorequals": operator.ge,
}
_PLACES = {"#": r"\d", "?": "[A-Za-z]", ".": "."}


def ordered(by: str, left: Any, right: Any) -> bool:
    """Whether two numbers, two texts or two moments are in an order.

    Raises:
        FailingExpressionError: They are of two kinds, which Azure refuses.
        OpenError: How Azure orders them is not documented.
    """
    if left is None or right is None:
        raise OpenError("how Azure orders a property that is not there is not documented")
    if isinstance(left, str) and isinstance(right, str):
        moments = _moment(left), _moment(right)
        if None not in moments:
            return _ORDERS[by](*moments)
        if not (left.isascii() and right.isascii()):
            raise OpenError("how Azure orders texts that are not ASCII is not documented")
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


def _negated(of: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, wanted: not of(value, wanted)


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
    """Whether all addresses of a range lie in another.

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
