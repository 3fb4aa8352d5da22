"""The names of one template: parameters, variables and loops, each worked out when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from amlstack.base.arm_language.values import OpenError
from policies.evaluation.door import TWICE, canonical, spelled
from policies.evaluation.facts import GAP, Gapped, Unknown
from policies.templates.evaluate import value_of
from policies.templates.names import Around
from policies.templates.values import TOO_LARGE, Budget, closed, missing

Path = tuple[str, ...]

_MAKES = re.compile("json|object|union|merge", re.IGNORECASE)
"""Functions that make an object, whose names are in no known spelling yet; all else hands on what was read."""
SHOWN = 160
"""Most characters of an expression that a message repeats."""


@dataclass(slots=True)
class Scope:
    """One template's names.

    Attributes:
        template: Its ``parameters`` and ``variables``.
        given: Values of parameters by name in small letters: what is given beside the template.
        unasked: Why a parameter that is not among the given ones is open, whatever its default; empty where it is not.
        library: Whether the template is only kept: its deployment gives the rest, and is judged then.
        around: Where it is deployed.
        copies: Index in each loop around, by the loop's name in small letters; the innermost also as the empty name.
        budget: What is left to spend.
    """

    template: Mapping[str, Any]
    given: Mapping[str, Any]
    unasked: str = ""
    library: bool = False
    around: Around = field(default_factory=Around)
    copies: Mapping[str, int | None] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    _known: dict[tuple[str, str], Any] = field(default_factory=dict)
    _asked: set[tuple[str, str]] = field(default_factory=set)

    def inside(self, name: str, index: int | None) -> Scope:
        """The same names inside one turn of a loop; None for a turn whose number is not known."""
        return replace(self, copies={**self.copies, "": index, name.lower(): index})

    def worked_out(self, value: Any, path: Path) -> Any:
        """A value of the template with its expressions replaced: by their values, or by what says why there is none.

        Args:
            value: As the template has it.
            path: Its path.
        """
        if isinstance(value, str):
            if not is_template_expression(value):
                return value[1:] if value.startswith("[[") else value
            try:
                self.budget.spend()
                return self._settled(value, value_of(value, self), path)
            except OpenError as error:
                return self._open(value, error, path)
        if isinstance(value, Mapping):
            if any(map(is_template_expression, value)):
                return self._keyed(value, path)
            loops = value.get("copy")
            if isinstance(loops, str) and is_template_expression(loops):
                return self._open(loops, OpenError("a loop of properties is written out"), (*path, "copy"))
            looped = isinstance(loops, list) and all(isinstance(one, Mapping) and "count" in one for one in loops)
            made = {
                key: self.worked_out(one, (*path, key)) for key, one in value.items() if key != "copy" or not looped
            }
            if not looped:
                return made
            if any(is_template_expression(one.get("name")) for one in loops or ()):
                return self._open("copy", OpenError("the name of a loop of properties is an expression"), path)
            in_loops = self._looped(loops, (*path, "copy"))
            both = {name: Unknown(".".join((*path, name)), TWICE, unresolved=True) for name in made.keys() & in_loops}
            return {**made, **in_loops, **both}
        if isinstance(value, list):
            return [self.worked_out(one, (*path, str(index))) for index, one in enumerate(value)]
        return value

    def _keyed(self, value: Mapping[str, Any], path: Path) -> Any:
        """An object in which names are expressions, too, under the names that they give."""
        made: dict[str, Any] = {}
        for key, one in value.items():
            name = self.worked_out(key, path)
            # The readers' names have no slash: what has one, such as `hidden-link:/…/…`, is none whatever its gaps are.
            if not isinstance(name, str) or (isinstance(name, Gapped) and "/" not in name):
                return self._open(key, OpenError("a name in it is not known here"), path)
            if name in made:
                return Unknown(".".join((*path, name)), TWICE, unresolved=True)
            made[name] = one
        made, twins = canonical(made)
        return replace(twins[0], path=".".join(path)) if twins else self.worked_out(made, path)

    def _settled(self, expression: str, found: Any, path: Path) -> Any:
        """What was found inside other parts of the template, as standing here."""
        if isinstance(found, Gapped):
            return found
        if isinstance(found, Unknown):
            return replace(found, path=".".join(path))
        if isinstance(found, dict | list) and _MAKES.search(expression):
            made, twins = canonical(found)
            return replace(twins[0], path=".".join(path)) if twins else made
        return found

    def _open(self, expression: str, error: OpenError, path: Path) -> Unknown:
        where = ".".join(path)
        if error.later:
            return Unknown(where)
        shown = expression if len(expression) <= SHOWN else f"{expression[:SHOWN]}{GAP}"
        return Unknown(where, f"is `{shown}`: {error.why}", unresolved=not self.library)

    def _looped(self, loops: Any, path: Path) -> dict[str, Any]:
        """Properties that are made in a loop; those whose count is not known are open as a whole."""
        made: dict[str, Any] = {}
        for number, loop in enumerate(loops if isinstance(loops, list) else ()):
            if not isinstance(loop, Mapping) or not isinstance(said := loop.get("name"), str):
                continue
            name = spelled(said)
            here = (*path, str(number))
            try:
                count = self.count(loop.get("count"))
            except OpenError as error:
                made[name] = self._open(str(loop.get("count")), error, here)
                continue
            made[name] = []
            for turn in range(count):
                self.budget.left -= 1
                if self.budget.left < 0:
                    made[name] = self._open(str(loop.get("count")), OpenError(TOO_LARGE), here)
                    break
                made[name].append(self.inside(name, turn).worked_out(loop.get("input"), here))
        return made

    def count(self, value: Any) -> int:
        """How many turns a loop has.

        Raises:
            OpenError: It is not known, or no number that Azure takes.
        """
        found = closed(value_of(value, self) if is_template_expression(value) else value, self.budget)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= 800:
            raise OpenError("a loop takes 0 to 800 turns")
        return found

    def named(self, kind: str, name: str) -> Any:
        """A parameter or variable, worked out once.

        Raises:
            OpenError: It has no value that is known here.
        """
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
        if name in self.given:
            given = self.given[name]
            if (why := missing(given)) is not None:
                raise why
            if isinstance(given, Mapping) and "expression" in given:
                raise OpenError(f"the parameter `{name[:60]}` is an expression of its file")
            if isinstance(given, Mapping) and "value" in given and "reference" not in given:
                declared = entry(self.template.get("parameters"), name)
                if (
                    given["value"] is None
                    and isinstance(declared, Mapping)
                    and declared.get("defaultValue") is not None
                ):
                    raise OpenError(f"the parameter `{name[:60]}` is given null beside a default")
                return given["value"]
            if isinstance(given, Mapping) and "reference" in given:
                raise OpenError(f"the parameter `{name[:60]}` is a secret kept in a key vault")
            raise OpenError(f"the parameter `{name[:60]}` is given no `value`")
        declared = entry(self.template.get("parameters"), name)
        if (why := missing(declared)) is not None:
            raise why
        if not isinstance(declared, Mapping):
            raise OpenError(f"the template declares no parameter `{name[:60]}`")
        if self.unasked:
            raise OpenError(f"the parameter `{name[:60]}` {self.unasked}")
        if "defaultValue" in declared:
            return self.worked_out(declared["defaultValue"], ("parameters", name, "defaultValue"))
        if declared.get("nullable") is True:
            return None
        raise OpenError(f"nothing gives the parameter `{name[:60]}` a value")

    def _variable(self, name: str) -> Any:
        variables = self.template.get("variables")
        if (why := missing(variables)) is not None:
            raise why
        if isinstance(variables, Mapping):
            found = entry(variables, name)
            if found is not None:
                return self.worked_out(found, ("variables", name))
            looped = self._looped(variables.get("copy"), ("variables", "copy"))
            if name in {key.lower() for key in looped}:
                return entry(looped, name)
        raise OpenError(f"the template has no variable `{name[:60]}`")


def is_template_expression(value: Any) -> bool:
    """Whether Azure works a value out while it deploys; two brackets at the start stand for a text with one."""
    return isinstance(value, str) and value.startswith("[") and value.endswith("]") and not value.startswith("[[")


def entry(mapping: Any, name: str) -> Any:
    """An entry by its name in any letter case; None where there is none."""
    if not isinstance(mapping, Mapping):
        return None
    return next((value for key, value in mapping.items() if str(key).lower() == name), None)
