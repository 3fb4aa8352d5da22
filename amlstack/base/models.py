"""pydantic models inside annotations, the docstrings below their fields, and pydantic's errors in words."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args, get_origin

from pydantic import BaseModel, StringConstraints

from amlstack.base.findings import Finding
from amlstack.base.text import did_you_mean, near

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field's annotation names, those inside unions and collections too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inside in get_args(annotation) for model in models_in(inside)]


def reached(models: Iterable[type[BaseModel]]) -> list[type[BaseModel]]:
    """Models, and all those that their fields name, each once."""
    found: dict[type[BaseModel], None] = {}
    waiting = list(models)
    while waiting:
        model = waiting.pop()
        if model not in found:
            found[model] = None
            waiting += [inner for field in model.model_fields.values() for inner in models_in(field.annotation)]
    return list(found)


def described(model: type[BaseModel]) -> dict[str, str]:
    """The docstring below every field in one line, those of base classes too; fields without one are left out.

    Docstrings, other than `Field(description=…)`, are what editors show.
    """
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        found |= _own(kind)
    return {name: found[name] for name in model.model_fields if name in found}


@cache
def _own(kind: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for statements in pairwise(getattr(_classes(kind.__module__).get(kind.__name__), "body", ())):
        match statements:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                found[name] = " ".join(text.split())
    return found


@cache
def _classes(module: str) -> dict[str, ast.AST]:
    """The classes of a module by name: Python looks for the source of one by parsing the whole file."""
    return {getattr(node, "name", ""): node for node in ast.parse(inspect.getsource(sys.modules[module])).body}


Loc = tuple[str | int, ...]
"""The path of a value in a file."""

UNION_TAG: Final = "\0"
"""Begins the tag of a union's branch, before the name of its model: no key of a file can be one."""

_MEANINGS: Final[dict[str, str]] = {}

_INTEGER: Final = "be an integer"
_BOOLEAN: Final = "be true or false"
_OBJECT: Final = "be an object with keys"
_MUST: Final = {
    "int_parsing": _INTEGER,
    "int_type": _INTEGER,
    "int_from_float": _INTEGER,
    "float_parsing": "be a number",
    "float_type": "be a number",
    "finite_number": "be a finite number",
    "bool_parsing": _BOOLEAN,
    "bool_type": _BOOLEAN,
    "greater_than": "be above {gt}",
    "greater_than_equal": "be at least {ge}",
    "less_than": "be below {lt}",
    "less_than_equal": "be at most {le}",
    "string_type": "be a string",
    "string_too_short": "have at least {min_length} characters",
    "string_too_long": "have at most {max_length} characters",
    "too_short": "have at least {min_length} entries",
    "too_long": "have at most {max_length} entries",
    "list_type": "be a list",
    "tuple_type": "be a list",
    "dict_type": "be a mapping of names to values",
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
}


def must(error: ErrorDetails) -> str:
    """The rule for the value, as the end of a sentence: ``be at least 1``; empty for an error of no such form."""
    if error["type"] == "literal_error":
        return f"be one of {listed(allowed(error))}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error" and message.startswith("Input should be "):
        return message.removeprefix("Input should ")
    return _MUST.get(error["type"], "").format_map(error.get("ctx") or {})


def allowed(error: ErrorDetails) -> tuple[str, ...]:
    """The words that a value of a fixed choice may be."""
    words = str((error.get("ctx") or {})["expected"]).replace(" or ", ", ").split(", ")
    return tuple(word.strip().strip("'") for word in words)


def listed(names: Iterable[str]) -> str:
    """Names in one sentence."""
    return ", ".join(f"`{name}`" for name in names)


class Codes(NamedTuple):
    """Codes of findings, by what is wrong."""

    missing: str
    unknown: str
    refused: str
    value: str


def matching(pattern: str, meaning: str) -> StringConstraints:
    r"""The constraint of a text that has a pattern.

    Args:
        pattern: It ends with ``\Z``: ``$`` would let a line break pass.
        meaning: What the pattern asks for, in words; one text for each pattern.
    """
    _MEANINGS[pattern] = meaning
    return StringConstraints(pattern=pattern)


@dataclass(frozen=True)
class Explainer:
    """Turns pydantic's errors on a file into findings.

    Attributes:
        root: The model of the whole file.
        codes: The codes of findings.
    """

    root: type[BaseModel]
    codes: Codes

    def finding(self, error: ErrorDetails) -> Finding:
        """One error as a finding, its place not yet in a file.

        A ValueError of a validator has the form ``what was seen|the rule|the remedy``, of which the first suffices.
        """
        loc, kind = self.written(error["loc"]), error["type"]
        place = where(loc)
        model = _model_at(error["loc"], self.root)
        if kind == "extra_forbidden":
            return _unknown_key(loc, model, self.codes)
        if kind == "missing":
            name = str(loc[-1])
            field = model.model_fields.get(name)
            rule = (field and field.description) or described(model).get(name) or "It has no default"
            return Finding(self.codes.missing, place, f"`{loc[-1]}` is missing", rule)
        code, key, shown = self.codes.value, _key(loc), _shown(error.get("input"))
        if kind == "string_pattern_mismatch":
            meaning = _MEANINGS[str((error.get("ctx") or {})["pattern"])]
            return Finding(code, place, f"{key} cannot be `{shown}`", meaning)
        if rule := must(error):
            what = f"{key} must {rule}, got `{shown}`"
            if kind == "literal_error":
                return Finding(code, place, what, "", _meant(shown, allowed(error)))
            if not loc:
                return Finding(code, place, what, f"Its keys are {listed(_keys(model))}")
            return Finding(code, place, what, "Quote it" if kind == "string_type" else "")
        if kind == "value_error":
            what, rule, remedy = f"{(error.get('ctx') or {}).get('error', '')}||".split("|")[:3]
            return Finding(code, place, what, rule, remedy)
        return Finding(code, place, f"{key} cannot be `{shown}`", error["msg"])

    def written(self, loc: Loc) -> Loc:
        """The path as it is in the file: without tags of unions, and without ``[key]`` after a mapping's faulty key."""
        if len(loc) > 2 and loc[-1] == "[key]" and loc[-3] in self._mappings:
            loc = loc[:-1]
        return tuple(part for part in loc if not str(part).startswith(UNION_TAG))

    @cached_property
    def _mappings(self) -> frozenset[str]:
        """Keys of mappings whose own keys are names that a person chooses."""
        return frozenset(
            field.alias or name
            for model in reached([self.root])
            for name, field in model.model_fields.items()
            if get_origin(field.annotation) is dict
        )

    def meant(self, loc: Loc) -> tuple[str, ...]:
        """The key that an unknown key was probably meant to be, with those around it; empty for none.

        Args:
            loc: pydantic's own path of the unknown key.
        """
        model, key = _model_at(loc, self.root), str(loc[-1])
        if _refusal(key, model):
            return ()
        return _further_down(key, model) or near(key, _keys(model))[:1]


def where(loc: Loc) -> str:
    """``clusters[0].nodes.max`` of ``("clusters", 0, "nodes", "max")``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).removeprefix(".")


def _unknown_key(loc: Loc, model: type[BaseModel], codes: Codes) -> Finding:
    key = str(loc[-1])
    what, names = f"Unknown key `{key}`", _keys(model)
    if why := _refusal(key, model):
        # A reason that says what to write is the remedy.
        if why.startswith("Write "):
            return Finding(codes.unknown, where(loc), what, "", why)
        return Finding(codes.refused, where(loc), f"`{key}` cannot be declared", why)
    inner = _further_down(key, model)
    remedy = f"Write it as `{'.'.join(inner)}`." if inner else _meant(key, names)
    return Finding(codes.unknown, where(loc), what, f"The keys here are {listed(names)}", remedy)


def _refusal(key: str, model: type[BaseModel]) -> str:
    """The reason why a model refuses a key that other tools have; empty for a key that is simply unknown."""
    reasons: dict[str, str] = getattr(model, "refused", {})
    return reasons.get(key, "")


def _further_down(key: str, model: type[BaseModel]) -> tuple[str, ...]:
    """The key of an inner mapping that an unknown key is, or whose words it has: `nodes.max` for `max_nodes`.

    Empty where there is none, or several.
    """
    key = key.lower()
    found = [
        (outer, inner)
        for outer, field in model.model_fields.items()
        for within in models_in(field.annotation)
        if not _is_collection(field.annotation)
        for inner in within.model_fields
        if key == inner or sorted(key.split("_")) == sorted([outer, *inner.split("_")])
    ]
    return found[0] if len(found) == 1 else ()


def _is_collection(annotation: Any) -> bool:
    """True where a field has several values, or may have."""
    return get_origin(annotation) in (tuple, list, dict) or any(map(_is_collection, get_args(annotation)))


def _key(loc: Loc) -> str:
    """The key that a value belongs to, as a message names it: an entry of a list with the list's key."""
    if not loc:
        return "The file"
    return f"`{loc[-2]}[{loc[-1]}]`" if len(loc) > 1 and isinstance(loc[-1], int) else f"`{loc[-1]}`"


def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _model_at(loc: Loc, root: type[BaseModel]) -> type[BaseModel]:
    """The model that holds the last key of pydantic's own path, tags of unions included."""
    model, inner = root, models_in(root)
    for part in loc[:-1]:
        if isinstance(part, str) and part.startswith(UNION_TAG):
            model = next(each for each in inner if each.__name__ == part.removeprefix(UNION_TAG))
        elif isinstance(part, str):
            fields = {field.alias or name: field for name, field in model.model_fields.items()}
            if part in fields and (found := models_in(fields[part].annotation)):
                model, inner = found[0], found
    return model


def _meant(word: str, known: Iterable[str]) -> str:
    """Near misses only: the rule lists all that is known already."""
    close = near(word, known)
    return did_you_mean(word, close) if close else ""


def _shown(value: Any) -> str:
    if isinstance(value, dict | list | tuple):  # of any size, and perhaps holding itself
        return "{…}" if isinstance(value, dict) else "[…]"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
