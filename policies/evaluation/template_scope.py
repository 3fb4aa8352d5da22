"""The names of one template: parameters, variables and loops of resources, each worked out when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from amlstack.base.arm_language.expressions import LAZY, Evaluator, Node, is_expression
from amlstack.base.arm_language.functions import FUNCTIONS, OpenError, as_text, refuse
from amlstack.base.pulumi_wire import UNKNOWN
from policies.evaluation.facts import AT_UP, GAP, Gapped, Path, Unknown
from policies.evaluation.requests import canonical, read_json

TOO_LARGE = "the template is too large to be worked out here"
SHOWN = 160
"""Most characters of an expression that a message repeats."""

_OF_THE_PLACE = "the subscription or group is known to the deployment alone"


@dataclass(slots=True)
class Budget:
    """The limit of work on one template before it is given up: no template written by hand is that large."""

    left: int = 100_000

    def spend(self) -> None:
        """Count one step; raises OpenError where nothing is left."""
        self.left -= 1
        if self.left < 0:
            raise OpenError(TOO_LARGE)


@dataclass(frozen=True, slots=True)
class Around:
    """The known facts of the place that a template is deployed to.

    Attributes:
        group: Name of the resource group; a gap where it is not known.
        group_location: Its location; None where it is not known.
        location: Where the deployment itself is kept; None where it is not known.
    """

    group: str = GAP
    group_location: Any = None
    location: Any = None


@dataclass(slots=True)
class Scope(Evaluator):
    """One template's names.

    Attributes:
        template: Its ``parameters`` and ``variables``.
        given: Values of parameters by name in small letters: what is given beside the template.
        budget: What is left to spend.
        around: Where it is deployed.
        linked: Whether parameters are given by a file kept elsewhere.
        copies: Index in each loop around, by the loop's name in small letters; the innermost also as the empty name.
    """

    template: Mapping[str, Any]
    given: Mapping[str, Any]
    budget: Budget
    around: Around
    linked: bool = False
    copies: Mapping[str, int | None] = field(default_factory=dict)
    _known: dict[tuple[str, str], Any] = field(default_factory=dict)
    _asked: set[tuple[str, str]] = field(default_factory=set)
    special: ClassVar[Mapping[str, Callable[..., Any]]]

    def inside(self, name: str, index: int | None) -> Scope:
        """The same names inside one turn of a loop; None for a turn whose number is not known."""
        return replace(self, copies={**self.copies, "": index, name.lower(): index})

    def value(self, node: Node) -> Any:
        """The value of one node; it may contain open parts, which count once they are used."""
        self.budget.spend()
        found = Evaluator.value(self, node)
        if (why := missing(found)) is not None:
            raise why
        return found

    def closed(self, node: Node) -> Any:
        """The value of a node, of which every part is known."""
        return closed(self.value(node), self.budget)

    def settled(self, value: Any, path: Path) -> Any:
        """A value of the template with its expressions replaced: by their values, or by what says why there is none.

        Args:
            value: As the template has it.
            path: Its path.
        """
        self.budget.left -= 1
        if isinstance(value, str):
            if not is_expression(value):
                return value[1:] if value.startswith("[[") else value
            try:
                made, twins = canonical(self.expression(value))
                return replace(twins[0], path=".".join(path)) if twins else made
            except OpenError as error:
                return _open(value, error, path)
        if isinstance(value, Mapping):
            if made := next((key for key in value if is_expression(key)), None):
                return _open(made, OpenError("a name that an expression makes is not worked out here"), path)
            if isinstance(loop := value.get("copy"), list) or is_expression(loop):
                return _open("copy", OpenError("a loop of properties is not worked out here"), path)
            return {key: self.settled(one, (*path, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [self.settled(one, (*path, str(index))) for index, one in enumerate(value)]
        return value

    def count(self, value: Any) -> int:
        """The number of turns of a loop; raises OpenError where it is not known, or no number that Azure takes."""
        found = closed(self.expression(value) if is_expression(value) else value, self.budget)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= 800:
            raise OpenError("a loop takes 0 to 800 turns")
        return found

    def named(self, kind: str, name: str) -> Any:
        """A parameter or variable, worked out once; raises OpenError where it has no value that is known here."""
        key = (kind, name)
        if key not in self._known:
            if key in self._asked:
                raise OpenError(f"`{name[:60]}` refers to itself")
            self._asked.add(key)
            try:
                self._known[key] = self._parameter(name) if kind == "parameters" else self._variable(name)
            finally:
                self._asked.discard(key)
        return self._known[key]

    def _parameter(self, name: str) -> Any:
        declared = entry(self.template.get("parameters"), name)
        what = f"the parameter `{name[:60]}`"
        if name in self.given:
            return _given_value(what, self.given[name], declared)
        if (why := missing(declared)) is not None:
            raise why
        if not isinstance(declared, Mapping):
            raise OpenError(f"the template declares no parameter `{name[:60]}`")
        if self.linked:
            raise OpenError(f"{what} is given by a parameters file kept elsewhere")
        if "defaultValue" in declared:
            return self.settled(declared["defaultValue"], ("parameters", name, "defaultValue"))
        if declared.get("nullable") is True:
            return None
        raise OpenError(f"nothing gives {what} a value")

    def _variable(self, name: str) -> Any:
        variables = self.template.get("variables")
        if (why := missing(variables)) is not None:
            raise why
        if (found := entry(variables, name)) is not None:
            return self.settled(found, ("variables", name))
        raise OpenError(f"the template has no variable `{name[:60]}` that is worked out here")


def _given_value(what: str, given: Any, declared: Any) -> Any:
    """The value that is given for a parameter beside the template."""
    if (why := missing(given)) is not None:
        raise why
    if not isinstance(given, Mapping) or given.keys() & {"reference", "expression"} or "value" not in given:
        raise OpenError(f"{what} is given no `value` that is known here")
    value = given["value"]
    if is_expression(value):
        raise OpenError(f"{what} is given where the template is deployed")
    if value is None and isinstance(declared, Mapping) and declared.get("defaultValue") is not None:
        raise OpenError(f"{what} is given null beside a default")
    return value


def entry(mapping: Any, name: str) -> Any:
    """An entry by its name in small letters; None where there is none."""
    if not isinstance(mapping, Mapping):
        return None
    return next((value for key, value in mapping.items() if str(key).lower() == name), None)


def missing(value: Any) -> OpenError | None:
    """The reason why a value is open as a whole; None where it is not."""
    if value is UNKNOWN:
        return OpenError(AT_UP, later=True)
    if isinstance(value, Unknown):
        return OpenError(value.why.partition(": ")[2] or value.why, later=value.why == AT_UP)
    return None


def closed(value: Any, budget: Budget) -> Any:
    """A value of which every part is known; whole numbers as such, as all are floats on the wire.

    Raises:
        OpenError: A part is not known, or the budget is spent.
    """
    budget.spend()
    if isinstance(value, Gapped):
        raise OpenError(value.why)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if (why := missing(value)) is not None:
        raise why
    if isinstance(value, Mapping):
        return {key: closed(one, budget) for key, one in value.items()}
    if isinstance(value, list):
        return [closed(one, budget) for one in value]
    return value


def _open(expression: str, error: OpenError, path: Path) -> Unknown:
    where = ".".join(path)
    if error.later:
        return Unknown(where)
    shown = expression if len(expression) <= SHOWN else f"{expression[:SHOWN]}{GAP}"
    return Unknown(where, f"is `{shown}`: {error.why}", unresolved=True)


def _joining(name: str) -> Callable[..., Any]:
    """A function that joins texts: what only the deployment knows becomes a gap in the result."""

    def joined(scope: Scope, *nodes: Node) -> Any:
        parts, why = [], ""
        for node in nodes:
            try:
                found = scope.value(node)
                parts.append(found if isinstance(found, Gapped) else closed(found, scope.budget))
            except OpenError as error:
                if error.later:
                    raise
                parts.append(Gapped.of(GAP, error.why))
            why = why or getattr(parts[-1], "why", "")
        made = FUNCTIONS[name](*parts)
        return Gapped.of(made, why) if why and isinstance(made, str) else made

    return joined


def _resource_id(below: str) -> Callable[..., str]:
    """A function that gives the id of a resource, with gaps for what is not known of its place.

    Args:
        below: ``group``, ``subscription`` or ``tenant``: what the id is relative to.
    """

    def composed(scope: Scope, *nodes: Node) -> str:
        known = [_known_or_none(scope, node) for node in nodes]
        at = next((index for index, one in enumerate(known) if isinstance(one, str) and "/" in one), None)
        if at is None or any(not isinstance(one, str) for one in known[at:]):
            raise OpenError("the resource's type or name is not known here")
        (provider, *types), names, before = known[at].split("/"), known[at + 1 :], known[:at]
        refuse(len(types) != len(names) or len(before) > 2, "as many names as types are expected")
        inner = "/".join(f"{kind}/{name}" for kind, name in zip(types, names, strict=True))
        place = [GAP if one is None else as_text(one) for one in before]
        prefix = ""
        if below == "subscription":
            prefix = f"/subscriptions/{place[-1] if place else GAP}"
        elif below == "group":
            subscription = place[0] if len(place) == 2 else GAP
            prefix = f"/subscriptions/{subscription}/resourceGroups/{place[-1] if place else scope.around.group}"
        return Gapped.of(f"{prefix}/providers/{provider}/{inner}", _OF_THE_PLACE)

    return composed


def _known_or_none(scope: Scope, node: Node) -> Any:
    try:
        return scope.closed(node)
    except OpenError as error:
        if error.later:
            raise
        return None


def _copy_index(scope: Scope, *nodes: Node) -> int:
    known: list[Any] = [scope.closed(node) for node in nodes]
    name = known.pop(0).lower() if known and isinstance(known[0], str) else ""
    index = scope.copies.get(name)
    if index is None:
        raise OpenError("the number of turns of the loop is not known")
    return index + (int(known[0]) if known else 0)


def _resource_group(scope: Scope) -> dict[str, Any]:
    known = {} if scope.around.group_location is None else {"location": scope.around.group_location}
    return known if scope.around.group == GAP else {**known, "name": scope.around.group}


Scope.special = {
    **LAZY,
    "base64tojson": lambda scope, node: read_json(FUNCTIONS["base64tostring"](scope.closed(node))),
    "concat": _joining("concat"),
    "copyindex": _copy_index,
    "deployment": lambda scope: {} if scope.around.location is None else {"location": scope.around.location},
    "format": _joining("format"),
    "json": lambda scope, node: read_json(as_text(scope.closed(node))),
    "parameters": lambda scope, node: scope.named("parameters", as_text(scope.closed(node)).lower()),
    "resourcegroup": _resource_group,
    "resourceid": _resource_id("group"),
    "subscriptionresourceid": _resource_id("subscription"),
    "tenantresourceid": _resource_id("tenant"),
    "variables": lambda scope, node: scope.named("variables", as_text(scope.closed(node)).lower()),
}
"""JSON is read by a reader of ours, in which no name stands twice."""
