"""The value of one expression of a template, in its scope."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.functions import FUNCTIONS, truth
from amlstack.base.arm_language.syntax import Access, Literal, Node, NotAnExpressionError, parse
from amlstack.base.arm_language.values import OpenError, alike
from policies.evaluation.facts import GAP, Gapped
from policies.templates import functions
from policies.templates.values import closed, member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from policies.templates.names import TemplateNames

Arguments = tuple[Node, ...]

_BROKEN = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)
_IDS = {"resourceid": "group", "subscriptionresourceid": "subscription", "tenantresourceid": "tenant"}
_OF_THE_PLACE = "the subscription or group is known to the deployment alone"
_AZURE_KNOWS = re.compile(
    r"reference|references|list\w*|subscription|tenant|managementgroup|environment|uniquestring|guid|newguid|utcnow|"
    r"pickzones|providers|deployer|extensionresourceid|managementgroupresourceid|externalinput|getsecret|"
    r"roledefinitions|datetime\w*|cidr\w*|parsecidr"
)
"""Functions that only a deployment answers, or whose results nothing here depends on."""


def value_of(expression: str, scope: TemplateNames) -> Any:
    """The value of an expression; it may contain open parts, which count once they are used.

    Args:
        expression: With its brackets.
        scope: The names of its template.

    Raises:
        OpenError: It cannot be worked out.
    """
    try:
        return _value(parse(expression), scope)
    except NotAnExpressionError as error:
        raise OpenError(f"it is no expression: {error}") from None
    except OpenError:
        raise
    except _BROKEN as error:
        raise OpenError(f"it does not work out: {str(error)[:80]}") from None


def _value(node: Node, scope: TemplateNames) -> Any:
    scope.budget.spend()
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Access):
        return member(_value(node.of, scope), _closed(node.key, scope))
    name, arguments = node.name, node.arguments
    if name in _SPECIAL:
        return _SPECIAL[name](scope, *arguments)
    if name in _IDS:
        known = [_perhaps(one, scope) for one in arguments]
        return functions.resource_id(known, scope=_IDS[name], group=scope.around.group, why=_OF_THE_PLACE)
    if name in functions.JOINING:
        return functions.JOINING[name](*(_joinable(one, scope) for one in arguments))
    if name in functions.READING:
        return functions.READING[name](*(_closed(one, scope) for one in arguments))
    if name in FUNCTIONS:
        return FUNCTIONS[name](*(_closed(one, scope) for one in arguments))
    if _AZURE_KNOWS.fullmatch(name):
        raise OpenError(f"`{name}` is answered by the deployment alone")
    raise OpenError(f"the function `{name[:60]}` is not worked out here")


def _closed(node: Node, scope: TemplateNames) -> Any:
    return closed(_value(node, scope), scope.budget)


def _perhaps(node: Node, scope: TemplateNames) -> Any:
    try:
        return _closed(node, scope)
    except OpenError as error:
        if error.later:
            raise
        return None


def _joinable(node: Node, scope: TemplateNames) -> Any:
    """An argument for joining: a text may have gaps, and what only the deployment knows becomes one."""
    try:
        found = _value(node, scope)
        return found if isinstance(found, Gapped) else closed(found, scope.budget)
    except OpenError as error:
        if error.later:
            raise
        return Gapped.of(GAP, error.why)


def _parameters(scope: TemplateNames, name: Node) -> Any:
    return scope.named("parameters", str(_closed(name, scope)).lower())


def _variables(scope: TemplateNames, name: Node) -> Any:
    return scope.named("variables", str(_closed(name, scope)).lower())


def _copy_index(scope: TemplateNames, *arguments: Node) -> int:
    known: list[Any] = [_closed(one, scope) for one in arguments]
    name = known.pop(0).lower() if known and isinstance(known[0], str) else ""
    index = scope.copies.get(name)
    if index is None:
        raise OpenError("the number of turns of the loop is not known")
    return index + (int(known[0]) if known else 0)


def _if(scope: TemplateNames, condition: Node, yes: Node, no: Node) -> Any:
    try:
        chosen = truth(_closed(condition, scope))
    except OpenError:
        one, other = _closed(yes, scope), _closed(no, scope)
        if alike(one, other):  # whatever the condition is
            return one
        raise
    return _value(yes if chosen else no, scope)


def _logic(scope: TemplateNames, arguments: Arguments, *, decisive: bool) -> bool:
    """``or`` (decided by a true one) or ``and`` (by a false one), whatever the open ones are."""
    still_open: OpenError | None = None
    for one in arguments:
        try:
            if truth(_closed(one, scope)) is decisive:
                return decisive
        except OpenError as error:
            still_open = error
    if still_open is not None:
        raise still_open
    return not decisive


def _coalesce(scope: TemplateNames, *arguments: Node) -> Any:
    return next((one for one in (_closed(each, scope) for each in arguments) if one is not None), None)


def _try_get(scope: TemplateNames, of: Node, *keys: Node) -> Any:
    value = _closed(of, scope)
    for key in keys:
        try:
            value = member(value, _closed(key, scope))
        except OpenError:
            return None
    return value


def _resource_group(scope: TemplateNames) -> dict[str, Any]:
    known = {} if scope.around.group_location is None else {"location": scope.around.group_location}
    return known if scope.around.group == GAP else {**known, "name": scope.around.group}


def _deployment(scope: TemplateNames) -> dict[str, Any]:
    return {} if scope.around.location is None else {"location": scope.around.location}


_SPECIAL: Mapping[str, Callable[..., Any]] = {
    "and": lambda scope, *arguments: _logic(scope, arguments, decisive=False),
    "coalesce": _coalesce,
    "copyindex": _copy_index,
    "deployment": _deployment,
    "if": _if,
    "or": lambda scope, *arguments: _logic(scope, arguments, decisive=True),
    "parameters": _parameters,
    "resourcegroup": _resource_group,
    "tryget": _try_get,
    "variables": _variables,
}
"""Functions that see the scope, or do not need all of their arguments."""
