"""ARM templates: the resources that a template deploys, children and those of nested deployments included.

Nothing here asks Azure. Parameters, defaults, variables, the count of a resource's `copy` and plain functions are
worked out. Whatever else decides what is deployed stays unresolved and is named, so that the caller can refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from amlstack.base.arm_language.expressions import is_expression
from amlstack.base.arm_language.functions import OpenError
from policies.evaluation.facts import ELSEWHERE, GAP, Path, Unknown, dig
from policies.evaluation.requests import read_json
from policies.evaluation.subjects import segments
from policies.evaluation.template_scope import TOO_LARGE, Around, Budget, Scope, closed, missing

DEEPEST = 8
"""Most levels of deployments within deployments and of children within resources; Azure takes fewer."""

DEPLOYMENT = "microsoft.resources/deployments"
HOLDERS = re.compile(
    r"microsoft\.(?:resources/(?:deployments|deploymentstacks\w*|templatespecs/versions)|blueprint/.+|solutions/.+|"
    r".+/contenttemplates|authorization/policydefinitions.*|hybridnetwork/vendors/vendorskus|"
    r"operationsmanagement/managementconfigurations)"
)
"""Types in small letters that deploy a template, or keep one for others to deploy."""

_TEMPLATES = frozenset({"template", "mainTemplate", "templateBody", "templateContent", "managedApplicationTemplate"})
_PARAMETERS = ("parameters", "parametersContent", "parametersBody")
_LINKS = ("templateLink", "templateSpecVersionId", "applicationDefinitionId", "blueprintId", "versionId", "plan")
_WAYS = frozenset({"properties", "policyRule", "then", "details", "deployment", "linkedTemplates"})
"""Names in a holder: of a template, of the values beside it, of links to templates elsewhere, of what leads there."""

_OF_RESOURCE = ("type", "name", "location", "tags")


@dataclass(frozen=True, slots=True)
class Piece:
    """One resource that a template deploys.

    Attributes:
        kind: Its full type, as written.
        props: Properties in which it lies at `at`, worked out as far as they can be; where its type is not wanted,
            name, place and tags alone.
        at: Its path.
        name: Its full name, those of its parents before its own; None where it is not known.
        group: Its resource group; None where it is not known.
    """

    kind: str
    props: Mapping[str, Any]
    at: Path
    name: str | None = None
    group: str | None = None


def pieces(props: Any, at: Path, around: Around, wanted: Callable[[str], bool]) -> Iterator[Piece | Unknown]:
    """All that the templates in a resource deploy, and each part that cannot be seen.

    Args:
        props: Properties in which the resource lies.
        at: Its path.
        around: Where it is deployed.
        wanted: Whether a resource of a template is read whole, by its type in small letters.
    """
    try:
        yield from _Walk(wanted, Budget()).held(props, at, around, 0)
    except RecursionError:
        yield _too_deep(at)


def _read(value: Any) -> Any:
    """A template or parameters, which may also be JSON in a text; None for a text that cannot be read."""
    if isinstance(value, str):
        try:
            return read_json(value)
        except ValueError:
            return None
    return value


def _given(parameters: Any, template: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values by name in small letters; a whole parameters file and, as the oldest form has them, plain values too."""
    known = _read(parameters)
    if (why := missing(known)) is not None:
        declared = template.get("parameters")
        unknown = Unknown("parameters", unresolved=not why.later)
        return {str(name).lower(): unknown for name in declared} if isinstance(declared, Mapping) else {}
    if not isinstance(known, Mapping):
        return {}
    if isinstance(known.get("parameters"), Mapping) and "$schema" in known:
        known = known["parameters"]
    plain = str | int | float
    return {str(name).lower(): {"value": one} if isinstance(one, plain) else one for name, one in known.items()}


def _unseen(value: Any, path: Path) -> Unknown:
    where = ".".join(path)
    why = missing(value)
    if why is not None and why.later:
        return Unknown(where)
    return (
        value if isinstance(value, Unknown) else Unknown(where, "is no template that can be read here", unresolved=True)
    )


def _too_deep(path: Path) -> Unknown:
    return Unknown(".".join(path), "is nested too deep to be read here", unresolved=True)


@dataclass(frozen=True, slots=True)
class _Walk:
    wanted: Callable[[str], bool]
    budget: Budget

    def held(self, props: Any, at: Path, around: Around, depth: int) -> Iterator[Piece | Unknown]:
        """The templates that stand in a resource, wherever they do, and the links to others."""
        holder = dig(props, *at)
        if isinstance(holder, Unknown):
            yield holder
        elif isinstance(holder, list):
            for index in range(len(holder)):
                yield from self.held(props, (*at, str(index)), around, depth)
        elif isinstance(holder, Mapping):
            yield from (
                Unknown(".".join((*at, name)), ELSEWHERE, unresolved=True) for name in _LINKS if holder.get(name)
            )
            beside = next((holder[name] for name in _PARAMETERS if holder.get(name) is not None), None)
            for name, value in holder.items():
                if name in _TEMPLATES and value is not None:
                    linked = "parametersLink" in holder
                    yield from self.alone(value, beside, (*at, name), around, depth, linked=linked)
                elif name in _WAYS:
                    yield from self.held(props, (*at, name), around, depth)

    def alone(
        self, value: Any, parameters: Any, at: Path, around: Around, depth: int, *, linked: bool
    ) -> Iterator[Piece | Unknown]:
        """A template with names of its own."""
        template = _read(value)
        if not isinstance(template, Mapping) or "resources" not in template:  # an asset is a mapping, too
            yield _unseen(value, at)
            return
        scope = Scope(template, _given(parameters, template), self.budget, around, linked)
        yield from self.template(template, scope, at, depth)

    def template(self, template: Mapping[str, Any], scope: Scope, at: Path, depth: int) -> Iterator[Piece | Unknown]:
        listed = template.get("resources")
        if isinstance(listed, Mapping) and template.get("languageVersion") == "2.0":
            # By their symbolic names; only there `existing` means that nothing is deployed.
            listed = {name: _deployed_of(raw) for name, raw in listed.items() if not _exists(raw) or "resources" in raw}
        yield from self.resources(listed, scope, (*at, "resources"), _TOP, depth)

    def resources(self, listed: Any, scope: Scope, at: Path, parent: _Parent, depth: int) -> Iterator[Piece | Unknown]:
        if listed is None:
            return
        if depth > DEEPEST:
            yield _too_deep(at)
            return
        if isinstance(listed, Mapping):
            each = list(listed.items())
        elif isinstance(listed, list):
            each = [(str(index), one) for index, one in enumerate(listed)]
        else:
            yield _unseen(listed, at)
            return
        for key, raw in each:
            if isinstance(raw, Mapping):
                yield from self.looped(raw, scope, (*at, str(key)), parent, depth)
            else:
                yield _unseen(raw, (*at, str(key)))

    def looped(
        self, raw: Mapping[str, Any], scope: Scope, at: Path, parent: _Parent, depth: int
    ) -> Iterator[Piece | Unknown]:
        loop = raw.get("copy")
        if not isinstance(loop, Mapping):
            yield from self.resource(raw, scope, at, parent, depth)
            return
        name = str(loop.get("name"))
        try:
            turns: list[int | None] = list(range(scope.count(loop.get("count"))))
        except OpenError as error:
            if error.later:
                yield Unknown(".".join((*at, "copy", "count")))
                return
            turns = [None]  # each turn is judged as far as its number does not matter
        for turn in turns:
            self.budget.left -= 1
            if self.budget.left < 0:
                yield Unknown(".".join((*at, "copy")), TOO_LARGE, unresolved=True)
                return
            here = at if turn is None else (*at[:-1], f"{at[-1]}[{turn}]")
            yield from self.resource(raw, scope.inside(name, turn), here, parent, depth)

    def resource(
        self, raw: Mapping[str, Any], scope: Scope, at: Path, parent: _Parent, depth: int
    ) -> Iterator[Piece | Unknown]:
        if (named := _named_by_expression(raw, at)) is not None:
            yield named
            return
        itself = True
        try:
            if closed(scope.settled(raw.get("condition", True), (*at, "condition")), self.budget) is False:
                if not raw.get("resources"):
                    return
                itself = False  # Azure deploys its children all the same: a condition goes for one resource
        except OpenError as error:
            if error.later:
                yield Unknown(".".join((*at, "condition")))
                return  # whether it is deployed at all is known at up
        kind = scope.settled(raw.get("type"), (*at, "type"))
        if isinstance(kind, Unknown) or missing(kind) is not None:
            yield _unseen(kind, (*at, "type"))
            return
        if not isinstance(kind, str):
            return
        name = scope.settled(raw.get("name"), (*at, "name"))
        around = _Parent(*_full(kind, name, parent))
        whole = around.kind.lower()
        if not itself:
            yield from self.resources(raw["resources"], scope, (*at, "resources"), around, depth + 1)
            return
        if whole == DEPLOYMENT:
            yield from self.nested(raw, scope, at, depth)
            return
        if HOLDERS.fullmatch(whole):
            held = {name: scope.settled(raw[name], (*at, name)) for name in ("plan", "properties") if name in raw}
            yield from self.held(_nest(at, held), at, _placed(scope, raw), depth + 1)
        read = (name for name in raw if name not in {"resources", "copy", "condition", "dependsOn"})
        names = read if self.wanted(whole) else (name for name in _OF_RESOURCE if name in raw)
        body = {name: scope.settled(raw[name], (*at, name)) for name in names}
        group = scope.around.group
        yield Piece(around.kind, _nest(at, body), at, around.name, None if GAP in group else group)
        yield from self.resources(raw.get("resources"), scope, (*at, "resources"), around, depth + 1)

    def nested(self, raw: Mapping[str, Any], scope: Scope, at: Path, depth: int) -> Iterator[Piece | Unknown]:
        """A deployment inside a template: with names of its own, or with those of the template around it."""
        inner = (*at, "properties")
        properties = raw.get("properties")
        if not isinstance(properties, Mapping):
            yield _unseen(properties, inner)
            return
        if (named := _named_by_expression(properties, inner)) is not None:
            yield named
            return
        if "templateLink" in properties:
            yield Unknown(".".join((*inner, "templateLink")), ELSEWHERE, unresolved=True)
        template = properties.get("template")
        if template is None:
            return
        said = dig(properties, "expressionEvaluationOptions", "scope")
        around, where = _placed(scope, raw), (*inner, "template")
        if str(said).lower() == "inner":
            given = scope.settled(properties.get("parameters"), (*inner, "parameters"))
            linked = "parametersLink" in properties
            yield from self.alone(template, given, where, around, depth + 1, linked=linked)
        elif str(said).lower() not in {"none", "notspecified", "outer"}:
            yield _unseen(said, (*inner, "expressionEvaluationOptions"))
        elif isinstance(found := _read(template), Mapping):
            yield from self.template(found, replace(scope, around=around), where, depth + 1)
        else:
            yield _unseen(template, where)


class _Parent(NamedTuple):
    """Full type and name of what a resource is a child of, as far as the name is known."""

    kind: str = ""
    name: str | None = ""


_TOP = _Parent()


def _full(kind: str, name: Any, parent: _Parent) -> tuple[str, str | None]:
    """Full type and name of a resource, which may name itself below its parent alone."""
    # The symbolic form names a type together with its version.
    own = "/".join(segments(kind.partition("@")[0]))
    child = parent.kind and "." not in own.split("/", 1)[0]
    named = name if isinstance(name, str) else None
    if child and named is not None:
        named = None if parent.name is None else f"{parent.name}/{named}"
    head, _, extension = own.rpartition("/providers/")
    if head and "." not in extension.split("/", 1)[0]:  # an extension, whose provider stands in its name
        provider = next((part for part in segments(named or "") if "." in part), "")
        own = f"{provider}/{extension}"
    elif head:
        own = extension
    return f"{parent.kind}/{own}" if child else own, named


def _named_by_expression(raw: Mapping[str, Any], at: Path) -> Unknown | None:
    """The place at which an expression makes a name that decides how to read a resource; None where none does."""
    made = next((str(key) for key in raw if is_expression(key)), None)
    return None if made is None else Unknown(".".join((*at, made)), "is a name made by an expression", unresolved=True)


def _deployed_of(raw: Any) -> Any:
    """The deployed parts of a resource: of one that exists, its children alone."""
    return {key: raw[key] for key in ("type", "name", "resources") if key in raw} if _exists(raw) else raw


def _exists(raw: Any) -> bool:
    return isinstance(raw, Mapping) and raw.get("existing") is True


def _placed(scope: Scope, raw: Mapping[str, Any]) -> Around:
    """The place of a deployment within another, which may go to a group of its own."""
    if raw.get("resourceGroup") is None and raw.get("subscriptionId") is None:
        return scope.around
    group = scope.settled(raw.get("resourceGroup"), ("resourceGroup",))
    location = scope.settled(raw.get("location"), ("location",))
    return Around(group=group if isinstance(group, str) and group else GAP, location=location)


def _nest(path: Path, body: Any) -> dict[str, Any]:
    for name in reversed(path):
        body = {name: body}
    return dict(body)
